//! A program that an action runs. Every line of its output goes to the log, and the last lines go
//! into the error of a failure. Processes that the program leaves behind are killed.

use std::process::{Command, Stdio};

use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader};
use tokio::process::ChildStdin;

use super::children::ChildGuard;
use super::output::{LastLines, log_lines};
use crate::{Error, Meter};

/// Maximum length of the standard output that is returned to an action, in bytes.
const ANSWER: usize = 256 << 10;

/// Environment variables that every program gets.
pub const ENVIRONMENT: [(&str, &str); 3] = [
    ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ("HOME", "/root"),
    ("TERM", "linux"),
];

/// Description of a program run.
#[derive(Debug)]
pub struct Program<'a> {
    /// Name for the operator. The started file is in `command`.
    pub name: &'a str,
    /// Place of the run for the operator, such as `/dev/sda1`.
    pub place: &'a str,
    /// Text for the standard input of the program.
    pub input: Option<&'a str>,
    /// True if the standard output is returned to the action instead of the log.
    pub returns_output: bool,
}

impl Program<'_> {
    /// Runs `command` to its end. Returns its standard output if `returns_output` is set. Dropping
    /// the future kills the program.
    ///
    /// # Errors
    /// [`Error::Io`] when it cannot be started, [`Error::Program`] when it fails.
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

/// Process group of a program. Dropping kills the processes that the program left behind, because
/// they would keep the partition in use.
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

/// Writes the input. An error is ignored: a program that does not read all of its input reports the
/// failure by itself.
async fn give(pipe: Option<ChildStdin>, input: Option<&str>) {
    if let (Some(mut pipe), Some(input)) = (pipe, input) {
        let _ = pipe.write_all(input.as_bytes()).await;
    }
}

/// Returns the first part of the standard output. The rest is read and dropped, so that the program
/// can end.
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
