//! `cexec`: runs CMD_LINE on the partition BLOCK_DEVICE. Also FS_TYPE, DEFAULT_INTERPRETER,
//! UPDATE_RESOLV_CONF.
//!
//! The partition is always the root of the programs, whether or not CHROOT is set, because this OS
//! has no programs. Without an interpreter, CMD_LINE has commands separated by `;` and words
//! separated by white space, as upstream. With an interpreter, CMD_LINE is its last argument. The
//! programs receive all variables of the action. Each output line goes to the log. JSON_OUTPUT has
//! no effect.

use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use imaging::Meter;
use imaging::chroot::ProgramRoot;
use imaging::mount::{Mounted, Owner, Purpose, ReplacedFile};
use imaging::program::{ENVIRONMENT, Program};
use imaging::stream::blocking;
use imaging::sys::confine;

use super::environment::Environment;
use crate::Error;

const RESOLV_CONF: ReplacedFile<'static> = ReplacedFile {
    path: "etc/resolv.conf",
    aside: "resolv.conf.tinbox-aside",
    absent: "resolv.conf.tinbox-absent",
};
const READABLE: Owner = Owner { uid: 0, gid: 0, mode: 0o644, dir_mode: 0o755 };

/// Programs to run on a partition.
#[derive(Clone, PartialEq, Eq)]
pub struct Cexec {
    device: PathBuf,
    fs_type: String,
    commands: Vec<Vec<String>>,
    environment: Vec<(String, String)>,
    resolv_conf: bool,
}

/// Omits the command line and the environment, which may contain secrets.
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
            return Err(environment.bad("CMD_LINE", "it has no command"));
        }
        Ok(Self {
            device: environment.device("BLOCK_DEVICE")?,
            fs_type: environment.required("FS_TYPE")?.to_owned(),
            commands,
            environment: environment.pairs(),
            resolv_conf: environment.flag("UPDATE_RESOLV_CONF")?,
        })
    }

    pub(super) async fn run(self, meter: &Arc<Meter>) -> Result<String, imaging::Error> {
        let device = self.device.display().to_string();
        meter.say(format!("running programs of {device}"));
        let this = self.clone();
        let mounted = blocking("mounting", move || {
            let mounted = Mounted::mount(&this.device, &this.fs_type, Purpose::Run)?;
            Partition::new(mounted, this.resolv_conf)
        });
        let partition = mounted.await?;
        let mut result = Ok(());
        for command in &self.commands {
            result = self.run_one(command, meter).await;
            if result.is_err() {
                break;
            }
        }
        let unmounted = blocking("unmounting", move || partition.unmount()).await;
        result.and(unmounted)?;
        let count = self.commands.len();
        let plural = if count == 1 { "" } else { "s" };
        Ok(format!("ran {count} command{plural} in {device}"))
    }

    async fn run_one(&self, words: &[String], meter: &Arc<Meter>) -> Result<(), imaging::Error> {
        let Some((program, arguments)) = words.split_first() else { return Ok(()) };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(ENVIRONMENT)
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        confine(&mut command, ProgramRoot::partition(Mounted::PLACE));
        let place = self.device.display().to_string();
        let run = Program { name: program, place: &place, input: None, returns_output: false };
        run.run(command, meter).await.map(drop)
    }
}

/// Mounted partition whose resolv.conf is replaced temporarily by the file of this OS. The drop
/// also restores the partition's own file, for an action that is stopped.
struct Partition {
    mounted: Option<Mounted>,
    /// True while this OS's resolv.conf replaces the partition's file.
    is_lent: bool,
}

impl Partition {
    fn new(mounted: Mounted, lend: bool) -> Result<Self, imaging::Error> {
        let mut partition = Self { mounted: Some(mounted), is_lent: false };
        if let Some(mounted) = partition.mounted.as_ref().filter(|_| lend) {
            let ours = std::fs::read(format!("/{}", RESOLV_CONF.path)).unwrap_or_default();
            mounted.set_aside(&RESOLV_CONF)?;
            partition.is_lent = true;
            mounted.write(RESOLV_CONF.path, &ours, READABLE)?;
        }
        Ok(partition)
    }

    fn give_back(&mut self) -> Result<(), imaging::Error> {
        match &self.mounted {
            Some(mounted) if std::mem::take(&mut self.is_lent) => mounted.put_back(&RESOLV_CONF),
            _ => Ok(()),
        }
    }

    fn unmount(mut self) -> Result<(), imaging::Error> {
        self.give_back()?;
        self.mounted.take().map_or(Ok(()), Mounted::unmount)
    }
}

impl Drop for Partition {
    fn drop(&mut self) {
        if let Err(error) = self.give_back() {
            tracing::warn!(reason = %stdx::chain(&error), "cannot restore resolv.conf");
        }
    }
}
