//! A fleet of machines that run workflows: the box's real store, index, workflow service and
//! controllers, the real protocol and the real agent's loop. Thousands of machines run in one
//! process on a virtual clock. Faults: connections are slow and break, writes of the store fail,
//! management controllers (BMCs) fail, machines lose power or hang. The box is killed, its clock is
//! changed, its disk is full, and name servers and BMCs do not answer.
//!
//! Faults of the box and actions of owners are derived from the seed. The order of events at equal
//! times is random, because `tokio::select!` and `HashMap` have random seeds of their own. So the
//! delays of single messages differ, and also the state of a machine at the time of a fault. One
//! seed gives the same faults, not the same run.
//!
//! Enter at [`run()`], at [`trial()`] for one incident at an exact step of one workflow, and at
//! [`direct()`] for a test that waits for a condition and then acts. Inside: `appliance` is the box
//! from a start to a kill, `nuc` a machine, `bmc` the BMCs, `disk` the disk contents that survive
//! power cuts. `owners` has the actions of owners, `objects` the store with its faults, `link` the
//! network, `ledger` the rules that must never be broken, `time` the product's threads under
//! virtual time.
//!
//! Not modeled: the boot protocols (a machine that boots from the network reads its boot plan from
//! the box's own directory), the bytes of images, TLS, and the definitions of the kinds in the
//! store. The events of a watch are in order, but may be late without limit.

mod appliance;
mod bmc;
mod chance;
mod disk;
mod incident;
mod ledger;
mod link;
mod nuc;
mod objects;
mod outages;
mod owners;
mod plan;
mod settings;
mod stage;
mod time;
mod trial;
mod world;

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

pub use incident::{Incident, Injection};
pub use plan::Kind;
pub use settings::{Faults, Settings};
pub use stage::{Stage, action, direct};
pub use trial::{Trial, trial};
use world::World;

/// Counts and duration of a run that succeeded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// Machines with a workflow.
    pub machines: usize,
    /// Workflows that ended with success.
    pub succeeded: usize,
    /// Workflows that failed, as planned.
    pub failed: usize,
    /// Workflows that were canceled before their end.
    pub cancelled: usize,
    /// Workflows that were canceled and retried.
    pub retried: usize,
    /// Actions that machines began.
    pub begun: usize,
    /// Kills of the box.
    pub kills: usize,
    /// Connections that were cut.
    pub cuts: usize,
    /// Writes that reported an error.
    pub failed_writes: usize,
    /// Writes that took effect.
    pub writes: usize,
    /// Accidental power cuts and hangs of machines.
    pub mishaps: usize,
    /// Number of blackouts: the box and some machines lost power in the same instant.
    pub blackouts: usize,
    /// Clock changes, full disks, silent name servers and dead management controllers.
    pub outages: usize,
    /// Virtual time from the start to the end of the last workflow.
    pub lasted: Duration,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machines, succeeded, failed, cancelled, retried, begun, .. } = self;
        let Self { kills, cuts, failed_writes, writes, mishaps, blackouts, outages, .. } = self;
        writeln!(
            f,
            "{machines} workflows: {succeeded} succeeded, {failed} failed as they had to, \
             {cancelled} were cancelled, {retried} cancelled and tried again, in {:.0} s",
            self.lasted.as_secs_f64()
        )?;
        write!(
            f,
            "{begun} actions begun, {writes} writes and {failed_writes} that failed; the box died \
             {kills} times, {cuts} connections broke, {mishaps} machines lost power or fell \
             silent, {blackouts} blackouts, {outages} outages"
        )
    }
}

/// Description of a failed run, with the seed that reproduces the run's faults.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("seed {seed}: {what}")]
pub struct Failure {
    /// Seed of the failed run.
    pub seed: u64,
    /// Broken rule, or the workflow that did not end as planned.
    pub what: String,
}

/// Runs the workflows of a fleet.
///
/// # Errors
/// When a rule is broken, or a workflow does not end as planned.
pub fn run(settings: Settings) -> Result<Summary, Failure> {
    on_virtual_time(settings.seed, async {
        let world = World::new(settings, None);
        world.begin();
        finish(&world).await
    })
}

/// Runs `live` on one thread with a clock that advances only when all tasks wait.
fn on_virtual_time<T>(
    seed: u64,
    live: impl Future<Output = Result<T, String>>,
) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| Failure { seed, what: error.to_string() })?;
    runtime.block_on(live).map_err(|what| Failure { seed, what })
}

/// Maximum time from the last fault to the end of every workflow. In this time, a machine may wait
/// for power, boot again and repeat its longest action, with two retries.
const BOUND: Duration = Duration::from_secs(4 * 3600);
/// Interval between two checks that all workflows have ended.
const LOOK: Duration = Duration::from_secs(5);

/// Waits until every workflow has ended, and returns the summary.
async fn finish(world: &World) -> Result<Summary, String> {
    let bound = Instant::now() + world.settings.faults.until + BOUND;
    loop {
        tokio::time::sleep(LOOK).await;
        if let Some(violation) = world.ledger().violation() {
            return Err(violation);
        }
        if world.have_all_ended() {
            break;
        }
        if Instant::now() > bound {
            return Err(world.stories());
        }
    }
    // Late events must not change a finished workflow.
    tokio::time::sleep(Duration::from_secs(600)).await;
    world.ledger().ends_on();
    world.summary()
}
