//! Waiting in tests: one time limit for every crate, and polling with this limit. And an address
//! for a program that cannot choose its port itself.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// Maximum wait of a test for one condition: two minutes. A busy machine then does not fail a test,
/// and a success ends the wait at once.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Interval between two checks of a condition.
const PAUSE: Duration = Duration::from_millis(5);

/// First port of [`own_address`], below the ports that Linux gives out itself.
const LOWEST: u16 = 8000;

/// Loopback address and port that no other program uses, for a program that cannot choose its port.
/// A port of 127.0.0.1 that was free a moment ago may be in use by the time the program opens it.
pub fn own_address() -> SocketAddr {
    static GIVEN: AtomicU16 = AtomicU16::new(0);
    // Process IDs have at most 22 bits (PID_MAX_LIMIT of the kernel).
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let port = LOWEST + GIVEN.fetch_add(1, Ordering::Relaxed);
    (Ipv4Addr::new(127, 64 | high, middle, low), port).into()
}

/// Polls `ready` until it returns a value, and returns this value. Blocks the thread.
///
/// # Panics
/// The time limit [`PATIENCE`] has passed. The message contains `what`.
#[track_caller]
pub fn wait_for<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let wait = Wait::new(what);
    loop {
        if let Some(value) = ready() {
            return value;
        }
        std::thread::sleep(wait.pause());
    }
}

/// Polls `condition` until it is true. Blocks the thread.
///
/// # Panics
/// The time limit [`PATIENCE`] has passed. The message contains `what`.
#[track_caller]
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(what, || condition().then_some(()));
}

/// Time limit of one wait, for a test that polls in its own async runtime: `while !condition() {
/// sleep(wait.pause()).await }`.
#[derive(Debug)]
pub struct Wait {
    what: String,
    limit: Duration,
    begun: Instant,
}

impl Wait {
    /// Starts a wait for `what`, limited to [`PATIENCE`].
    pub fn new(what: &str) -> Self {
        Self::limited(what, PATIENCE)
    }

    /// Starts a wait for `what` with another limit, such as for the start of an emulated machine.
    pub fn limited(what: &str, limit: Duration) -> Self {
        Self { what: what.to_owned(), limit, begun: Instant::now() }
    }

    /// Returns the time to sleep before the next check.
    ///
    /// # Panics
    /// The time limit has passed.
    #[track_caller]
    pub fn pause(&self) -> Duration {
        let waited = self.begun.elapsed();
        assert!(waited <= self.limit, "waited {waited:?} for {}", self.what);
        PAUSE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_with_the_value_or_with_its_name() {
        let mut looks = 0;
        let found = wait_for("the third look", || {
            looks += 1;
            (looks == 3).then_some(looks)
        });
        assert_eq!(found, 3);
        let over = Wait::limited("a thing that never comes", Duration::ZERO);
        let panic = std::panic::catch_unwind(|| {
            loop {
                std::thread::sleep(over.pause());
            }
        });
        let message = panic.unwrap_err().downcast::<String>().unwrap();
        assert!(message.ends_with("for a thing that never comes"), "{message}");
    }
}
