//! Whether the running system works: once it has shown so for long enough, its slot is good and
//! the boot loader's counter begins anew (UP-4). A box that never says so changes slots with every
//! third start.

mod health;
mod probe;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::update::Updates;
use health::Health;
pub use probe::Probe;

/// Between two looks.
const LOOK: Duration = Duration::from_secs(5);
/// How long a new system may take until nothing is missing, before it is given up: an update that
/// does not work must not keep a rack waiting.
const GIVE_UP: Duration = Duration::from_secs(180);

/// Looks until the slot is good, then ends its work. Ends for good with `shutdown` only: a service
/// that ends by itself takes the process with it.
pub async fn run(probe: Probe, updates: Arc<Updates>, shutdown: CancellationToken) {
    let proving = async {
        prove(&probe, &updates).await;
        std::future::pending::<()>().await;
    };
    shutdown.run_until_cancelled(proving).await;
}

async fn prove(probe: &Probe, updates: &Arc<Updates>) {
    let (mut health, began) = (Health::default(), Instant::now());
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
        if !lacks.is_empty() && updates.on_trial() && began.elapsed() >= GIVE_UP {
            updates.give_up(&lacks.join("; "));
            return;
        }
        told = lacks;
        if proved && mark(updates).await {
            return;
        }
    }
}

/// Whether it is on disk.
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
