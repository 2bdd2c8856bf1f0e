//! The box's disk image as its owner gets it: flashed, booted, damaged and booted again.
//!
//! Never: the supervisor's service for machines (scenarios and peers test that, with the program as
//! a process). Enter at [`Image::made`], [`Image::copy`] for a disk to write to, and [`boots`]; at
//! [`contained`] for a box that needs no emulated machine.

use std::error::Error;
use std::fs;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use qemu::{Board, Bus, Drive, Mark};

pub mod boot_volume;
pub mod contained;
pub mod image_rack;
pub mod machines;
pub mod owner;
pub mod state_volume;
pub mod steps;

/// A developer's image of this checkout.
#[derive(Debug)]
pub struct Image {
    /// The disk image. The file with `.bmap` added to this name is the block map.
    pub path: PathBuf,
}

/// Differences of an image from this checkout's own.
#[derive(Debug, Clone, Copy, Default)]
pub struct Variant<'a> {
    /// Version of the release.
    pub release: Option<&'a str>,
    /// Program at [`INSTALLED`], which is process 1.
    pub tinboxd: Option<&'a Path>,
    /// Second program, at [`BESIDE`].
    pub beside: Option<&'a Path>,
}

impl Image {
    /// Builds the image (`image/dev.sh`) in `folder`.
    ///
    /// # Errors
    /// The script fails; its messages are on standard error already.
    pub fn made(folder: &Path) -> io::Result<Self> {
        Self::variant(folder, &Variant::default())
    }

    /// Builds a variant in `folder`, signed with the same key as the other images there.
    ///
    /// # Errors
    /// As [`Image::made`].
    pub fn variant(folder: &Path, variant: &Variant<'_>) -> io::Result<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../image/dev.sh");
        let mut command = Command::new(script);
        let settings = [
            ("TINBOX_RELEASE", variant.release.map(Path::new)),
            ("TINBOX_TINBOXD", variant.tinboxd),
            ("TINBOX_BESIDE", variant.beside),
        ];
        command.envs(settings.into_iter().filter_map(|(name, value)| Some((name, value?))));
        let output = command.arg(folder).stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err(io::Error::other(format!("image/dev.sh ended with {}", output.status)));
        }
        let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        Ok(Self { path })
    }

    /// Copies the image, with its holes, for a machine to write to.
    ///
    /// # Errors
    /// The disk is full.
    pub fn copy(&self, to: &Path) -> io::Result<()> {
        run(Command::new("cp").arg("--sparse=always").args([&self.path, to])).map(|_| ())
    }
}

/// Path of the box's program in an image.
pub const INSTALLED: &str = "/usr/bin/tinboxd";
/// Path of the program of [`Variant::beside`] in an image.
pub const BESIDE: &str = "/usr/bin/beside";
/// Console line of the box when it is ready.
pub const FIRST_LINE: &str = "tinboxd is ready";
/// Console line of `bare-box`, a first process without function.
pub const BARE: &str = "BARE-INIT";
/// Pattern of GRUB's console line before it starts a slot.
pub const STARTING: &str = "tinbox: starting slot ([ab])";
/// Timeout of a start: firmware, loader and kernel, emulated and in parallel with other tests.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// Boots a copy of `image`; returns the console line that reports the box as ready.
///
/// # Errors
/// The image does not come up in [`PATIENCE`]; with the console output.
pub fn boots(image: &Image) -> Result<String, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let disk = folder.path().join("disk");
    image.copy(&disk)?;
    let board = Board::start(folder.path(), &Drive::new(&disk, Bus::Nvme))?;
    let (_, mark) = board.serial().wait_for_after(Mark::START, STARTING, PATIENCE)?;
    let (line, _) = board.serial().wait_for_after(mark, FIRST_LINE, PATIENCE)?;
    Ok(line.text)
}

/// Runs `command` to its end; returns its output.
///
/// # Errors
/// It does not start, or fails; with its output.
pub fn run(command: &mut Command) -> io::Result<String> {
    let output = command.stdin(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if output.status.success() { Ok(said) } else { Err(io::Error::other(said)) }
}

/// Flips one bit of the byte at `offset`.
///
/// # Errors
/// The disk cannot be read or written.
pub fn flip(disk: &Path, offset: u64) -> io::Result<()> {
    let file = fs::File::options().read(true).write(true).open(disk)?;
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset)?;
    byte[0] ^= 1;
    file.write_all_at(&byte, offset)
}
