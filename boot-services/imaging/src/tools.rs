//! Programs that this OS does not have: a squashfs beside it on the box, fetched when an action
//! first needs one of them, once in a boot.
//!
//! Which image is meant says the initramfs itself, by its SHA-256: who has booted this OS may run
//! what came with it, and nothing else. It lies in memory as it came, behind a loop device that is
//! mounted for each program alone (see [`sys::confine`]): nothing of it is in anybody's way.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};

use rustix::mount::MountFlags;
use tokio::sync::Mutex;

use crate::inside::{self, Inside};
use crate::mount::Mounted;
use crate::program::{Program, SURROUNDINGS};
use crate::stream::{Checksum, Patience, Url, blocking, find_sum, read_into};
use crate::sys;
use crate::{Error, Meter};

/// In the initramfs: the image's sum and name, as sha256sum prints them.
const SUMS: &str = "/etc/tools.sha256";
/// The image's name there and on the box.
const IMAGE: &str = "tools-x86_64.squashfs";
/// Where the box serves what is beside the agent's kernel.
const PORT: u16 = 7080;
/// Where the image lies while it is being fetched; nameless after that.
const KEPT: &str = "/run/tinbox-agent/tools.squashfs";
/// Programs of lvm2 warn of what they inherit; mdadm and lvm would wait for a udev.
const QUIET: [(&str, &str); 3] =
    [("LVM_SUPPRESS_FD_WARNINGS", "1"), ("MDADM_NO_UDEV", "1"), ("DM_DISABLE_UDEV", "1")];

/// Where the image is and what it hashes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// On the box.
    pub url: Url,
    /// SHA-256.
    pub checksum: Checksum,
}

/// Of this boot; set as it starts.
static SOURCE: StdMutex<Option<Source>> = StdMutex::new(None);
/// What was fetched.
static ATTACHED: Mutex<Option<(Source, Tools)>> = Mutex::const_new(None);

/// From now on the image is this one.
pub fn set(source: Option<Source>) {
    *SOURCE.lock().unwrap_or_else(PoisonError::into_inner) = source;
}

/// As this OS's initramfs names it; `authority` is the workflow service's `host:port`.
pub fn of_this_boot(authority: &str) -> Option<Source> {
    source(&std::fs::read_to_string(SUMS).ok()?, authority)
}

fn source(sums: &str, authority: &str) -> Option<Source> {
    let (host, _) = authority.rsplit_once(':')?;
    let url = format!("http://{host}:{PORT}/agent/{IMAGE}").parse().ok()?;
    Some(Source { url, checksum: find_sum(sums, IMAGE).ok()? })
}

/// The programs, there to be run.
#[derive(Debug, Clone)]
pub struct Tools {
    /// Keeps the image in memory.
    _attached: Arc<File>,
    device: CString,
}

/// One run of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its name.
    pub program: &'static str,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Given to it on its standard input.
    pub input: Option<String>,
}

impl Run {
    /// A run without input.
    pub fn new(program: &'static str, arguments: impl IntoIterator<Item = String>) -> Self {
        Self { program, arguments: arguments.into_iter().collect(), input: None }
    }

    /// The same of words that are known beforehand, and of a device at the end.
    pub fn on(program: &'static str, words: &[&str], device: &str) -> Self {
        let words = words.iter().chain(std::iter::once(&device));
        Self::new(program, words.map(|word| (*word).to_owned()))
    }
}

impl Tools {
    /// The programs, fetched where they are not here yet.
    ///
    /// # Errors
    /// [`Error::NoTools`] says what the box lacks; those of a download.
    pub async fn get(meter: &Meter) -> Result<Self, Error> {
        let source = SOURCE.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let source = source.ok_or_else(|| Error::NoTools {
            reason: "this agent's OS came without a tools image".to_owned(),
        })?;
        let mut attached = ATTACHED.lock().await;
        if let Some((known, tools)) = attached.as_ref().filter(|(known, _)| *known == source) {
            tracing::debug!(url = %known.url, "the tools are here");
            return Ok(tools.clone());
        }
        meter.say(format!("fetching {}", source.url));
        let tools = Self::fetch(&source).await?;
        *attached = Some((source, tools.clone()));
        Ok(tools)
    }

    async fn fetch(source: &Source) -> Result<Self, Error> {
        let kept = blocking("keeping the tools", || {
            let place = inside::IMAGE_PLACE.to_string_lossy().into_owned();
            std::fs::create_dir_all(&place).map_err(Error::io(format!("create {place}")))?;
            let mut options = File::options();
            let file = options.read(true).write(true).create(true).truncate(true).open(KEPT);
            let file = file.map_err(Error::io(format!("create {KEPT}")))?;
            // Nameless, it goes with its last user.
            std::fs::remove_file(KEPT).map_err(Error::io(format!("remove {KEPT}")))?;
            Ok(file)
        });
        let kept = kept.await?;
        let into = kept.try_clone().map_err(Error::io(format!("open {KEPT} twice")))?;
        let fetched = read_into(&source.url, &source.checksum, Patience::DEFAULT, into).await;
        let size = fetched.map_err(|error| match error {
            Error::Status { url, status } => {
                Error::NoTools { reason: format!("the box does not serve {url} ({status})") }
            }
            error => error,
        })?;
        tracing::info!(url = %source.url, size = %stdx::bytes(size), "tools fetched");
        blocking("attaching the tools", move || {
            let (attached, device) =
                sys::attach(&kept).map_err(Error::io("attach the tools to a loop device"))?;
            Ok(Self { _attached: Arc::new(attached), device })
        })
        .await
    }

    /// Run one, and tell what it prints.
    ///
    /// # Errors
    /// [`Error::Program`] when it fails.
    pub async fn run(&self, run: &Run, meter: &Meter) -> Result<(), Error> {
        self.start(run, false, None, meter).await.map(drop)
    }

    /// Run one on a mounted partition, which is its `/mnt`.
    ///
    /// # Errors
    /// [`Error::Program`] when it fails.
    pub async fn run_on(&self, run: &Run, _on: &Mounted, meter: &Meter) -> Result<(), Error> {
        self.start(run, false, Some(Mounted::PLACE), meter).await.map(drop)
    }

    /// Run one for what it prints.
    ///
    /// # Errors
    /// [`Error::Program`] when it fails.
    pub async fn ask(&self, run: &Run, meter: &Meter) -> Result<String, Error> {
        self.start(run, true, None, meter).await
    }

    /// A file of the image, small enough for memory.
    ///
    /// # Errors
    /// When there is none.
    pub async fn file(&self, path: String) -> Result<Vec<u8>, Error> {
        let device = self.device.clone();
        let what = format!("read {path} of the tools image");
        let read = move || -> io::Result<Vec<u8>> {
            sys::own_mounts()?;
            let flags = MountFlags::RDONLY;
            rustix::mount::mount(&device, inside::IMAGE_PLACE, c"squashfs", flags, None)?;
            let place = inside::IMAGE_PLACE.to_string_lossy().into_owned();
            std::fs::read(Path::new(&place).join(path))
        };
        // A thread of its own: its mounts go with it, and are nobody else's.
        blocking("reading the tools", move || {
            let ended = std::thread::spawn(read).join();
            let bytes = ended.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
            bytes.map_err(Error::io(what))
        })
        .await
    }

    async fn start(
        &self,
        run: &Run,
        asked: bool,
        shown: Option<&'static CStr>,
        meter: &Meter,
    ) -> Result<String, Error> {
        tracing::info!(program = run.program, arguments = ?run.arguments, "running");
        let mut command = Command::new(run.program);
        command.args(&run.arguments).env_clear().envs(SURROUNDINGS).envs(QUIET);
        sys::confine(&mut command, Inside::image(self.device.clone(), shown));
        let input = run.input.as_deref();
        let program = Program { name: run.program, place: "the tools image", input, asked };
        program.run(command, meter).await
    }
}

#[cfg(test)]
mod tests {
    use super::source;

    #[test]
    fn the_image_is_named_by_the_initramfs_and_served_by_the_box() {
        let sum = "ab".repeat(32);
        let line = format!("{sum}  tools-x86_64.squashfs\n");
        let found = source(&line, "10.77.0.1:42113").unwrap();
        assert_eq!(found.url.to_string(), "http://10.77.0.1:7080/agent/tools-x86_64.squashfs");
        assert_eq!(found.checksum.to_string(), sum);
        let found = source(&line, "[fd00::1]:42113").unwrap();
        assert_eq!(found.url.address(), "[fd00::1]:7080");
        assert_eq!(source(&line, "nonsense"), None);
        assert_eq!(source(&format!("{sum}  other\n"), "10.77.0.1:42113"), None);
        assert_eq!(source("", "10.77.0.1:42113"), None);
    }
}
