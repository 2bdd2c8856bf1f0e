//! `make bench-imaging`: writes an image to a disk with the agent's release program and with common
//! programs, in one run on one machine. Compare ratios only: the machine may be busy, and its load
//! is printed.
//!
//! Tinkerbell's own image2disk is included when IMAGE2DISK names its program, which is published
//! only inside a container image.
//!
//! A result is valid when the disk contains the image afterwards. The run is valid when the device
//! alone and the decoder alone took as long after it as before. Must run as root, for a loop
//! device.

mod contest;
mod contestants;
mod faults;
mod job;
mod served;
mod target;
mod timed;
mod verdict;

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use contest::Ring;
use figures::Table;
use job::{Job, Packing};
use served::Server;
use target::Target;
use verdict::LEGEND;

/// Rounds, in which the contestants alternate; each figure is the median.
const ROUNDS: usize = 3;
/// Maximum ratio of the baseline's two results; above it, another program disturbed the run.
const QUIET: f64 = 1.25;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.as_slice() {
        [serve, folder] if serve == "serve" => served::run(Path::new(folder)),
        names => run(names),
    };
    figures::exit(done)
}

/// Runs the named parts (`faults`, a packing, a job), or all.
fn run(names: &[String]) -> Result<()> {
    let root = rustix::process::geteuid().is_root();
    ensure!(root, "writing to a loop device needs root\nhint: sudo make bench-imaging");
    let folder = std::env::var_os("TINBOX_IMAGES")
        .context("TINBOX_IMAGES names no folder of images\nhint: make bench-imaging")?;
    let folder = PathBuf::from(folder);
    let images = folder.join("images");
    println!("load average: {}", fs::read_to_string("/proc/loadavg")?.trim());
    let about = images.join(Packing::Raw.file()).metadata();
    let about = about.context("the image is missing\nhint: make bench-imaging creates it")?;
    let filled = about.blocks() as f64 * 512.0 / about.len() as f64;
    let packed = images.join(Packing::Zstd.file()).metadata()?.len();
    let mib = packed >> 20;
    println!("image: {} MiB, {:.0} % data, {mib} MiB in zstd", about.len() >> 20, filled * 100.0);
    let scratch = tempfile::tempdir().context("cannot create a folder")?;
    let target = Target::new(scratch.path(), about.len())?;
    let server = Server::start(&folder, &scratch.path().join("server.log"))?;
    let own = std::env::current_exe().context("cannot find the running program")?;
    let agent = own.with_file_name("tinbox-agent");
    ensure!(agent.is_file(), "{} is missing\nhint: make bench-imaging", agent.display());
    let ring = Ring {
        agent,
        image2disk: image2disk()?,
        images: &images,
        server: &server,
        target: &target,
        scratch: scratch.path(),
    };
    let wanted = |name: &str| names.is_empty() || names.iter().any(|one| one == name);
    if wanted("faults") {
        faults::show(&images, &target, scratch.path()).context("downloads that go wrong")?;
    }
    let mut jobs = Job::ALL.to_vec();
    jobs.retain(|job| wanted(job.name()) || wanted(job.packing.name()));
    if jobs.is_empty() {
        return Ok(());
    }
    println!("\n{LEGEND}");
    measure(&ring, &jobs)
}

/// Path of Tinkerbell's program, if it is configured.
fn image2disk() -> Result<Option<PathBuf>> {
    let Some(program) = std::env::var_os("IMAGE2DISK").map(PathBuf::from) else {
        println!("image2disk takes no part\nhint: IMAGE2DISK=PATH names its program");
        return Ok(None);
    };
    ensure!(program.is_file(), "IMAGE2DISK: {} does not exist", program.display());
    Ok(Some(program))
}

fn measure(ring: &Ring, jobs: &[Job]) -> Result<()> {
    let rounds = std::env::var("ROUNDS").ok().and_then(|text| text.parse().ok());
    let rounds = rounds.unwrap_or(ROUNDS).max(1);
    let mut table = Table::default();
    let before = floor(ring)?;
    for job in jobs {
        ring.measure(*job, rounds, &mut table)
            .with_context(|| format!("measuring {}", job.name()))?;
    }
    let after = floor(ring)?;
    let [b, a] = [before, after].map(|(device, decoder)| format!("{device:.2} + {decoder:.2}"));
    println!("floor, s for the device and the decoder alone: {b} before, {a} after");
    let steady = |b: f64, a: f64| b.max(a) <= b.min(a) * QUIET;
    let quiet = steady(before.0, after.0) && steady(before.1, after.1);
    let missed = table.sum_up();
    ensure!(
        quiet,
        "the figures do not count: the floor's passes differ by more than a quarter\n\
         hint: run it again when nothing else runs"
    );
    ensure!(missed == 0, "{missed} goals were missed by more than a third");
    Ok(())
}

/// Seconds of the device alone and of the decoder alone: the better of two runs each. The first run
/// also loads the image into the page cache.
fn floor(ring: &Ring) -> Result<(f64, f64)> {
    let mut seconds = (f64::INFINITY, f64::INFINITY);
    for _ in 0..2 {
        ring.target.spoil()?;
        seconds.0 = seconds.0.min(ring.device_alone()?.seconds);
        seconds.1 = seconds.1.min(ring.decoder_alone()?.seconds);
    }
    Ok(seconds)
}
