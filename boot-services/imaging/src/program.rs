//! A program that an action runs: every line it prints goes to the log, the last of them into the
//! error when it fails, and what it leaves behind ends with it.

use std::process::{Command, Stdio};

use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader};
use tokio::process::ChildStdin;

use crate::children::Ours;
use crate::output::{LastLines, tell};
use crate::{Error, Meter};

/// Most of its standard output that an action is given to read.
const ANSWER: usize = 256 << 10;

/// What a program finds without the action's help.
pub const SURROUNDINGS: [(&str, &str); 3] = [
    ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ("HOME", "/root"),
    ("TERM", "linux"),
];

/// What is to be run.
#[derive(Debug)]
pub struct Program<'a> {
    /// For people; what is started says `command`.
    pub name: &'a str,
    /// Where it runs, for people: `/dev/sda1`.
    pub place: &'a str,
    /// Given to it on its standard input.
    pub input: Option<&'a str>,
    /// Whether its standard output is an answer to read, and not lines to tell.
    pub asked: bool,
}

impl Program<'_> {
    /// Run `command` to its end; its answer, if it was asked for one. Dropping the future ends it.
    ///
    /// # Errors
    /// [`Error::Io`] when it cannot be started, [`Error::Program`] when it fails.
    pub async fn run(&self, mut command: Command, meter: &Meter) -> Result<String, Error> {
        let Self { name, place, .. } = self;
        let stdin = if self.input.is_some() { Stdio::piped() } else { Stdio::null() };
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let _ours = Ours::begin();
        let started = tokio::process::Command::from(command).kill_on_drop(true).spawn();
        let mut child = started.map_err(Error::io(format!("start {name} in {place}")))?;
        let group = Group(child.id());
        let last = LastLines::default();
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let out = async {
            if self.asked {
                return answer(out).await;
            }
            tell(out, name, meter, &last).await;
            String::new()
        };
        let give = give(child.stdin.take(), self.input);
        let (answer, (), ()) = tokio::join!(out, tell(err, name, meter, &last), give);
        let status = child.wait().await.map_err(Error::io(format!("wait for {name}")))?;
        drop(group);
        if status.success() {
            return Ok(answer);
        }
        Err(Error::Program { program: (*name).to_owned(), status, said: last.joined() })
    }
}

/// What a program started and left behind ends with it, or the partition would stay in use.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        let pid = self.0.and_then(|pid| i32::try_from(pid).ok());
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
            // Nobody may be left, which is what is wanted.
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
    }
}

/// A program that does not read to the end says itself what that means.
async fn give(pipe: Option<ChildStdin>, input: Option<&str>) {
    if let (Some(mut pipe), Some(input)) = (pipe, input) {
        let _ = pipe.write_all(input.as_bytes()).await;
    }
}

/// Its standard output as far as it is kept; all of it is read, so that it can end.
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
