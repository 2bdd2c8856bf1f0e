//! Liveness of the box. Monitored loops report each turn, and process 1 receives the result and
//! restarts a box that hangs (WD-2).
//!
//! A separate thread sends the heartbeats. If the async runtime hangs, the loops stop, and the
//! thread still reports them.

pub mod heartbeat;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use heartbeat::{EVERY, Heartbeat, HeartbeatMessage};

/// Maximum time between two turns of a monitored loop.
const TURN: Duration = Duration::from_secs(20);

/// Monitor of all loops that must not hang.
pub struct LivenessMonitor {
    began: Instant,
    loops: Mutex<Vec<Arc<LoopTurns>>>,
}

struct LoopTurns {
    name: &'static str,
    /// Time of the last turn, in milliseconds since the monitor was created.
    millis: AtomicU64,
}

/// Handle with which a loop reports its turns. A loop that ends drops the handle and is no longer
/// monitored.
#[derive(Clone)]
pub struct LoopSignal {
    began: Instant,
    turns: Arc<LoopTurns>,
}

impl LoopSignal {
    /// Records a turn of the loop.
    pub fn tick(&self) {
        self.turns.millis.store(millis(self.began.elapsed()), Ordering::Relaxed);
    }
}

impl Default for LivenessMonitor {
    fn default() -> Self {
        Self { began: Instant::now(), loops: Mutex::default() }
    }
}

impl LivenessMonitor {
    /// Adds a loop and counts its first turn now. `name` is shown to the owner.
    pub fn loop_signal(&self, name: &'static str) -> LoopSignal {
        let turns = Arc::new(LoopTurns { name, millis: AtomicU64::new(0) });
        let loop_signal = LoopSignal { began: self.began, turns: Arc::clone(&turns) };
        loop_signal.tick();
        self.loops.lock().unwrap_or_else(PoisonError::into_inner).push(turns);
        loop_signal
    }

    /// Starts the thread that sends heartbeats to process 1 until this process ends.
    pub fn beat(self: Arc<Self>, mut heartbeat: Heartbeat) {
        std::thread::spawn(move || {
            let mut is_logged = false;
            loop {
                let message = self.message(self.began.elapsed());
                if let HeartbeatMessage::Stuck { what, seconds } = &message {
                    if !std::mem::replace(&mut is_logged, true) {
                        tracing::error!(what, seconds, "a task of the box is stuck");
                    }
                } else {
                    is_logged = false;
                }
                heartbeat.send(&message);
                std::thread::sleep(EVERY);
            }
        });
    }

    /// Returns the message to send at `age`, the time since the monitor was created.
    fn message(&self, age: Duration) -> HeartbeatMessage {
        let mut loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
        loops.retain(|turns| Arc::strong_count(turns) > 1);
        let silent = |turns: &Arc<LoopTurns>| {
            let last = Duration::from_millis(turns.millis.load(Ordering::Relaxed));
            (age.saturating_sub(last), turns.name)
        };
        match loops.iter().map(silent).max() {
            Some((silence, name)) if silence > TURN => {
                HeartbeatMessage::Stuck { what: name.to_owned(), seconds: silence.as_secs() }
            }
            _ => HeartbeatMessage::Beat,
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use crate::liveness::heartbeat::HeartbeatMessage;

    use super::LivenessMonitor;

    #[test]
    fn the_loop_that_stands_still_for_longest_is_named() {
        let monitor = LivenessMonitor::default();
        let at = |seconds| monitor.message(Duration::from_secs(seconds));
        let stuck =
            |what: &str, seconds| HeartbeatMessage::Stuck { what: what.to_owned(), seconds };
        assert_eq!(at(1000), HeartbeatMessage::Beat, "nothing must turn yet");
        let (store, api) = (monitor.loop_signal("the store"), monitor.loop_signal("the API"));
        let turned = |loop_signal: &super::LoopSignal, seconds: u64| {
            loop_signal.turns.millis.store(seconds * 1000, Ordering::Relaxed);
        };
        turned(&store, 30);
        turned(&api, 50);
        assert_eq!(at(50), HeartbeatMessage::Beat);
        assert_eq!(at(51), stuck("the store", 21));
        assert_eq!(at(80), stuck("the store", 50));
        turned(&store, 81);
        assert_eq!(at(82), stuck("the API", 32));
        drop(api);
        assert_eq!(at(83), HeartbeatMessage::Beat, "a loop that ended is not missed");
    }

    #[test]
    fn a_turn_is_now() {
        let monitor = LivenessMonitor::default();
        let loop_signal = monitor.loop_signal("the store");
        loop_signal.turns.millis.store(u64::MAX, Ordering::Relaxed);
        loop_signal.tick();
        let last = Duration::from_millis(loop_signal.turns.millis.load(Ordering::Relaxed));
        assert!(last <= monitor.began.elapsed());
    }
}
