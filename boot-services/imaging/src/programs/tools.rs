//! Tools image: programs that the agent's OS does not include. The box serves the image, a
//! squashfs. The agent fetches it once per boot, when an action first needs a program.
//!
//! The initramfs has the image's SHA-256, so an agent runs only the image that belongs to its OS.
//! The image stays in memory, behind a read-only loop device. Each program mounts it separately
//! (see [`sys::confine`]).

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

/// File of the initramfs with the image's checksum and name, in the format of sha256sum.
const SUMS: &str = "/etc/tools.sha256";
/// File name of the image in [`SUMS`] and on the box.
const IMAGE: &str = "tools-x86_64.squashfs";
/// Port of the box's HTTP file server.
const PORT: u16 = 7080;
/// Path at which the file for the image is created. The file is unlinked before the download.
const KEPT: &str = "/run/tinbox-agent/tools.squashfs";
/// Additional environment variables: no warnings of lvm2 about inherited descriptors, and no wait
/// for udev by mdadm and lvm2.
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

/// Image for this boot, set at start; `None` if there is none.
static SOURCE: StdMutex<Option<Source>> = StdMutex::new(None);
/// Image that is already fetched and attached, with its source.
static ATTACHED: Mutex<Option<(Source, Tools)>> = Mutex::const_new(None);

/// Sets the image for later calls of [`Tools::get`].
pub fn set(source: Option<Source>) {
    *SOURCE.lock().unwrap_or_else(PoisonError::into_inner) = source;
}

/// Returns URL and checksum of the image for this initramfs; `None` without the file
/// `/etc/tools.sha256`. `authority` is `host:port` of the workflow service; the box serves the
/// image on the same host.
pub fn of_this_boot(authority: &str) -> Option<Source> {
    source(&std::fs::read_to_string(SUMS).ok()?, authority)
}

fn source(sums: &str, authority: &str) -> Option<Source> {
    let (host, _) = authority.rsplit_once(':')?;
    let url = format!("http://{host}:{PORT}/agent/{IMAGE}").parse().ok()?;
    Some(Source { url, checksum: find_sum(sums, IMAGE).ok()? })
}

/// Programs of the attached image.
#[derive(Debug, Clone)]
pub struct Tools {
    /// Open loop device. The kernel detaches the device and frees the image at the last close.
    _attached: Arc<File>,
    device: CString,
}

/// Program of the image to run, with arguments and input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Name of the program.
    pub program: &'static str,
    /// Arguments, without the program name.
    pub arguments: Vec<String>,
    /// Text for the program's standard input; `None` for no input.
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
    /// Returns the programs. The first call fetches the image.
    ///
    /// # Errors
    /// [`Error::NoTools`]: the box or the initramfs lacks the image. Errors of a download.
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

    /// Runs a program; its output goes to the log.
    ///
    /// # Errors
    /// [`Error::Program`]: the program fails.
    pub async fn run(&self, run: &Run, meter: &Meter) -> Result<(), Error> {
        self.start(run, false, None, meter).await.map(drop)
    }

    /// Runs a program with the mounted partition at `/mnt`; its output goes to the log.
    ///
    /// # Errors
    /// [`Error::Program`]: the program fails.
    pub async fn run_on(&self, run: &Run, _on: &Mounted, meter: &Meter) -> Result<(), Error> {
        self.start(run, false, Some(Mounted::PLACE), meter).await.map(drop)
    }

    /// Runs a program and returns its standard output.
    ///
    /// # Errors
    /// [`Error::Program`]: the program fails.
    pub async fn ask(&self, run: &Run, meter: &Meter) -> Result<String, Error> {
        self.start(run, true, None, meter).await
    }

    /// Reads a file of the image into memory.
    ///
    /// # Errors
    /// The image cannot be mounted, or lacks the file.
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
