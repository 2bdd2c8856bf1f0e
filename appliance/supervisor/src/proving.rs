//! Whether the running system works: once it has shown so for long enough, its slot is good and
//! the boot loader's counter begins anew (UP-4). A box that never says so changes slots with every
//! third start.

mod health;
mod probe;

use std::time::{Duration, Instant};

use platform::slots::{self, Slot};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use health::Health;
pub use probe::Probe;

/// Between two looks.
const LOOK: Duration = Duration::from_secs(5);

/// Looks until the slot is good, then ends its work. Ends for good with `shutdown` only: a service
/// that ends by itself takes the process with it.
pub async fn run(probe: Probe, shutdown: CancellationToken) {
    let proving = async {
        match platform::init::slot() {
            Ok(Some(name)) if name == "a" => prove(&probe, Slot::A).await,
            Ok(Some(name)) if name == "b" => prove(&probe, Slot::B).await,
            Ok(_) => tracing::info!("started from no slot: there is none to be marked good"),
            Err(error) => tracing::warn!(error = %stdx::chain(&error), "which slot is this?"),
        }
        std::future::pending::<()>().await;
    };
    shutdown.run_until_cancelled(proving).await;
}

async fn prove(probe: &Probe, slot: Slot) {
    let mut health = Health::default();
    let mut told = Vec::new();
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let lacks = probe.lacks().await;
        if lacks != told && !lacks.is_empty() {
            tracing::warn!(lacks = lacks.join("; "), "the system has not proved itself yet");
        }
        let proved = health.look(lacks.is_empty(), Instant::now());
        told = lacks;
        if proved && mark(slot).await {
            return;
        }
    }
}

/// Whether it is on disk.
async fn mark(slot: Slot) -> bool {
    let marked =
        tokio::task::spawn_blocking(move || slots::change(slot, |all| all.mark_good(slot)));
    let error = match marked.await {
        Ok(Ok(())) => {
            tracing::info!(slot = %slot.letter(), "the system works: its slot is good");
            return true;
        }
        Ok(Err(error)) => stdx::chain(&error),
        Err(error) => stdx::chain(&error),
    };
    tracing::warn!(error, "cannot mark the slot good; trying again");
    false
}
