//! Heartbeat of the supervisor to process 1, sent over a pipe that the supervisor inherits.
//!
//! Each line is `beat`, or `stuck SECONDS NAME` if a monitored loop has stopped. Process 1 decides
//! how long a silence may last (`init`).

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;

/// Interval between two heartbeats.
pub const EVERY: Duration = Duration::from_secs(5);
/// Environment variable with the descriptor number of the pipe's writing end.
pub(crate) const PIPE: &str = "TINBOX_HEARTBEAT";
/// Maximum length of a line in bytes. Longer lines are dropped.
const LINE_MAX: usize = 128;

/// Message of the supervisor about its own state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeartbeatMessage {
    /// All monitored loops are running.
    Beat,
    /// A monitored loop has stopped.
    Stuck {
        /// Name of the loop, worded for an owner.
        what: String,
        /// Seconds since the last turn of the loop.
        seconds: u64,
    },
}

impl HeartbeatMessage {
    fn parse(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?;
        if line == "beat" {
            return Some(Self::Beat);
        }
        let (seconds, what) = line.strip_prefix("stuck ")?.split_once(' ')?;
        Some(Self::Stuck { what: what.to_owned(), seconds: seconds.parse().ok()? })
    }
}

impl fmt::Display for HeartbeatMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Beat => f.write_str("beat"),
            Self::Stuck { what, seconds } => write!(f, "stuck {seconds} {what}"),
        }
    }
}

/// Writing end of the pipe, held by the supervisor.
#[derive(Debug)]
pub struct Heartbeat(File);

impl Heartbeat {
    /// Opens the pipe from process 1. Returns `None` for a process that process 1 did not start.
    pub fn inherited() -> Option<Self> {
        let number: u32 = std::env::var(PIPE).ok()?.parse().ok()?;
        Self::open(number).ok()
    }

    fn open(number: u32) -> io::Result<Self> {
        // A new descriptor for the pipe is not inherited by other programs, and never blocks.
        let mut options = OpenOptions::new();
        options.write(true).custom_flags(libc::O_NONBLOCK);
        options.open(format!("/proc/self/fd/{number}")).map(Self)
    }

    /// Sends `message`. A failed write is ignored, because process 1 detects the missing heartbeat.
    pub fn send(&mut self, message: &HeartbeatMessage) {
        let _ = self.0.write_all(format!("{message}\n").as_bytes());
    }
}

/// Reading end of the pipe, held by process 1.
#[derive(Debug)]
pub(crate) struct Listener {
    pipe: pipe::Receiver,
    rest: Vec<u8>,
}

impl Listener {
    /// Creates a pipe. The returned descriptor is inherited by the next program that is started.
    pub(crate) fn new() -> io::Result<(Self, OwnedFd)> {
        let (sender, pipe) = pipe::pipe()?;
        let given = sender.into_blocking_fd()?;
        fcntl_setfd(&given, FdFlags::empty())?;
        Ok((Self { pipe, rest: Vec::new() }, given))
    }

    /// Returns the number of the descriptor `given`, which is the value of [`PIPE`].
    pub(crate) fn number(given: &OwnedFd) -> String {
        given.as_raw_fd().to_string()
    }

    /// Returns the next message. Waits forever once the supervisor has closed the pipe. Cancel
    /// safe.
    pub(crate) async fn next(&mut self) -> HeartbeatMessage {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                if let Some(message) = HeartbeatMessage::parse(&line[..end]) {
                    return message;
                }
                continue;
            }
            if self.rest.len() > LINE_MAX {
                self.rest.clear();
            }
            let mut bytes = [0; LINE_MAX];
            match self.pipe.read(&mut bytes).await {
                Ok(count @ 1..) => self.rest.extend_from_slice(&bytes[..count]),
                Ok(0) | Err(_) => std::future::pending().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{Heartbeat, HeartbeatMessage, Listener, PIPE};

    fn stuck(what: &str, seconds: u64) -> HeartbeatMessage {
        HeartbeatMessage::Stuck { what: what.to_owned(), seconds }
    }

    #[test]
    fn words_are_lines() {
        for message in [HeartbeatMessage::Beat, stuck("the API", 21)] {
            assert_eq!(HeartbeatMessage::parse(message.to_string().as_bytes()), Some(message));
        }
        for line in ["", "bea", "beat ", "stuck", "stuck 3", "stuck x the API", "stuck -1 it"] {
            assert_eq!(HeartbeatMessage::parse(line.as_bytes()), None, "{line}");
        }
    }

    #[tokio::test]
    async fn a_program_that_is_started_is_heard() {
        let (mut listener, given) = Listener::new().unwrap();
        let number = Listener::number(&given);
        let script = format!(
            "exec >/proc/self/fd/${PIPE} && head -c 1000 /dev/zero && echo && printf be && \
             echo at && echo stuck 21 the API"
        );
        let mut program = Command::new("sh");
        assert!(program.args(["-c", &script]).env(PIPE, &number).status().unwrap().success());
        assert_eq!(listener.next().await, HeartbeatMessage::Beat);
        assert_eq!(listener.next().await, stuck("the API", 21));
        // Opened as the supervisor does, but without a reader: a write must never block.
        let mut own = Heartbeat::open(number.parse().unwrap()).unwrap();
        for _ in 0..100_000 {
            own.send(&HeartbeatMessage::Beat);
        }
        assert_eq!(listener.next().await, HeartbeatMessage::Beat);
    }
}
