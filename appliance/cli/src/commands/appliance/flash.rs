//! `box flash`: writes the box's image to exactly one disk.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use box_flash::{FlashProgress, Flashed, Image, Keys, Target, configure, flash, read_config};
use rustix::fs::OFlags;
use status::progress::Progress;

use crate::error::Error;
use crate::output::{Bar, Printer};
use crate::question::question;

/// Interval between progress updates.
const POLL: Duration = Duration::from_millis(200);

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Image file, `.img` or `.img.xz`. Its `.bmap` and the release's `SHA256SUMS` in the same
    /// folder are used if they exist; for `SHA256SUMS.minisig` see --key
    #[arg(value_name = "IMAGE")]
    image: PathBuf,

    /// Whole disk to overwrite, such as /dev/sdb; `lsblk` lists the disks
    #[arg(long, value_name = "DISK")]
    to: PathBuf,

    /// Check this box.toml and write it to the disk's volume TINBOX [default: a box without
    /// settings]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// File of minisign public keys; one of them must have signed SHA256SUMS [default:
    /// ~/.tinbox/update.pub; without this file, no signature is checked]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,

    /// Confirm without a prompt: last four characters of the disk's serial number (of the disk's
    /// name, if it has no serial number). Give more characters if the serial number of another disk
    /// of this machine has the same end
    #[arg(long, value_name = "SERIAL")]
    erase: Option<String>,
}

/// Writes the image and verifies it.
///
/// # Errors
/// The image is not on the disk. Before the disk is opened, an error leaves the disk unchanged; a
/// later error leaves a disk that does not boot.
pub async fn run(printer: &Printer, arguments: Arguments) -> Result<(), Error> {
    let Arguments { image, to, config, key, erase } = arguments;
    let config = config.as_deref().map(read_config).transpose()?;
    let keys = Keys::find(key.as_deref())?;
    let image = Image::find(&image, keys.as_ref())?;
    let cannot =
        |why: String, hint| Error::Unable { what: format!("write to {}", to.display()), why, hint };
    let looked = |found: io::Result<Target>| {
        let target = found
            .map_err(|error| cannot(error.to_string(), "`lsblk` shows which disks there are"))?;
        match target.refusal(image.map.size) {
            Some((why, hint)) => Err(cannot(why, hint)),
            None => Ok(target),
        }
    };
    // The name says why a disk cannot be opened. All else is about the disk that is open: another
    // one may have its name when a person has answered.
    looked(Target::find(&to))?;
    let busy = "is the disk mounted, or part of a RAID or LVM? `lsblk` shows the use of each disk";
    let disk = open(&to).map_err(|error| cannot(error.to_string(), busy))?;
    let target = looked(Target::of(&disk))?;
    for line in target.lines() {
        printer.note(&line);
    }
    if !image.mapped {
        printer.note("no block map beside the image: writing the whole image");
    }
    if !image.is_summed() {
        printer.note("no SHA256SUMS beside the image lists the image: no checksum is verified");
    } else if image.signed {
        printer.note("SHA256SUMS is signed by one of your keys");
    } else {
        printer.note("the author of the image was not verified: give the trusted keys with --key");
    }
    prove(&target, erase)?;
    let (now, again) = (looked(Target::of(&disk))?, "run the command again");
    if now.sequence != target.sequence {
        return Err(cannot("the medium was replaced".to_owned(), again));
    }
    let configured = if config.is_some() { ", with the configuration" } else { "" };
    let Flashed { bytes, discarded } =
        write(printer.bar(), image, (disk, target.size), config).await?;
    let name = to.display();
    let written = stdx::bytes(bytes);
    printer.line(&format!("{name} is a box{configured}: {written} written and verified"))?;
    if !discarded {
        printer.note(&format!(
            "the disk does not support discard: old data stays where the box has not written; if \
             the disk had secrets, run `dd if=/dev/zero of={name} bs=4M`, then this command again"
        ));
    }
    printer.note("next: put the disk into the box and switch the box on; its screen shows a code");
    Ok(())
}

/// Checks the confirmation: the end of the disk's serial number, typed by a person or from --erase.
fn prove(target: &Target, erase: Option<String>) -> Result<(), Error> {
    let proof = match erase {
        Some(proof) => proof,
        None if io::stdin().is_terminal() => {
            let words = format!("type {} to erase the disk: ", target.proof_of());
            question(&words, true)?.expose().to_owned()
        }
        None => {
            let why =
                "no terminal for a prompt: give --erase with the end of the disk's serial number";
            return Err(Error::Usage(why.to_owned()));
        }
    };
    if proof.trim().eq_ignore_ascii_case(target.proof()) {
        return Ok(());
    }
    let (proof, of) = (proof.trim(), target.proof_of());
    Err(Error::Usage(format!("{proof:?} is not {of}: nothing was written to {}", target.name)))
}

/// Opens the disk exclusively: the kernel refuses a disk in use (open(2), `O_EXCL`).
fn open(path: &Path) -> io::Result<File> {
    let alone = OFlags::EXCL.bits().cast_signed();
    OpenOptions::new().read(true).write(true).custom_flags(alone).open(path)
}

/// Writes and verifies the image, then its configuration.
async fn write(
    mut bar: Bar,
    image: Image,
    (disk, size): (File, u64),
    config: Option<String>,
) -> Result<Flashed, Error> {
    let (progress, of_file, began) = (FlashProgress::default(), image.size, Instant::now());
    let counters = progress.clone();
    let work = move || -> Result<Flashed, Error> {
        let flashed = flash(&image, (&disk, size), &counters)?;
        config.iter().try_for_each(|text| configure(&disk, text))?;
        Ok(flashed)
    };
    let mut work = tokio::task::spawn_blocking(work);
    loop {
        tokio::select! {
            ended = &mut work => {
                bar.clear();
                return ended.map_err(|error| stopped(&error.to_string()))?;
            }
            _ = tokio::signal::ctrl_c() => progress.stop.store(true, Ordering::Relaxed),
            () = tokio::time::sleep(POLL) => {
                let read = progress.read.load(Ordering::Relaxed);
                let compared = progress.compared.load(Ordering::Relaxed);
                let (action, done, total) = match compared {
                    0 => ("writing", read, of_file),
                    _ => ("reading again", compared, 0),
                };
                bar.show(&Progress {
                    action: action.to_owned(),
                    message: String::new(),
                    bytes_done: done,
                    bytes_total: total,
                    millis: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
                });
            }
        }
    }
}

/// Returns the error of a copy whose thread ended without a result.
fn stopped(why: &str) -> Error {
    Error::Unable {
        what: "flash the disk (the disk has no system now)".to_owned(),
        why: why.to_owned(),
        hint: "run the command again",
    }
}
