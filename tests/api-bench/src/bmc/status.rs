//! Time to read the power state of OpenIPMI's `ipmi_sim`, beside `ipmitool -I lanplus`.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use bmc::{CipherSuite, Driver, registry};
use figures::{Goal, Table, median};
use peers::{IpmiSim, Ipmitool};

/// Number of rounds, each with one reading by `ipmitool` and one in a new session, so that the load
/// of the computer is the same for all.
const ROUNDS: usize = 20;
/// Number of readings in the open session of each round.
const WARM: usize = 10;
/// Time after which the driver has closed an idle session (its limit is 3 s).
const IDLE: Duration = Duration::from_millis(3500);

/// Adds readings per second of both clients.
pub async fn measure(table: &mut Table) -> Result<()> {
    let sim = tokio::task::spawn_blocking(IpmiSim::start).await??;
    let endpoint = sim.endpoint(Some(CipherSuite::Three));
    let tool = Ipmitool::new(&endpoint, CipherSuite::Three)?;
    let driver = registry::open(endpoint);
    let (mut theirs, mut cold, mut warm) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let tool = tool.clone();
        let read = tokio::task::spawn_blocking(move || {
            let begin = Instant::now();
            tool.is_on().map(|_| begin.elapsed())
        });
        theirs.push(read.await??.as_secs_f64());
        cold.push(read_once(driver.as_ref()).await?);
        for _ in 0..WARM {
            warm.push(read_once(driver.as_ref()).await?);
        }
        tokio::time::sleep(IDLE).await;
    }
    let theirs = 1.0 / median(theirs);
    let beside = ("ipmitool", theirs);
    table.add("power status, new session (1/s)", 1.0 / median(cold), beside, Goal::AtLeast(1.0));
    table.add("power status, open session (1/s)", 1.0 / median(warm), beside, Goal::AtLeast(5.0));
    Ok(())
}

/// Returns the time of one reading in seconds.
pub async fn read_once(driver: &dyn Driver) -> Result<f64> {
    let begin = Instant::now();
    driver.power().await.context("cannot read the power state")?;
    Ok(begin.elapsed().as_secs_f64())
}
