//! `make bench-hostile`: what attacks cost the box, and those who use it meanwhile. `tinboxd` has
//! 512 MiB, as little as any board it runs on. Each attack is begun, honest clients are served
//! beside it, and it ends; memory is the most that the box had during the attack, and what it has a
//! while after.
//!
//! Not here yet: DHCP, and the box as process 1 of its own namespaces.

mod attacks;
mod client;
mod honest;
mod target;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use peers::Tinboxd;

use attacks::Attack;
use client::Client;
use target::Target;

/// The most memory that the box should ever have, in MiB.
const GOAL_MIB: f64 = 256.0;

/// Pause after an attack.
const REST: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let done = runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(run()));
    figures::exit(done)
}

async fn run() -> Result<()> {
    let load = std::fs::read_to_string("/proc/loadavg").context("cannot read the load")?;
    println!("load average: {}", load.trim());
    let tinboxd = tokio::task::spawn_blocking(Tinboxd::start).await??;
    let target = Target::new(tinboxd.id())?;
    let admin = Client::new(&tinboxd)?;
    honest::prepare(&admin).await.context("filling the store")?;
    println!(
        "{:44}{:>9}{:>9}{:>10}{:>10}{:>8}{:>11}",
        "", "RSS MiB", "after", "median ms", "worst ms", "failed", "written kB"
    );
    let mut most = 0.0_f64;
    for attack in Attack::ALL {
        target.forget()?;
        let written = target.written()?;
        let running = attack.begin(&tinboxd, &admin).await;
        let running = running.with_context(|| format!("beginning: {}", attack.name()))?;
        let served = honest::serve(&tinboxd, &admin).await?;
        let peak = target.peak()?;
        drop(running);
        ensure!(target.runs(), "the box ended: {}", attack.name());
        // The box gives memory back a while later.
        tokio::time::sleep(REST).await;
        let (after, written) = (target.resident()?, target.written()? - written);
        println!(
            "{:44}{peak:>9.0}{after:>9.0}{:>10.1}{:>10.1}{:>8}{:>11}",
            attack.name(),
            served.median,
            served.worst,
            served.failed,
            written / 1024,
        );
        most = most.max(peak);
    }
    println!("most memory: {most:.0} MiB, goal {GOAL_MIB:.0}");
    ensure!(most <= GOAL_MIB, "the box had {most:.0} MiB of memory, more than {GOAL_MIB:.0}");
    Ok(())
}
