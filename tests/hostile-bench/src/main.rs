//! `make bench-hostile`: cost of attacks for the box and for its users.
//!
//! The box is a flashed disk in a container (`firmware::contained`) with 512 MiB of memory, the
//! minimum of any supported board. Each attack runs on a machine of its own. At the same time
//! twenty machines boot three times, each from DHCP to the end of a workflow that writes its disk.
//! The administrator creates the workflows and checks their progress. Memory is the box's peak
//! during the attack, and its value a while after.

mod admin;
mod attacks;
mod client;
mod lab;
mod machine;
mod target;

use std::process::ExitCode;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use admin::Served;
use attacks::Attack;
use client::Client;
use lab::{Lab, OWNERS_BOX};
use machine::Agent;
use target::Target;

/// Goal for the box's peak memory, in MiB.
const GOAL_MIB: f64 = 256.0;
/// Boots of every machine during an attack.
const BOOTS: usize = 3;
/// Pause after an attack.
const REST: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    figures::exit(run())
}

/// Attacks whose names contain a word of the arguments; all without an argument.
fn chosen() -> Vec<(usize, Attack)> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let named = |attack: &Attack| {
        words.is_empty() || words.iter().any(|word| attack.name().contains(word.as_str()))
    };
    Attack::ALL.into_iter().enumerate().filter(|(_, attack)| named(attack)).collect()
}

fn run() -> Result<()> {
    let load = std::fs::read_to_string("/proc/loadavg").context("cannot read the load")?;
    println!("load average: {}", load.trim());
    let lab = Lab::start()?;
    let admin = Client::new(&lab.kubeconfig, OWNERS_BOX)?;
    let target = Target::new(lab.machine.process_1()?)?;
    as_owner(&lab, admin::prepare(&admin, &lab.machines)).context("filling the store")?;
    println!(
        "{:48}{:>8}{:>7}{:>10}{:>9}{:>11}{:>10}{:>8}{:>11}",
        "",
        "RSS MiB",
        "after",
        "boot s",
        "worst s",
        "answer ms",
        "worst ms",
        "failed",
        "written kB"
    );
    let (mut most, mut failed) = (0.0_f64, 0);
    for (round, attack) in chosen() {
        let line = measure(&lab, &admin, &target, (round, attack));
        let line = line.with_context(|| format!("during: {}", attack.name()))?;
        println!("{:48}{}", attack.name(), line.text());
        most = most.max(line.peak);
        failed += line.failed();
    }
    let missed = lab.missed();
    println!("most memory: {most:.0} MiB, goal {GOAL_MIB:.0}; failed: {failed}, goal 0");
    println!("liveness checks missed, and restarts: {missed}, goal 0");
    drop(target);
    lab.end()?;
    ensure!(most <= GOAL_MIB, "the box had {most:.0} MiB of memory, more than {GOAL_MIB:.0}");
    ensure!(failed == 0, "{failed} boots or requests failed");
    ensure!(missed == 0, "the liveness check missed {missed} times");
    Ok(())
}

/// Figures of one attack.
struct Line {
    peak: f64,
    after: f64,
    served: Served,
    written: u64,
}

impl Line {
    fn failed(&self) -> usize {
        let boots = BOOTS * usize::from(lab::MACHINES);
        boots.saturating_sub(self.served.installed.len()) + self.served.unanswered
    }

    fn text(&self) -> String {
        let mut boots: Vec<f64> =
            self.served.installed.values().map(Duration::as_secs_f64).collect();
        let mut answers: Vec<f64> =
            self.served.answers.iter().map(|time| time.as_secs_f64() * 1e3).collect();
        let ((boot, worst), (answer, longest)) = (spread(&mut boots), spread(&mut answers));
        format!(
            "{:>8.0}{:>7.0}{boot:>10.1}{worst:>9.1}{answer:>11.1}{longest:>10.0}{:>8}{:>11}",
            self.peak,
            self.after,
            self.failed(),
            self.written / 1024,
        )
    }
}

/// Median and maximum of some times.
fn spread(times: &mut [f64]) -> (f64, f64) {
    times.sort_by(f64::total_cmp);
    let at = |index: usize| times.get(index).copied().unwrap_or(f64::NAN);
    (at(times.len() / 2), at(times.len().saturating_sub(1)))
}

fn runtime() -> Result<Runtime> {
    Builder::new_current_thread().enable_all().build().context("cannot start a runtime")
}

/// Runs `work` in the network of the owner's machine.
fn as_owner<T: Send>(lab: &Lab, work: impl Future<Output = Result<T>> + Send) -> Result<T> {
    lab.owner.enter(|| runtime()?.block_on(work))?
}

/// Begins the attack, boots the machines at the same time, and ends the attack.
fn measure(
    lab: &Lab,
    admin: &Client,
    target: &Target,
    (round, attack): (usize, Attack),
) -> Result<Line> {
    target.forget()?;
    let before = target.written()?;
    let (begun, begins) = sync_channel(1);
    let (stop, stopped) = oneshot::channel::<()>();
    let attacker = &lab.attacker;
    let served = std::thread::scope(|scope| {
        let attacking = scope.spawn(|| {
            let attacks = attacks(attack, admin, begun, stopped);
            attacker.enter(|| runtime()?.block_on(attacks))?
        });
        let served = match begins.recv() {
            Ok(()) => boots(lab, admin, round),
            Err(_) => Err(anyhow!("it did not begin")),
        };
        drop(stop);
        let attacked = attacking.join().unwrap_or_else(|cause| std::panic::resume_unwind(cause));
        attacked.context("attacking")?;
        served
    })?;
    let peak = target.peak()?;
    as_owner(lab, attack.end(admin)).context("the attack's end")?;
    // The box frees memory with a delay.
    std::thread::sleep(REST);
    let (after, written) = (target.resident()?, target.written()?.saturating_sub(before));
    Ok(Line { peak, after, served, written })
}

async fn attacks(
    attack: Attack,
    admin: &Client,
    begun: SyncSender<()>,
    stopped: oneshot::Receiver<()>,
) -> Result<()> {
    let running = attack.begin(admin).await.context("beginning")?;
    // The receiver is gone when another part failed.
    let _ = begun.send(());
    // Nothing is sent; the sender is only dropped.
    let _ = stopped.await;
    drop(running);
    Ok(())
}

/// Installs all machines several times.
fn boots(lab: &Lab, admin: &Client, round: usize) -> Result<Served> {
    let mut all = Served::default();
    for round in round * BOOTS..(round + 1) * BOOTS {
        as_owner(lab, admin::workflows(admin, &lab.machines, round)).context("workflows")?;
        all.add(boot(lab, admin, round)?);
        as_owner(lab, admin::clear(admin, round)).context("deleting workflows")?;
    }
    Ok(all)
}

/// Boots all machines at once, and waits until their workflows have ended.
fn boot(lab: &Lab, admin: &Client, round: usize) -> Result<Served> {
    std::thread::scope(|scope| {
        let (ends, end) = ending(lab.machines.len());
        for (machine, end) in lab.machines.iter().zip(end) {
            scope.spawn(move || match machine.boot() {
                Ok(agent) => until(agent, &end),
                Err(error) => eprintln!("{} does not boot: {error:#}", machine.name()),
            });
        }
        let served = as_owner(lab, admin::watch(admin, &lab.machines, round));
        drop(ends);
        served
    })
}

/// One channel for each machine; its agent runs until the sender is dropped.
fn ending(machines: usize) -> (Vec<SyncSender<()>>, Vec<Receiver<()>>) {
    (0..machines).map(|_| sync_channel(1)).unzip()
}

fn until(agent: Agent, end: &Receiver<()>) {
    // Returns only when the sender is dropped.
    let _ = end.recv();
    drop(agent);
}
