//! Several boxes on one management cluster: how far it goes.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use api_bench::rss_mib;
use capi::Repository;
use peers::Tinboxd;

use crate::latency::{agents_of, offer, pair, prepare};
use crate::machines::Machine;
use crate::management::{Management, apply, create};

/// Largest number of boxes.
const BOXES: u8 = 3;
/// Machines of each box.
const EACH: u8 = 100;

/// Figures for a number of boxes.
struct Point {
    boxes: u8,
    /// Seconds until the last machine got its work.
    last: f64,
    /// Requests per second at the API server of the management cluster meanwhile.
    requests: f64,
    /// Largest memory of a box, in MiB.
    rss_mib: f64,
}

/// Figures for one box and more.
pub struct Curve(Vec<Point>);

impl Curve {
    /// Prints one line for each number of boxes.
    pub fn print(&self) {
        println!("\nboxes on one management cluster, {EACH} machines each, all at once");
        println!(
            "{:>6}{:>10}{:>10}{:>12}{:>14}",
            "boxes", "machines", "last, s", "requests/s", "RSS, MiB"
        );
        for Point { boxes, last, requests, rss_mib } in &self.0 {
            let machines = u32::from(*boxes) * u32::from(EACH);
            println!("{boxes:>6}{machines:>10}{last:>10.1}{requests:>12.0}{rss_mib:>14.0}");
        }
    }
}

/// Measures one box, then two, and so on.
///
/// # Errors
/// A program does not start, or an agent gets no work.
pub async fn measure() -> Result<Curve> {
    let mut curve = Vec::new();
    for boxes in 1..=BOXES {
        let point = point(boxes).await;
        curve.push(point.with_context(|| format!("with {boxes} boxes"))?);
    }
    Ok(Curve(curve))
}

async fn point(boxes: u8) -> Result<Point> {
    let (tinboxds, management) = tokio::task::spawn_blocking(move || start(boxes)).await??;
    let mut machines = Vec::new();
    for (of_box, tinboxd) in (0..boxes).zip(&tinboxds) {
        let own: Vec<Machine> = (0..EACH).map(|number| Machine { of_box, number }).collect();
        create(&tinboxd.kubectl()?, &own.iter().map(|it| it.hardware()).collect::<Vec<_>>())?;
        machines.extend(own.into_iter().map(|machine| (machine, agents_of(tinboxd))));
    }
    prepare(&management, &machines.iter().map(|(machine, _)| *machine).collect::<Vec<_>>())?;
    let before = management.requests()?;
    let begun = Instant::now();
    let times = offer(&management, &machines).await?;
    let took = begun.elapsed().as_secs_f64();
    ensure!(times.len() == machines.len(), "only {} machines got work", times.len());
    let requests = management.requests()?.since(&before);
    println!("{boxes} boxes");
    requests.print(f64::from(u32::try_from(machines.len())?));
    let requests = requests.sum() / took;
    let last = times.into_iter().fold(0.0, f64::max);
    let mut largest: f64 = 0.0;
    for tinboxd in &tinboxds {
        largest = largest.max(rss_mib(&[tinboxd.id()])?);
    }
    Ok(Point { boxes, last, requests, rss_mib: largest })
}

fn start(boxes: u8) -> Result<(Vec<Tinboxd>, Management)> {
    let management =
        Management::start(|_, kubectl| apply(kubectl, Repository::new("0.1.0").components()))?;
    let mut tinboxds = Vec::new();
    for number in 0..boxes {
        let tinboxd =
            Tinboxd::start_on_host(&format!("tinbox-{number}"), "[agents]\npermissive = true\n")?;
        pair(&tinboxd, &management.cluster, "prod")?;
        tinboxds.push(tinboxd);
    }
    Ok((tinboxds, management))
}
