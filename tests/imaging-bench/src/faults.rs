//! Faulty downloads: each must fail and leave an unbootable disk, or be resumed. The code is the
//! agent's own, with shorter timeouts.

mod server;

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use imaging::stream::{Accept, Algorithm, Checksum, Image, Proof, Summary, Timeouts, write_image};
use imaging::{Error, Meter};
use tokio::runtime::{Builder, Runtime};

use crate::contest::sum_of;
use crate::job::Packing;
use crate::target::Target;
use server::{Fault, FaultServer};

/// Timeouts of a download here, shorter than the agent's.
const TIMEOUTS: Timeouts = Timeouts {
    stall: Duration::from_secs(2),
    silence: Duration::from_secs(2),
    first_wait: Duration::from_millis(50),
    longest_wait: Duration::from_millis(200),
};
/// Maximum ratio of the bytes fetched after a cut to the missing bytes.
const AGAIN: f64 = 1.05;

/// Runs every fault with both packings.
///
/// # Errors
/// A fault was not noticed, or a download was not resumed.
pub fn show(images: &Path, target: &Target, scratch: &Path) -> Result<()> {
    println!("downloads that go wrong:");
    for packing in [Packing::Zstd, Packing::Raw] {
        let image = images.join(packing.file());
        let sum = sum_of(&image)?;
        let half = image.metadata()?.len() / 2;
        let proof = Some(sum.as_str());
        let broken = scratch.join(packing.file());

        let cut = FaultServer::start(&image, Fault::CutForGood { at: half })?;
        refused(packing, "a connection that breaks for good", &cut, None, target)?;
        drop(cut);

        copy(&image, &broken, half)?;
        let short = FaultServer::start(&broken, Fault::None)?;
        refused(packing, "half a file, no checksum", &short, None, target)?;
        refused(packing, "half a file", &short, proof, target)?;
        drop(short);

        copy(&image, &broken, half * 2)?;
        flip(&broken, half)?;
        let wrong = FaultServer::start(&broken, Fault::None)?;
        refused(packing, "one wrong byte", &wrong, proof, target)?;
        drop(wrong);
        fs::remove_file(&broken)?;

        let once = FaultServer::start(&image, Fault::CutOnce { at: half })?;
        mended(packing, &once, &sum, target, images)?;
    }
    Ok(())
}

/// Runs a download that must fail and leave an unbootable disk.
fn refused(
    packing: Packing,
    what: &str,
    server: &FaultServer,
    sum: Option<&str>,
    target: &Target,
) -> Result<()> {
    target.spoil()?;
    let error = match write(server, sum, target) {
        Err(error) => stdx::chain(&error),
        Ok(_) => bail!("{}, {what}: taken for success", packing.name()),
    };
    let blank = target.is_blank_at_the_beginning()?;
    ensure!(blank, "{}, {what}: something was left to boot", packing.name());
    let (name, short) = (packing.name(), error.chars().take(90).collect::<String>());
    println!("  {name:5}{what:34}failed, nothing to boot: {short}");
    Ok(())
}

/// Runs a download that must succeed and fetch little more than the missing bytes.
fn mended(
    packing: Packing,
    server: &FaultServer,
    sum: &str,
    target: &Target,
    images: &Path,
) -> Result<()> {
    target.spoil()?;
    let summary = write(server, Some(sum), target)?;
    target.compare(&images.join(Packing::Raw.file()))?;
    let over = server.sent() as f64 / summary.fetched as f64;
    ensure!(over <= AGAIN, "{} times the image was fetched after one cut", over);
    let name = packing.name();
    let what = "a connection that breaks once";
    println!("  {name:5}{what:34}went on where it broke off: {over:.3} of the image fetched");
    Ok(())
}

fn write(server: &FaultServer, sum: Option<&str>, target: &Target) -> Result<Summary, Error> {
    let image = Image {
        url: server.url().parse()?,
        proof: sum.and_then(|sum| Checksum::parse(Algorithm::Sha256, sum)).map(Proof::Sum),
        compressed: false,
        read_back: false,
        disk: target.device().to_owned(),
        accept: Accept::BlockDevices,
        timeouts: TIMEOUTS,
    };
    runtime()
        .map_err(Error::io("start the runtime"))?
        .block_on(write_image(&image, &Arc::new(Meter::default())))
}

/// A runtime with as many threads as the agent's.
fn runtime() -> std::io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(2).max_blocking_threads(8).enable_all().build()
}

/// Copies the first bytes of a file.
fn copy(from: &Path, to: &Path, bytes: u64) -> Result<()> {
    let mut part = File::open(from)?.take(bytes);
    let mut file = File::create(to)?;
    std::io::copy(&mut part, &mut file).context("no space for half an image")?;
    Ok(())
}

/// Inverts every bit of one byte.
fn flip(path: &Path, at: u64) -> Result<()> {
    let mut file = File::options().read(true).write(true).open(path)?;
    let mut byte = [0];
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut byte)?;
    file.seek(SeekFrom::Start(at))?;
    file.write_all(&[!byte[0]]).context("cannot change a byte")
}
