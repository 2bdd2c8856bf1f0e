//! A fleet under its workflows: the box's real workflow service and controllers, the real protocol
//! and the real agent's loop, thousands of them in one process and on a virtual clock; between them
//! connections that are slow and break, a store whose writes fail, controllers of machines that
//! err, machines that lose power or hang, a box that is killed, a clock that is set, a disk that is
//! full, name servers and controllers that are silent.
//!
//! Faults of the box and acts of owners come of the seed. Which of two things that are due at once
//! comes first does not: `tokio::select!` picks a branch and `HashMap` an order by chance of their
//! own. So delays of single messages differ, and with them what machines are at when something
//! strikes them: the same seed is the same weather, not the same run.
//!
//! Enter at [`run()`], at [`trial()`] for one incident at an exact step of one workflow, and at
//! [`direct()`] for a test that waits for a moment and does something then. Inside: `appliance` is
//! a life of the box, `nuc` a machine with its management controller, `disk` what power cuts leave
//! of it, `owners` what people do, `objects` the store, `link` the wire, `ledger` what must never
//! happen.
//!
//! Not modelled: the boot protocols (a machine that boots from the network asks the box's own index
//! what there is for it), the bytes of images, TLS, the API's admission; a watch is as late as it
//! likes but in order.

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

/// What came of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// Machines with a workflow.
    pub machines: usize,
    /// Workflows that ended well.
    pub succeeded: usize,
    /// Workflows that were to fail, and did.
    pub failed: usize,
    /// Workflows that were cancelled in time.
    pub cancelled: usize,
    /// Workflows that were cancelled and tried again.
    pub retried: usize,
    /// Actions that machines began.
    pub begun: usize,
    /// Deaths of the box.
    pub kills: usize,
    /// Connections that were cut.
    pub cuts: usize,
    /// Writes that reported an error.
    pub failed_writes: usize,
    /// Writes that took effect.
    pub writes: usize,
    /// Machines that lost power, and agents that fell silent.
    pub mishaps: usize,
    /// Moments in which the box and machines lost power at once.
    pub blackouts: usize,
    /// Settings of the clock, full disks, silent name servers and dead management controllers.
    pub outages: usize,
    /// When the last workflow ended.
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

/// What went wrong, and how to see it again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("seed {seed}: {what}")]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// What must never happen, or what did not come to its end.
    pub what: String,
}

/// Lets a fleet do its workflows.
///
/// # Errors
/// When something happens that must not, or a workflow does not end as it must.
pub fn run(settings: Settings) -> Result<Summary, Failure> {
    on_virtual_time(settings.seed, async {
        let world = World::new(settings, None);
        world.begin();
        finish(&world).await
    })
}

/// Runs `live` on one thread and a clock that jumps from one moment to the next.
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

/// How long after the last fault every workflow must have ended: a machine may have to be waited
/// for, booted again, and begin its longest action anew, and each attempt may fail twice more.
const BOUND: Duration = Duration::from_secs(4 * 3600);
/// How often it is looked whether all have ended.
const LOOK: Duration = Duration::from_secs(5);

/// Waits until every workflow has ended; what came of them.
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
    // Late news must not change what is over.
    tokio::time::sleep(Duration::from_secs(600)).await;
    world.ledger().ends_on();
    world.summary()
}
