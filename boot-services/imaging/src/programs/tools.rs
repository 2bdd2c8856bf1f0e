//! Programs that this OS does not include. The box serves them as a squashfs, which is fetched when
//! an action first needs a program, once in a boot.
//!
//! The initramfs itself names the image by its SHA-256. Therefore an agent runs only the image that
//! belongs to its OS. The image lies unchanged in memory, behind a loop device that is mounted
//! separately for each program (see [`sys::confine`]).

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};

use rustix::mount::MountFlags;
use tokio::sync::Mutex;

use super::program::{ENVIRONMENT, Program};
use crate::mount::Mounted;
use crate::stream::{Checksum, Timeouts, Url, find_sum, read_into};
use crate::sys;
use crate::sys::chroot::{self, ProgramRoot};
use crate::task::blocking;
use crate::{Error, Meter};

/// File of the initramfs with checksum and name of the image, as sha256sum prints them.
const SUMS: &str = "/etc/tools.sha256";
/// Name of the image in that file and on the box.
const IMAGE: &str = "tools-x86_64.squashfs";
/// Port on the box that serves the files of the agent's kernel.
const PORT: u16 = 7080;
/// Path of the image during its download. The file has no name after that.
const KEPT: &str = "/run/tinbox-agent/tools.squashfs";
/// Environment variables of the programs. lvm2 warns of inherited descriptors, and mdadm and lvm
/// would wait for udev.
const QUIET: [(&str, &str); 3] =
    [("LVM_SUPPRESS_FD_WARNINGS", "1"), ("MDADM_NO_UDEV", "1"), ("DM_DISABLE_UDEV", "1")];

/// URL and checksum of the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// URL of the image on the box.
    pub url: Url,
    /// Expected SHA-256 of the image.
    pub checksum: Checksum,
}

/// Image of this boot, set at start.
static SOURCE: StdMutex<Option<Source>> = StdMutex::new(None);
/// Image that is already fetched and attached.
static ATTACHED: Mutex<Option<(Source, Tools)>> = Mutex::const_new(None);

/// Sets the image for all later calls of [`Tools::get`].
pub fn set(source: Option<Source>) {
    *SOURCE.lock().unwrap_or_else(PoisonError::into_inner) = source;
}

/// Returns the image that this OS's initramfs names. `authority` is `host:port` of the workflow
/// service.
pub fn of_this_boot(authority: &str) -> Option<Source> {
    source(&std::fs::read_to_string(SUMS).ok()?, authority)
}

fn source(sums: &str, authority: &str) -> Option<Source> {
    let (host, _) = authority.rsplit_once(':')?;
    let url = format!("http://{host}:{PORT}/agent/{IMAGE}").parse().ok()?;
    Some(Source { url, checksum: find_sum(sums, IMAGE).ok()? })
}

/// The programs of the attached image.
#[derive(Debug, Clone)]
pub struct Tools {
    /// Keeps the image in memory.
    _attached: Arc<File>,
    device: CString,
}

/// One run of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Name of the program.
    pub program: &'static str,
    /// Arguments, without the program name.
    pub arguments: Vec<String>,
    /// Text for the standard input of the program.
    pub input: Option<String>,
}

impl Run {
    /// Creates a run without input.
    pub fn new(program: &'static str, arguments: impl IntoIterator<Item = String>) -> Self {
        Self { program, arguments: arguments.into_iter().collect(), input: None }
    }

    /// Creates a run from fixed arguments, with a device as the last argument.
    pub fn on(program: &'static str, words: &[&str], device: &str) -> Self {
        let words = words.iter().chain(std::iter::once(&device));
        Self::new(program, words.map(|word| (*word).to_owned()))
    }
}

impl Tools {
    /// Returns the programs. Fetches the image on the first call.
    ///
    /// # Errors
    /// [`Error::NoTools`] says what the box lacks; errors of a download.
    pub async fn get(meter: &Meter) -> Result<Self, Error> {
        let source = SOURCE.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let source = source.ok_or_else(|| Error::NoTools {
            reason: "the agent's OS has no tools image".to_owned(),
        })?;
        let mut attached = ATTACHED.lock().await;
        if let Some((known, tools)) = attached.as_ref().filter(|(known, _)| *known == source) {
            tracing::debug!(url = %known.url, "the tools are ready");
            return Ok(tools.clone());
        }
        meter.say(format!("fetching {}", source.url));
        let tools = Self::fetch(&source).await?;
        *attached = Some((source, tools.clone()));
        Ok(tools)
    }

    async fn fetch(source: &Source) -> Result<Self, Error> {
        let kept = blocking("storing the tools", || {
            let place = chroot::IMAGE_PLACE.to_string_lossy().into_owned();
            std::fs::create_dir_all(&place).map_err(Error::io(format!("create {place}")))?;
            let mut options = File::options();
            let file = options.read(true).write(true).create(true).truncate(true).open(KEPT);
            let file = file.map_err(Error::io(format!("create {KEPT}")))?;
            // A file without a name is freed with its last user.
            std::fs::remove_file(KEPT).map_err(Error::io(format!("remove {KEPT}")))?;
            Ok(file)
        });
        let kept = kept.await?;
        let into = kept.try_clone().map_err(Error::io(format!("open {KEPT} twice")))?;
        let fetched = read_into(&source.url, &source.checksum, Timeouts::DEFAULT, into).await;
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

    /// Runs a program and sends its output to the log.
    ///
    /// # Errors
    /// [`Error::Program`] when the program fails.
    pub async fn run(&self, run: &Run, meter: &Meter) -> Result<(), Error> {
        self.start(run, false, None, meter).await.map(drop)
    }

    /// Runs a program on a mounted partition, which is `/mnt` for the program.
    ///
    /// # Errors
    /// [`Error::Program`] when the program fails.
    pub async fn run_on(&self, run: &Run, _on: &Mounted, meter: &Meter) -> Result<(), Error> {
        self.start(run, false, Some(Mounted::PLACE), meter).await.map(drop)
    }

    /// Runs a program and returns its standard output.
    ///
    /// # Errors
    /// [`Error::Program`] when the program fails.
    pub async fn ask(&self, run: &Run, meter: &Meter) -> Result<String, Error> {
        self.start(run, true, None, meter).await
    }

    /// Reads a whole file of the image into memory.
    ///
    /// # Errors
    /// The image does not have the file.
    pub async fn file(&self, path: String) -> Result<Vec<u8>, Error> {
        let device = self.device.clone();
        let what = format!("read {path} of the tools image");
        let read = move || -> io::Result<Vec<u8>> {
            sys::own_mounts()?;
            let flags = MountFlags::RDONLY;
            rustix::mount::mount(&device, chroot::IMAGE_PLACE, c"squashfs", flags, None)?;
            let place = chroot::IMAGE_PLACE.to_string_lossy().into_owned();
            std::fs::read(Path::new(&place).join(path))
        };
        // A separate thread, because its mounts are visible only to it and end with it.
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
        returns_output: bool,
        shown: Option<&'static CStr>,
        meter: &Meter,
    ) -> Result<String, Error> {
        tracing::info!(program = run.program, arguments = ?run.arguments, "running");
        let mut command = Command::new(run.program);
        command.args(&run.arguments).env_clear().envs(ENVIRONMENT).envs(QUIET);
        sys::confine(&mut command, ProgramRoot::image(self.device.clone(), shown));
        let input = run.input.as_deref();
        let program =
            Program { name: run.program, place: "the tools image", input, returns_output };
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
