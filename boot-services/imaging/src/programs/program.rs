//! Runs a program of an action. Output goes to the log; the error of a failed program has the last
//! lines. Processes that the program leaves behind are killed.

use std::process::{Command, Stdio};

use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader};
use tokio::process::ChildStdin;

use super::children::ChildGuard;
use super::output::{LastLines, log_lines};
use crate::{Error, Meter};

/// Maximum length of the standard output that is returned, in bytes; the rest is dropped.
const ANSWER: usize = 256 << 10;

/// Environment variables of all programs.
pub const ENVIRONMENT: [(&str, &str); 3] = [
    ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ("HOME", "/root"),
    ("TERM", "linux"),
];

/// Settings of a program run.
#[derive(Debug)]
pub struct Program<'a> {
    /// Program name for messages. The executable is set in `command`.
    pub name: &'a str,
    /// Place of the program for messages, such as `/dev/sda1`.
    pub place: &'a str,
    /// Text for the program's standard input; `None` for no input.
    pub input: Option<&'a str>,
    /// True to return the standard output instead of sending it to the log.
    pub returns_output: bool,
}

impl Program<'_> {
    /// Runs `command` to its end. Returns the standard output if `returns_output` is set, else an
    /// empty text. Dropping the future kills the program.
    ///
    /// # Errors
    /// [`Error::Io`]: the program cannot be started. [`Error::Program`]: the program fails.
    pub async fn run(&self, mut command: Command, meter: &Meter) -> Result<String, Error> {
        let Self { name, place, .. } = self;
        let stdin = if self.input.is_some() { Stdio::piped() } else { Stdio::null() };
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let _ours = ChildGuard::begin();
        let started = tokio::process::Command::from(command).kill_on_drop(true).spawn();
        let mut child = started.map_err(Error::io(format!("start {name} in {place}")))?;
        let group = Group(child.id());
        let last = LastLines::default();
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let out = async {
            if self.returns_output {
                return answer(out).await;
            }
            log_lines(out, name, meter, &last).await;
            String::new()
        };
        let give = give(child.stdin.take(), self.input);
        let (answer, (), ()) = tokio::join!(out, log_lines(err, name, meter, &last), give);
        let status = child.wait().await.map_err(Error::io(format!("wait for {name}")))?;
        drop(group);
        if status.success() {
            return Ok(answer);
        }
        Err(Error::Program { program: (*name).to_owned(), status, output: last.joined() })
    }
}

/// Process group of a program. The drop kills all processes in it, because processes left behind
/// would keep the partition in use.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        let pid = self.0.and_then(|pid| i32::try_from(pid).ok());
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
            // The group may be empty, which is the wanted state.
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
    }
}

/// Writes the program's input. Errors are ignored, because a program that needs all of its input
/// fails by itself.
async fn give(pipe: Option<ChildStdin>, input: Option<&str>) {
    if let (Some(mut pipe), Some(input)) = (pipe, input) {
        let _ = pipe.write_all(input.as_bytes()).await;
    }
}

/// Reads a pipe to its end. Returns the first [`ANSWER`] bytes as text.
async fn answer(pipe: Option<impl AsyncRead + Unpin>) -> String {
    let Some(pipe) = pipe else { return String::new() };
    let mut reader = BufReader::new(pipe);
    let mut text = Vec::new();
    while let Ok(chunk) = reader.fill_buf().await {
        let count = chunk.len();
        if count == 0 {
            break;
        }
        text.extend_from_slice(&chunk[..count.min(ANSWER - text.len())]);
        reader.consume(count);
    }
    String::from_utf8_lossy(&text).into_owned()
}
