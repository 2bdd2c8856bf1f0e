//! `cexec`: BLOCK_DEVICE, FS_TYPE, CMD_LINE, DEFAULT_INTERPRETER, UPDATE_RESOLV_CONF.
//!
//! The partition is the programs' root whether or not CHROOT is set: this OS has no programs of its
//! own. Without an interpreter CMD_LINE is commands parted by `;` and words parted by white space,
//! as upstream's; with one, it is the interpreter's last argument. Programs see the action's whole
//! environment; every line they print goes to the log. JSON_OUTPUT changes nothing.

use std::fmt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

use super::environment::Environment;
use crate::children::Ours;
use crate::mount::{Mounted, Owner, Purpose};
use crate::stream::blocking;
use crate::{Error, Meter, sys};

const RESOLV_CONF: &str = "etc/resolv.conf";
/// Where the partition's own is meanwhile.
const RESOLV_CONF_ASIDE: &str = "resolv.conf.tinbox-aside";
const READABLE: Owner = Owner { uid: 0, gid: 0, mode: 0o644, dir_mode: 0o755 };
/// What a program finds without the action's help.
const SURROUNDINGS: [(&str, &str); 3] = [
    ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ("HOME", "/root"),
    ("TERM", "linux"),
];
/// Longest line of a program's that is told; the rest of it is left out.
const LINE: usize = 1000;
/// Lines that a failure repeats, and the least that reading one takes of memory.
const LAST_LINES: usize = 5;

/// Programs to be run.
#[derive(Clone, PartialEq, Eq)]
pub struct Cexec {
    device: PathBuf,
    fs_type: String,
    commands: Vec<Vec<String>>,
    environment: Vec<(String, String)>,
    resolv_conf: bool,
}

/// Leaves out the command line and the environment, which may hold secrets.
impl fmt::Debug for Cexec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cexec")
            .field("device", &self.device)
            .field("fs_type", &self.fs_type)
            .field("commands", &self.commands.len())
            .finish_non_exhaustive()
    }
}

impl Cexec {
    pub(super) fn parse(environment: &Environment<'_>) -> Result<Self, Error> {
        let line = environment.required("CMD_LINE")?;
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let commands: Vec<_> = match environment.optional("DEFAULT_INTERPRETER") {
            Some(interpreter) => {
                let mut command = words(interpreter);
                command.push(line.to_owned());
                vec![command]
            }
            None => line.split(';').map(words).filter(|command| !command.is_empty()).collect(),
        };
        if commands.is_empty() {
            return Err(environment.bad("CMD_LINE", "there is no command in it"));
        }
        Ok(Self {
            device: environment.device("BLOCK_DEVICE")?,
            fs_type: environment.required("FS_TYPE")?.to_owned(),
            commands,
            environment: environment.pairs(),
            resolv_conf: environment.flag("UPDATE_RESOLV_CONF")?,
        })
    }

    pub(super) async fn run(self, meter: &Arc<Meter>) -> Result<String, Error> {
        let device = self.device.display().to_string();
        meter.say(format!("running programs of {device}"));
        let this = self.clone();
        let mounted = blocking("mounting", move || {
            let mounted = Mounted::mount(&this.device, &this.fs_type, Purpose::Run)?;
            let aside = this.resolv_conf.then(|| lend_resolv_conf(&mounted)).transpose()?;
            Ok((mounted, aside))
        });
        let (mounted, aside) = mounted.await?;
        let mut result = Ok(());
        for command in &self.commands {
            result = self.run_one(command, meter).await;
            if result.is_err() {
                break;
            }
        }
        let unmounted = blocking("unmounting", move || {
            if let Some(was_there) = aside {
                mounted.put_back(RESOLV_CONF, RESOLV_CONF_ASIDE, was_there)?;
            }
            mounted.unmount()
        })
        .await;
        result.and(unmounted)?;
        let count = self.commands.len();
        let plural = if count == 1 { "" } else { "s" };
        Ok(format!("ran {count} command{plural} in {device}"))
    }

    async fn run_one(&self, words: &[String], meter: &Arc<Meter>) -> Result<(), Error> {
        let Some((program, arguments)) = words.split_first() else { return Ok(()) };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(SURROUNDINGS)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        sys::confine(&mut command, Mounted::PLACE);
        let _ours = Ours::begin();
        let started = tokio::process::Command::from(command).kill_on_drop(true).spawn();
        let device = self.device.display();
        let mut child = started.map_err(Error::io(format!("start {program} in {device}")))?;
        let group = Group(child.id());
        let last = Mutex::new(Vec::new());
        let (out, err) = (child.stdout.take(), child.stderr.take());
        tokio::join!(tell(out, program, meter, &last), tell(err, program, meter, &last));
        let status = child.wait().await.map_err(Error::io(format!("wait for {program}")))?;
        drop(group);
        if status.success() {
            return Ok(());
        }
        let last = last.into_inner().unwrap_or_else(PoisonError::into_inner);
        Err(Error::Program { program: program.clone(), status, said: last.join(" / ") })
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

/// Every line to the log and, the last of them, to whoever asks what went wrong.
async fn tell(
    pipe: Option<impl AsyncRead + Unpin>,
    program: &str,
    meter: &Meter,
    last: &Mutex<Vec<String>>,
) {
    let Some(pipe) = pipe else { return };
    let mut reader = BufReader::new(pipe);
    let mut line = Vec::new();
    while let Ok(chunk) = reader.fill_buf().await {
        let (count, ended) = match chunk.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (chunk.len(), chunk.is_empty()),
        };
        let room = LINE.saturating_sub(line.len());
        line.extend_from_slice(&chunk[..count.min(room)]);
        reader.consume(count);
        if ended {
            let text = String::from_utf8_lossy(&line);
            let text: String = text.chars().filter(|c| *c == '\t' || !c.is_control()).collect();
            if !text.trim().is_empty() {
                tracing::info!(program, said = %text, "cexec");
                meter.say(text.clone());
                let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                last.push(text);
                let surplus = last.len().saturating_sub(LAST_LINES);
                last.drain(..surplus);
            }
            line.clear();
        }
        if count == 0 {
            return;
        }
    }
}

/// Give the programs this OS's name servers; whether the partition had a file of its own.
fn lend_resolv_conf(mounted: &Mounted) -> Result<bool, Error> {
    let ours = std::fs::read(format!("/{RESOLV_CONF}")).unwrap_or_default();
    let was_there = mounted.set_aside(RESOLV_CONF, RESOLV_CONF_ASIDE)?;
    mounted.write(RESOLV_CONF, &ours, READABLE)?;
    Ok(was_there)
}
