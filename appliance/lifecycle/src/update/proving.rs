//! Checks that the running system works. After two minutes without a failed check, the slot is
//! marked good, and the boot loader's start counter is reset (UP-4). The boot loader starts the
//! other slot if a system was not marked good after three starts.

mod health;
mod probe;

use std::sync::Arc;
use std::time::Duration;

use stdx::Clock;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::update::Updates;
pub use health::{Health, Verdict};
pub use probe::Probe;

/// Interval between two checks of the system.
pub const LOOK: Duration = Duration::from_secs(5);

/// Checks the system until its slot is marked good, then waits for `shutdown`. The function must
/// not return earlier, because the end of a service ends the process.
pub async fn run(
    probe: Probe,
    updates: Arc<Updates>,
    clock: Arc<dyn Clock>,
    shutdown: CancellationToken,
) {
    let proving = async {
        prove(&probe, &updates, &*clock).await;
        std::future::pending::<()>().await;
    };
    shutdown.run_until_cancelled(proving).await;
}

async fn prove(probe: &Probe, updates: &Arc<Updates>, clock: &dyn Clock) {
    let mut health = Health::new(clock.steady());
    let mut logged = Vec::new();
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let lacks = probe.lacks().await;
        if lacks != logged && !lacks.is_empty() {
            tracing::warn!(lacks = lacks.join("; "), "the system has not passed its checks yet");
        }
        match health.look(lacks.is_empty(), updates.on_trial(), clock.steady()) {
            Verdict::Fails => return updates.give_up(&lacks.join("; ")),
            Verdict::Works if stores(probe).await && mark(updates).await => return,
            Verdict::Works | Verdict::Open => logged = lacks,
        }
    }
}

/// Returns true if the store of this release can write to the disk.
async fn stores(probe: &Probe) -> bool {
    let stored = probe.stores().await;
    if let Err(error) = &stored {
        let error = stdx::chain(error);
        tracing::warn!(error, "the store accepts no writes: its slot is not marked good yet");
    }
    stored.is_ok()
}

/// Marks the slot good. Returns true if the mark is on disk.
async fn mark(updates: &Arc<Updates>) -> bool {
    let proved = Arc::clone(updates);
    let marked = tokio::task::spawn_blocking(move || proved.proved());
    let error = match marked.await {
        Ok(Ok(())) => {
            tracing::info!("the system works: its slot is good");
            return true;
        }
        Ok(Err(error)) => stdx::chain(&error),
        Err(error) => stdx::chain(&error),
    };
    tracing::warn!(error, "cannot mark the slot good; trying again");
    false
}
