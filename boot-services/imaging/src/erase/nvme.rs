//! NVMe erase commands (NVM Express base specification 2.0): Format NVM (5.23) and Sanitize (5.24),
//! if Identify (5.17.2) reports support.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::EraseOperation;
use crate::sys::{self, NvmeAdmin};
use crate::{Error, Meter, MeterReading};

/// Length of an Identify response, in bytes.
pub const IDENTIFIED: usize = 4096;
/// Bytes read of the sanitize log page.
pub const LOG: usize = 512;
/// Timeouts of short commands, and of a format, which may take hours. The kernel resets a
/// controller after a timeout.
const SOON: Duration = Duration::from_secs(60);
const FORMAT: Duration = Duration::from_secs(24 * 3600);
/// Interval between two reads of the sanitize log.
const LOOK: Duration = Duration::from_secs(2);

/// Action of the Sanitize command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sanitize {
    /// Block erase: the medium erases every block.
    Block,
    /// Crypto erase: the controller destroys the encryption key.
    Crypto,
    /// Overwrite with zeros, one pass.
    Overwrite,
}

impl Sanitize {
    /// Actions by preference, each with its bit in SANICAP and its value of SANACT. Block erase is
    /// first, because it does not depend on the key's deletion.
    const ALL: [(Self, u32, u32); 3] =
        [(Self::Block, 1 << 1, 2), (Self::Crypto, 1, 4), (Self::Overwrite, 1 << 2, 3)];

    /// Returns command dword 10: SANACT, and one pass for an overwrite.
    fn word(self) -> u32 {
        const ONE_PASS: u32 = 1 << 4;
        let found = Self::ALL.iter().find(|(kind, ..)| *kind == self);
        let action = found.map_or(0, |(.., action)| *action);
        action | if self == Self::Overwrite { ONE_PASS } else { 0 }
    }
}

/// Erase abilities of a controller for one namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Abilities {
    /// True if the controller supports Format NVM.
    pub format: bool,
    /// True if Format NVM supports cryptographic erase.
    pub crypto_format: bool,
    /// True if Format NVM applies to all namespaces.
    pub format_all: bool,
    /// Supported sanitize actions, by preference.
    pub sanitize: Vec<Sanitize>,
    /// Names of the subsystem's other namespaces, which Sanitize would erase too.
    pub others: Vec<String>,
}

impl Abilities {
    /// Decodes the Identify Controller data. `others` are the subsystem's other namespaces.
    pub fn read(identified: &[u8; IDENTIFIED], others: Vec<String>) -> Self {
        let half = |at: usize| u16::from_le_bytes([identified[at], identified[at + 1]]);
        let (commands, formats) = (half(256), identified[524]);
        let sanitize = u32::from(half(328));
        let kinds = Sanitize::ALL.iter().filter(|(_, bit, _)| sanitize & bit != 0);
        Self {
            format: commands & 1 << 1 != 0,
            crypto_format: formats & 1 << 2 != 0,
            format_all: formats & 0b11 != 0,
            sanitize: kinds.map(|(kind, ..)| *kind).collect(),
            others,
        }
    }

    /// # Errors
    /// Format NVM is not supported or would erase other namespaces; the text is the reason.
    pub fn format(&self) -> Result<EraseOperation, String> {
        match self {
            Self { format: false, .. } => Err("its controller lacks Format NVM".to_owned()),
            Self { format_all: true, others, .. } if !others.is_empty() => {
                Err(format!("Format NVM of its controller would erase {} too", others.join(", ")))
            }
            _ => Ok(EraseOperation::Format { crypto: self.crypto_format }),
        }
    }

    /// # Errors
    /// Sanitize is not supported or would erase other namespaces; the text is the reason.
    pub fn sanitize(&self) -> Result<EraseOperation, String> {
        match self.sanitize.first() {
            None => Err("its controller lacks Sanitize".to_owned()),
            Some(_) if !self.others.is_empty() => {
                Err(format!("Sanitize would erase {} too", self.others.join(", ")))
            }
            Some(kind) => Ok(EraseOperation::Sanitize(*kind)),
        }
    }
}

/// Device that executes NVMe admin commands: a controller, or a test double.
pub trait Controller {
    /// Executes a command and fills `answer`. Returns the NVMe status, 0 for success.
    ///
    /// # Errors
    /// The kernel could not send the command.
    fn admin(&mut self, asked: &NvmeAdmin, answer: &mut [u8]) -> io::Result<u16>;

    /// Waits between two reads of the sanitize log.
    fn rest(&mut self);
}

/// NVMe namespace of this machine, with its controller.
#[derive(Debug)]
pub struct Namespace {
    controller: File,
    path: PathBuf,
    number: u32,
    others: Vec<String>,
}

impl Namespace {
    /// Opens the controller of a namespace. `folder` is its sysfs folder, `path` its device path.
    pub(super) fn open(folder: &Path, path: &Path) -> Result<Self, Error> {
        let device = folder.join("device").canonicalize();
        let device =
            device.map_err(Error::io(format!("find the controller of {}", path.display())))?;
        let missing = || Error::Io {
            doing: format!("find a live controller of {}", path.display()),
            source: io::ErrorKind::NotFound.into(),
        };
        let controller = Path::new("/dev").join(controller(&device).ok_or_else(missing)?);
        let opened = File::open(&controller);
        let text = std::fs::read_to_string(folder.join("nsid")).unwrap_or_default();
        let number = text.trim().parse();
        let bad = |_| io::Error::from(io::ErrorKind::InvalidData);
        Ok(Self {
            controller: opened.map_err(Error::io(format!("open {}", controller.display())))?,
            path: path.to_owned(),
            number: number.map_err(bad).map_err(Error::io(format!(
                "read the number of the namespace {}",
                path.display()
            )))?,
            others: others(Path::new("/sys/class/block"), folder),
        })
    }

    /// Returns the namespace id (NSID).
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn abilities(&mut self) -> Result<Abilities, Error> {
        const CONTROLLER: u32 = 1;
        let (others, path) = (self.others.clone(), self.path.clone());
        let failed = |reason| Error::Erase { path, reason };
        let identified = identify(self, 0, CONTROLLER);
        identified.map(|it| Abilities::read(&it, others)).map_err(failed)
    }
}

impl Controller for Namespace {
    fn admin(&mut self, asked: &NvmeAdmin, answer: &mut [u8]) -> io::Result<u16> {
        sys::nvme_admin(&self.controller, asked, answer)
    }

    fn rest(&mut self) {
        std::thread::sleep(LOOK);
    }
}

/// Returns the name of a controller of the namespace's sysfs device. With native multipath, the
/// device is a subsystem without a device node, and one of its live controllers is selected.
pub(super) fn controller(device: &Path) -> Option<String> {
    let name = device.file_name()?.to_string_lossy().into_owned();
    if !name.starts_with("nvme-subsys") {
        return Some(name);
    }
    let is_controller = |name: &String| {
        let number = name.strip_prefix("nvme");
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let entries = std::fs::read_dir(device).ok()?.flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut controllers: Vec<String> = names.filter(is_controller).collect();
    controllers.sort();
    let is_live = |name: &String| {
        let state = std::fs::read_to_string(device.join(name).join("state"));
        state.is_ok_and(|state| state.trim() == "live")
    };
    controllers.into_iter().find(is_live)
}

/// Lists the other namespaces in the subsystem of the namespace at `folder`.
fn others(class: &Path, folder: &Path) -> Vec<String> {
    let subsystem = |folder: &Path| {
        let text = std::fs::read_to_string(folder.join("device/subsysnqn")).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let controller = |folder: &Path| folder.join("device").canonicalize().ok();
    let ours = (subsystem(folder), controller(folder));
    let entries = std::fs::read_dir(class).into_iter().flatten().flatten();
    let all = entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_same = ours.0.is_some() && subsystem(path) == ours.0
            || ours.1.is_some() && controller(path) == ours.1;
        name.starts_with("nvme") && !path.join("partition").exists() && is_same
    });
    let names = all.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    let own = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut names: Vec<_> = names.filter(|name| *name != own).collect();
    names.sort();
    names
}

/// Executes a command. An NVMe status other than success is an error, as a sentence.
fn perform(
    controller: &mut impl Controller,
    what: &str,
    asked: &NvmeAdmin,
    answer: &mut [u8],
) -> Result<(), String> {
    match controller.admin(asked, answer) {
        Ok(0) => Ok(()),
        Ok(status) => Err(format!("its controller rejected {what}: {}", refusal(status))),
        Err(error) => Err(format!("cannot send {what} to its controller: {error}")),
    }
}

/// Returns a text for an NVMe status code (figures 93 to 95), without the Do Not Retry bit.
fn refusal(status: u16) -> String {
    let words = match status & 0x7ff {
        0x001 => "the command is not supported",
        0x002 => "a field is invalid",
        0x00c => "not now (command sequence error)",
        0x015 => "denied; a password (TCG Opal) may lock the disk",
        0x01c => "an earlier sanitize operation failed: only another sanitize is allowed",
        0x01d => "a sanitize operation is in progress",
        0x020 => "the namespace is write protected",
        0x10a => "the format is invalid",
        _ => "",
    };
    let separated = if words.is_empty() { "" } else { ", " };
    format!("status {status:#05x}{separated}{words}")
}

fn identify(
    controller: &mut impl Controller,
    namespace: u32,
    what: u32,
) -> Result<Box<[u8; IDENTIFIED]>, String> {
    const IDENTIFY: u8 = 0x06;
    let mut answer = Box::new([0; IDENTIFIED]);
    let words_10_11 = [what, 0];
    let asked = NvmeAdmin { opcode: IDENTIFY, namespace, words_10_11, timeout: SOON };
    perform(controller, "Identify", &asked, &mut answer[..])?;
    Ok(answer)
}

/// Formats a namespace with its current LBA format. `crypto` selects cryptographic erase.
///
/// # Errors
/// The controller refuses a command; the text is a sentence.
pub fn format(
    controller: &mut impl Controller,
    namespace: u32,
    crypto: bool,
) -> Result<(), String> {
    const FORMAT_NVM: u8 = 0x80;
    const NAMESPACE: u32 = 0;
    let identified = identify(controller, namespace, NAMESPACE)?;
    let words_10_11 = [format_word(&identified, crypto), 0];
    let asked = NvmeAdmin { opcode: FORMAT_NVM, namespace, words_10_11, timeout: FORMAT };
    perform(controller, "Format NVM", &asked, &mut [])
}

/// Builds command dword 10: current LBA format, metadata and protection settings, erase type.
fn format_word(namespace: &[u8; IDENTIFIED], crypto: bool) -> u32 {
    const USER_DATA: u32 = 1 << 9;
    const CRYPTOGRAPHIC: u32 = 2 << 9;
    let [formats, _, protection] = [25, 27, 29].map(|at| u32::from(namespace[at]));
    let current = u32::from(namespace[26]);
    // The upper bits of the format's number are valid only with at least 16 formats.
    let upper = if formats >= 16 { current >> 5 & 0b11 } else { 0 };
    let number = current & 0xf | upper << 12;
    let metadata = current & 1 << 4;
    let protected = (protection & 0b111) << 5 | (protection >> 3 & 1) << 8;
    number | metadata | protected | if crypto { CRYPTOGRAPHIC } else { USER_DATA }
}

/// Sanitize status log (5.16.1.25).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Progress of the operation, in 1/65536.
    pub done: u16,
    /// State of the most recent sanitize operation.
    pub state: State,
}

/// States of a sanitize operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The subsystem was never sanitized, or the state is unknown.
    Never,
    /// The last operation has succeeded.
    Completed,
    /// The operation is in progress; it continues even if the agent ends.
    UnderWay,
    /// The last operation has failed.
    Failed,
}

/// Decodes a sanitize status log.
pub fn progress(log: &[u8; LOG]) -> Progress {
    let state = match log[2] & 0b111 {
        1 | 4 => State::Completed,
        2 => State::UnderWay,
        3 => State::Failed,
        _ => State::Never,
    };
    Progress { done: u16::from_le_bytes([log[0], log[1]]), state }
}

fn look(controller: &mut impl Controller) -> Result<Progress, String> {
    const GET_LOG_PAGE: u8 = 0x02;
    const SANITIZE_STATUS: u32 = 0x81 | (LOG as u32 / 4 - 1) << 16;
    let mut log = [0; LOG];
    let asked = NvmeAdmin {
        opcode: GET_LOG_PAGE,
        namespace: u32::MAX,
        words_10_11: [SANITIZE_STATUS, 0],
        timeout: SOON,
    };
    perform(controller, "the sanitize log", &asked, &mut log)?;
    Ok(progress(&log))
}

/// Sanitizes the subsystem and waits for the end. If an operation is already in progress, waits for
/// its end instead: a sanitize survives a power failure and the end of the agent.
///
/// # Errors
/// The controller refuses, the operation fails, or the action is stopped; the text is a sentence.
pub fn sanitize(
    controller: &mut impl Controller,
    kind: Sanitize,
    meter: &Meter,
) -> Result<(), String> {
    const SANITIZE: u8 = 0x84;
    if look(controller)?.state != State::UnderWay {
        let words_10_11 = [kind.word(), 0];
        let asked = NvmeAdmin { opcode: SANITIZE, namespace: 0, words_10_11, timeout: SOON };
        perform(controller, "Sanitize", &asked, &mut [])?;
    }
    let MeterReading { total, doing, .. } = meter.read();
    loop {
        let Progress { done, state } = look(controller)?;
        match state {
            State::Completed => return Ok(()),
            State::Never => return Err("it accepted Sanitize, but did not start it".to_owned()),
            State::Failed => {
                let why = "its sanitize operation failed, and it accepts only another sanitize \
                    until one succeeds: run nvme-sanitize again, or replace the disk";
                return Err(why.to_owned());
            }
            State::UnderWay => {
                meter.set_done(total / (1 << 16) * u64::from(done));
                meter.say(format!("{doing}: {} % sanitized", (u32::from(done) * 100) >> 16));
            }
        }
        if meter.is_stopped() {
            return Err("the action was stopped; the disk continues to sanitize itself".to_owned());
        }
        controller.rest();
    }
}
