//! Measurement of the contestants: they alternate, each with the same overwritten disk. Limits are
//! measured alone: the device, the decoder and the checksum.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use figures::Table;
use peers::find;

use crate::contestants::{Contestant, Places, SUM, peers, tinbox};
use crate::job::{Job, Packing};
use crate::served::Server;
use crate::target::Target;
use crate::timed::{Took, timed};
use crate::verdict::{Outcome, print};

/// Programs, files and devices of a run.
pub struct Ring<'a> {
    pub agent: PathBuf,
    /// Path of Tinkerbell's image2disk, if available.
    pub image2disk: Option<PathBuf>,
    pub images: &'a Path,
    pub server: &'a Server,
    pub target: &'a Target,
    /// Folder for CPU counts and output.
    pub scratch: &'a Path,
}

/// A part of the job, measured alone.
pub struct Part {
    pub name: &'static str,
    line: String,
    /// True when no contestant can be faster than this part.
    pub limits: bool,
    pub runs: Vec<Took>,
}

impl Ring<'_> {
    /// Measures writing zeros with direct I/O: the maximum speed of the device.
    ///
    /// # Errors
    /// The command fails.
    pub fn device_alone(&self) -> Result<Took> {
        self.time(&self.device_line())
    }

    /// Measures decoding of the compressed image without writing.
    ///
    /// # Errors
    /// The command fails.
    pub fn decoder_alone(&self) -> Result<Took> {
        self.time(&self.decoder_line())
    }

    fn device_line(&self) -> String {
        let count = self.target.bytes() >> 22;
        let device = self.target.device().display();
        format!("dd if=/dev/zero of={device} bs=4M count={count} oflag=direct")
    }

    fn decoder_line(&self) -> String {
        format!("zstd -dcq {} >/dev/null", self.image(Packing::Zstd))
    }

    /// Parts of a job, the device first.
    fn parts(&self, job: Job) -> Vec<Part> {
        let part = |name, line, limits| Part { name, line, limits, runs: Vec::new() };
        let image = self.image(job.packing);
        let mut all = vec![part("device alone", self.device_line(), true)];
        match job.packing {
            Packing::Zstd => all.push(part("zstd alone", self.decoder_line(), true)),
            Packing::Raw => {
                let line = format!("curl -sf {} >/dev/null", self.server.url(job.packing.file()));
                all.push(part("curl alone", line, false));
            }
        }
        if job.summed {
            all.push(part("sum alone", format!("{SUM} {image}"), true));
        }
        all
    }

    fn time(&self, line: &str) -> Result<Took> {
        timed(line, self.scratch)
    }

    fn image(&self, packing: Packing) -> String {
        self.images.join(packing.file()).display().to_string()
    }

    /// Measures one run on an overwritten disk, which is compared with the image when `compared` is
    /// true.
    fn run(&self, line: &str, compared: bool) -> Result<Took> {
        self.target.spoil()?;
        let took = timed(line, self.scratch)?;
        if compared {
            let honest = self.target.compare(&self.images.join(Packing::Raw.file()));
            honest.with_context(|| format!("not what was asked for: {line}"))?;
        }
        Ok(took)
    }

    /// Measures all contestants alternately, and adds their lines to the table.
    ///
    /// # Errors
    /// A contestant fails, or wrote wrong data.
    pub fn measure(&self, job: Job, rounds: usize, table: &mut Table) -> Result<()> {
        let sum = sum_of(&self.images.join(job.packing.file()))?;
        let url = self.server.url(job.packing.file());
        let places = Places {
            agent: &self.agent,
            image2disk: self.image2disk.as_deref(),
            images: self.images,
            url: &url,
            sum: &sum,
            device: self.target.device(),
            scratch: self.scratch,
        };
        let (mut ours, mut peers) = (tinbox(&places, job), peers(&places, job));
        let mut parts = self.parts(job);
        for round in 0..rounds {
            for part in &mut parts {
                part.runs.push(self.time(&part.line)?);
            }
            ours.runs.push(self.run(&ours.line, true)?);
            for peer in &mut peers {
                // The output of a peer is compared only once, because it does not change.
                peer.runs.push(self.run(&peer.line, round == 0)?);
            }
        }
        let gib = self.target.bytes() as f64 / (1_u64 << 30) as f64;
        println!("\n{} of {gib} GiB{:>w$}{:>10}{:>10}", job.name(), "s", "CPU-s", "MiB", w = 28);
        parts.iter().for_each(|part| print(part.name, "", &part.runs));
        for one in std::iter::once(&ours).chain(&peers) {
            print(one.name, what_it_does(one), &one.runs);
        }
        println!();
        Outcome { job, gib, ours: &ours, peers: &peers, parts: &parts }.judge(table);
        Ok(())
    }
}

fn what_it_does(one: &Contestant) -> &'static str {
    match (one.fetches, one.sums) {
        (true, true) => "fetches, sums",
        (true, false) => "fetches",
        (false, _) => "reads a file",
    }
}

/// SHA-256 of a file as it is served, in hexadecimal.
///
/// # Errors
/// The file cannot be read, or openssl is missing.
pub fn sum_of(file: &Path) -> Result<String> {
    let mut command = Command::new(find("openssl", "openssl")?);
    let output = command.args(["dgst", "-sha256", "-r"]).arg(file).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let sum = said.split(' ').next().filter(|_| output.status.success());
    sum.map(str::to_owned).with_context(|| format!("cannot hash {}", file.display()))
}
