//! How process 1 knows that the supervisor lives: words on a pipe that the supervisor inherits.
//!
//! A line is `beat`, or `stuck SECONDS NAME` where something that must go on does not. Process 1
//! decides what a silence means (`init`).

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;

/// Between two heartbeats.
pub const EVERY: Duration = Duration::from_secs(5);
/// The variable with the number of the pipe's writing end.
pub(crate) const PIPE: &str = "TINBOX_HEARTBEAT";
/// Bytes of a line; what is longer is not one of these words.
const LINE_MAX: usize = 128;

/// What the supervisor says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// Everything goes on.
    Beat,
    /// Something does not.
    Stuck {
        /// What, as an owner reads it.
        what: String,
        /// Since when.
        seconds: u64,
    },
}

impl Word {
    fn parse(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?;
        if line == "beat" {
            return Some(Self::Beat);
        }
        let (seconds, what) = line.strip_prefix("stuck ")?.split_once(' ')?;
        Some(Self::Stuck { what: what.to_owned(), seconds: seconds.parse().ok()? })
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Beat => f.write_str("beat"),
            Self::Stuck { what, seconds } => write!(f, "stuck {seconds} {what}"),
        }
    }
}

/// The supervisor's end of the pipe.
#[derive(Debug)]
pub struct Heartbeat(File);

impl Heartbeat {
    /// What process 1 gave to this process; `None` for a process that is no child of it.
    pub fn inherited() -> Option<Self> {
        let number: u32 = std::env::var(PIPE).ok()?.parse().ok()?;
        Self::open(number).ok()
    }

    fn open(number: u32) -> io::Result<Self> {
        // Opened anew: it is not passed on to programs, and never waits for process 1.
        let mut options = OpenOptions::new();
        options.write(true).custom_flags(libc::O_NONBLOCK);
        options.open(format!("/proc/self/fd/{number}")).map(Self)
    }

    /// Says `word`. One that cannot be said is lost: process 1 hears the silence.
    pub fn say(&mut self, word: &Word) {
        let _ = self.0.write_all(format!("{word}\n").as_bytes());
    }
}

/// Process 1's end.
#[derive(Debug)]
pub(crate) struct Listener {
    pipe: pipe::Receiver,
    rest: Vec<u8>,
}

impl Listener {
    /// The ends of a new pipe; the other one is passed on to the next program that is started.
    pub(crate) fn new() -> io::Result<(Self, OwnedFd)> {
        let (sender, pipe) = pipe::pipe()?;
        let given = sender.into_blocking_fd()?;
        fcntl_setfd(&given, FdFlags::empty())?;
        Ok((Self { pipe, rest: Vec::new() }, given))
    }

    /// The number of `given`, for [`PIPE`].
    pub(crate) fn number(given: &OwnedFd) -> String {
        given.as_raw_fd().to_string()
    }

    /// The next word; never, once nobody is there to say one. Cancel safe.
    pub(crate) async fn next(&mut self) -> Word {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                if let Some(word) = Word::parse(&line[..end]) {
                    return word;
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

    use super::{Heartbeat, Listener, PIPE, Word};

    fn stuck(what: &str, seconds: u64) -> Word {
        Word::Stuck { what: what.to_owned(), seconds }
    }

    #[test]
    fn words_are_lines() {
        for word in [Word::Beat, stuck("the API", 21)] {
            assert_eq!(Word::parse(word.to_string().as_bytes()), Some(word));
        }
        for line in ["", "bea", "beat ", "stuck", "stuck 3", "stuck x the API", "stuck -1 it"] {
            assert_eq!(Word::parse(line.as_bytes()), None, "{line}");
        }
    }

    #[tokio::test]
    async fn a_program_that_is_started_is_heard() {
        let (mut heard, given) = Listener::new().unwrap();
        let number = Listener::number(&given);
        let script = format!(
            "exec >/proc/self/fd/${PIPE} && head -c 1000 /dev/zero && echo && printf be && \
             echo at && echo stuck 21 the API"
        );
        let mut program = Command::new("sh");
        assert!(program.args(["-c", &script]).env(PIPE, &number).status().unwrap().success());
        assert_eq!(heard.next().await, Word::Beat);
        assert_eq!(heard.next().await, stuck("the API", 21));
        // As the supervisor opens it, with nobody reading: it never waits.
        let mut own = Heartbeat::open(number.parse().unwrap()).unwrap();
        for _ in 0..100_000 {
            own.say(&Word::Beat);
        }
        assert_eq!(heard.next().await, Word::Beat);
    }
}
