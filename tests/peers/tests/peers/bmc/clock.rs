//! Control of the client's clock by a test. A busy machine then causes no retransmission, so the
//! datagrams that a test counts are exact.

use std::future::Future;
use std::pin::pin;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use peers::bmc_sim::BmcSim;
use peers::old_bmc::OldBmc;
use stdx::testing::{PATIENCE, Wait};

/// Interval between two checks of the simulator, in real time.
const LOOK: Duration = Duration::from_millis(2);

/// Client time that passes after the simulator has answered all requests.
const STEP: Duration = Duration::from_millis(100);

/// Client time of one step of [`slowed`]; the step takes four times as much real time.
const SLOW_STEP: Duration = Duration::from_millis(25);

/// Stops the clock of a runtime that was started paused, until the sender is dropped: tokio
/// advances a paused clock when the runtime is idle, but not while a blocking task runs.
pub fn stop() -> SyncSender<()> {
    let (running, ended) = sync_channel(1);
    tokio::task::spawn_blocking(move || {
        let _ = ended.recv_timeout(PATIENCE);
    });
    running
}

/// BMC that counts what it receives.
pub trait Counting {
    /// Number of datagrams that arrived.
    fn received(&self) -> usize;
    /// Number of pauses, in which no datagram came.
    fn pauses(&self) -> usize;
}

impl Counting for BmcSim {
    fn received(&self) -> usize {
        self.traffic().received
    }

    fn pauses(&self) -> usize {
        self.pauses()
    }
}

impl Counting for OldBmc {
    fn received(&self) -> usize {
        self.received().len()
    }

    fn pauses(&self) -> usize {
        self.pauses()
    }
}

/// Runs `work` with a clock that advances only after the simulator has answered all it received.
pub async fn paced<T>(sim: &impl Counting, work: impl Future<Output = T>) -> T {
    let _stopped = stop();
    let mut work = pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = settled(sim) => tokio::time::advance(STEP).await,
        }
    }
}

/// Runs `work` with a clock at a quarter of the real pace, and never faster than this thread runs.
pub async fn slowed<T>(work: impl Future<Output = T>) -> T {
    let _stopped = stop();
    let mut work = pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = real(SLOW_STEP * 4) => tokio::time::advance(SLOW_STEP).await,
        }
    }
}

/// Waits until a condition holds; the clock need not run.
pub async fn until(mut holds: impl FnMut() -> bool) {
    let wait = Wait::new("the condition");
    while !holds() {
        real(wait.pause()).await;
    }
}

/// Returns once the simulator has answered all that this runtime has sent, and this runtime has
/// read the answers. The simulator counts a pause when its socket is empty. After two pauses all
/// earlier answers are sent, and the runtime reads them during the next sleep. A request that such
/// an answer causes arrives before the next two pauses; the loop then begins again.
async fn settled(sim: &impl Counting) {
    loop {
        let received = sim.received();
        for _ in 0..2 {
            let seen = sim.pauses();
            until(|| sim.pauses() >= seen + 2).await;
            real(LOOK).await;
        }
        if sim.received() == received {
            return;
        }
    }
}

async fn real(time: Duration) {
    let _ = tokio::task::spawn_blocking(move || std::thread::sleep(time)).await;
}
