//! Cost of open tabs while machines change.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};
use api_bench::client::Client;
use api_bench::{cpu_percent, rss_mib};
use bytes::Bytes;
use figures::{Goal, Table, median};
use http::Method;
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};

use super::browse::BoxPages;

/// Number of machines: twice the largest rack that the box is made for.
pub const MACHINES: usize = 100;
/// Number of open tabs.
const TABS: usize = 20;
/// Number of times that the tabs are opened and closed.
const ROUNDS: usize = 8;
/// Time with tabs, and time without them, of one round.
const SPAN: Duration = Duration::from_secs(10);
/// Time until the changes have their pace.
const SETTLE: Duration = Duration::from_secs(30);
/// Maximum share of one processor core of all tabs, in percent.
const CPU_MAX: f64 = 2.0;
/// Maximum growth of the resident memory by all tabs, in MiB.
const GROWTH_MAX: f64 = 10.0;
/// Path of the live stream of the list of machines.
const STREAM: &str = "/events?page=%2Fmachines";
/// Number of tabs with the list of machines; as many show one machine each, others the overview.
const LISTS: usize = 8;
const HARDWARE: &str = "/apis/tinkerbell.org/v1alpha1/namespaces/default/hardware";

/// Returns the Hardware with this number. Each `turn` has another address in it, which the list of
/// machines shows.
pub fn hardware(number: usize, turn: usize) -> Value {
    let address = format!("10.99.{}.{}", turn % 200, number + 1);
    let mac = format!("52:54:00:99:00:{number:02x}");
    json!({
        "apiVersion": "tinkerbell.org/v1alpha1",
        "kind": "Hardware",
        "metadata": { "name": format!("nuc-{number:03}"), "namespace": "default" },
        "spec": { "interfaces": [{ "dhcp": {
            "mac": mac,
            "ip": { "address": address, "netmask": "255.255.0.0" },
        } }] },
    })
}

/// Creates the machines.
///
/// # Errors
/// The box refuses a machine.
pub async fn fill(client: &Client) -> Result<()> {
    for number in 0..MACHINES {
        let object = hardware(number, 0).to_string();
        client.send(Method::POST, HARDWARE, Bytes::from(object)).await?;
    }
    Ok(())
}

/// Changes every machine once a second, for ever.
async fn change(client: Client) -> Result<()> {
    let mut tick = interval(Duration::from_secs(1));
    tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
    for turn in 1.. {
        tick.tick().await;
        for number in 0..MACHINES {
            let mut object = hardware(number, turn);
            let path = format!("{HARDWARE}/nuc-{number:03}");
            let stored = client.send(Method::GET, &path, Bytes::new()).await?;
            let stored: Value = serde_json::from_slice(&stored)?;
            object["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
            client.send(Method::PUT, &path, Bytes::from(object.to_string())).await?;
        }
    }
    Ok(())
}

/// Open tab: curl that reads the live stream of a page. Ended when dropped.
struct Tab(Child);

impl Tab {
    fn open(pages: &BoxPages, number: usize) -> Result<Self> {
        let stream = match number {
            0..LISTS => STREAM.to_owned(),
            _ if number < 2 * LISTS => format!("{STREAM}%2Fnuc-{number:03}"),
            _ => "/events?page=%2F".to_owned(),
        };
        let mut curl = Command::new("curl");
        curl.args(["-ksSN", "-o", "/dev/null", "-H", "Accept-Encoding: gzip"]);
        curl.args(pages.session()).arg(pages.url(&stream)).stdin(Stdio::null());
        Ok(Self(curl.spawn().context("cannot run curl")?))
    }
}

impl Drop for Tab {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Adds processor time and memory of the tabs: the difference to the same changes without tabs, as
/// the median and the largest of all rounds. The changes themselves need more memory in each span,
/// which is subtracted.
///
/// # Errors
/// The box refuses a change, or curl cannot run.
pub async fn measure(table: &mut Table, pages: &BoxPages, client: &Client) -> Result<()> {
    let box_id = pages.tinboxd.id();
    let changes = tokio::spawn(change(client.clone()));
    tokio::time::sleep(SETTLE).await;
    let (mut shares, mut growths) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = rss_mib(&[box_id])?;
        let alone = cpu_percent(box_id, SPAN).await?;
        let before = rss_mib(&[box_id])?;
        let tabs: Vec<Tab> = (0..TABS).map(|tab| Tab::open(pages, tab)).collect::<Result<_>>()?;
        let open = cpu_percent(box_id, SPAN).await?;
        let after = rss_mib(&[box_id])?;
        drop(tabs);
        println!(
            "{alone:.2} % of a core and {:.2} MiB more without a tab, {open:.2} % and {:.2} MiB \
             with {TABS}",
            before - start,
            after - before
        );
        shares.push(open - alone);
        growths.push((after - before) - (before - start));
    }
    let traffic = tokio::task::block_in_place(|| pages.traffic(STREAM))?;
    anyhow::ensure!(!changes.is_finished(), "the changes of the machines ended: {changes:?}");
    changes.abort();
    println!("one tab receives {traffic:.1} KiB a second");
    let growth = growths.into_iter().fold(f64::NEG_INFINITY, f64::max);
    let name = |what: &str| format!("{TABS} tabs, {MACHINES} machines change each second, {what}");
    table.add(&name("% of a core"), median(shares), ("limit", CPU_MAX), Goal::AtMost(1.0));
    table.add(&name("RSS (MiB)"), growth, ("limit", GROWTH_MAX), Goal::AtMost(1.0));
    Ok(())
}
