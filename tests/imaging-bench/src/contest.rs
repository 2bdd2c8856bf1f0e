//! Who writes the image, each in turn onto the same spoiled disk.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use figures::{Goal, Table, median};
use peers::find;

use crate::served::Server;
use crate::target::Target;
use crate::timed::{Took, timed};

const GIB: f64 = (1_u64 << 30) as f64;
/// The most memory an agent may take, MiB.
const PEAK_MIB: f64 = 64.0;

/// How the image is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    Raw,
    Zstd,
}

impl Packing {
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Zstd => "zstd",
        }
    }

    pub fn file(self) -> &'static str {
        match self {
            Self::Raw => "image.raw",
            Self::Zstd => "image.raw.zst",
        }
    }
}

/// Everything a run needs.
pub struct Ring<'a> {
    pub agent: PathBuf,
    pub images: &'a Path,
    pub server: &'a Server,
    pub target: &'a Target,
    /// For counts and words.
    pub scratch: &'a Path,
}

/// A way to do it.
struct Contestant {
    name: &'static str,
    line: String,
    /// It does all of the work: fetches over HTTP.
    fetches: bool,
    runs: Vec<Took>,
}

impl Ring<'_> {
    /// Writing zeros past the page cache: as fast as the device goes.
    ///
    /// # Errors
    /// It fails.
    pub fn device_alone(&self) -> Result<Took> {
        let count = self.target.bytes() >> 22;
        let device = self.target.device().display();
        self.time(&format!("dd if=/dev/zero of={device} bs=4M count={count} oflag=direct"))
    }

    /// What comes before the disk and nothing else: the decoder, or where there is none, the wire.
    ///
    /// # Errors
    /// It fails.
    pub fn source_alone(&self, packing: Packing) -> Result<Took> {
        match packing {
            Packing::Zstd => self.time(&format!("zstd -dcq {} >/dev/null", self.image(packing))),
            Packing::Raw => self.time(&format!("curl -sf {} >/dev/null", self.url(packing))),
        }
    }

    fn time(&self, line: &str) -> Result<Took> {
        timed(line, self.scratch)
    }

    fn image(&self, packing: Packing) -> String {
        self.images.join(packing.file()).display().to_string()
    }

    fn url(&self, packing: Packing) -> String {
        self.server.url(packing.file())
    }

    /// Ours, with its digest checked.
    fn ours(&self, packing: Packing, sum: &str) -> String {
        let (agent, device) = (self.agent.display(), self.target.device().display());
        format!("{agent} write --url {} --sha256 {sum} --disk {device}", self.url(packing))
    }

    fn peers(&self, packing: Packing) -> Vec<(&'static str, String)> {
        let (image, url) = (self.image(packing), self.url(packing));
        let device = self.target.device().display();
        let folder = self.images.display();
        let map = format!("{folder}/image.raw.bmap");
        let (fetch, read) = match packing {
            Packing::Zstd => (format!("curl -sf {url} | zstd -dcq"), format!("zstd -dcq {image}")),
            Packing::Raw => (format!("curl -sf {url}"), format!("cat {image}")),
        };
        // Only for O_DIRECT must a block be full; what dd skips must have been cleared before.
        let direct = format!("dd of={device} bs=4M iflag=fullblock oflag=direct conv=fsync");
        let sparse = format!("dd of={device} bs=64k iflag=fullblock conv=sparse,fsync");
        let clear = format!("blkdiscard {device}");
        let convert = "qemu-img convert -n -W -T none -t none -O raw";
        let qemu = match packing {
            Packing::Zstd => format!("{convert} -f qcow2 {folder}/image.qcow2 {device}"),
            Packing::Raw => format!("{convert} -f raw {image} {device}"),
        };
        vec![
            ("curl|dd direct", format!("{fetch} | {direct}")),
            ("curl|dd sparse", format!("{clear}; {fetch} | {sparse}")),
            ("dd direct", format!("{read} | {direct}")),
            ("dd sparse", format!("{clear}; {read} | {sparse}")),
            ("bmaptool", format!("{clear}; bmaptool -q copy --bmap {map} {image} {device}")),
            ("qemu-img", qemu),
        ]
    }

    /// One run on a spoiled disk, which is compared with the image when `compared`.
    fn run(&self, line: &str, compared: bool) -> Result<Took> {
        self.target.spoil()?;
        let took = self.time(line)?;
        if compared {
            let honest = self.target.compare(&self.images.join(Packing::Raw.file()));
            honest.with_context(|| format!("not what was asked for: {line}"))?;
        }
        Ok(took)
    }

    /// All contestants in turns, and the table's lines about them.
    ///
    /// # Errors
    /// Somebody fails, or wrote something else.
    pub fn measure(&self, packing: Packing, rounds: usize, table: &mut Table) -> Result<()> {
        let sum = sum_of(&self.images.join(packing.file()))?;
        let mut all = vec![Contestant::new("tinbox", self.ours(packing, &sum))];
        let peers = self.peers(packing).into_iter();
        all.extend(peers.map(|(name, line)| Contestant::new(name, line)));
        let (mut device, mut source) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            device.push(self.device_alone()?);
            source.push(self.source_alone(packing)?);
            for one in &mut all {
                // Peers are what they are: seen once they are believed.
                let compared = round == 0 || one.name == "tinbox";
                one.runs.push(self.run(&one.line, compared)?);
            }
        }
        let gib = self.target.bytes() as f64 / GIB;
        let source_name = match packing {
            Packing::Zstd => "zstd alone",
            Packing::Raw => "curl alone",
        };
        println!("\n{} of {gib} GiB{:>27}{:>10}{:>10}", packing.name(), "s", "CPU-s", "MiB");
        print("device alone, zeros", &device);
        print(source_name, &source);
        all.iter().for_each(|one| print(one.name, &one.runs));
        println!();
        let Some((ours, peers)) = all.split_first() else { return Ok(()) };
        let limits = [("device alone", &device), (source_name, &source)];
        judge(packing, gib, ours, peers, limits, table);
        Ok(())
    }
}

impl Contestant {
    fn new(name: &'static str, line: String) -> Self {
        Self { name, fetches: line.contains("http://"), line, runs: Vec::new() }
    }
}

/// The middle of a figure.
fn middle(runs: &[Took], figure: fn(&Took) -> f64) -> f64 {
    median(runs.iter().map(figure).collect())
}

fn seconds(took: &Took) -> f64 {
    took.seconds
}

fn cpu(took: &Took) -> f64 {
    took.cpu_seconds
}

fn peak(took: &Took) -> f64 {
    took.peak_mib
}

fn print(name: &str, runs: &[Took]) {
    let [s, c, p] = [seconds, cpu, peak].map(|figure| middle(runs, figure));
    println!("  {name:32}{s:>10.2}{c:>10.2}{p:>10.1}");
}

/// The peer with the least of a figure.
fn best(
    peers: &[Contestant],
    figure: fn(&Took) -> f64,
    like: impl Fn(&Contestant) -> bool,
) -> (&'static str, f64) {
    let of_each = peers.iter().filter(|peer| like(peer));
    let figures = of_each.map(|peer| (peer.name, middle(&peer.runs, figure)));
    figures.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(("nobody", f64::NAN))
}

fn judge(
    packing: Packing,
    gib: f64,
    ours: &Contestant,
    peers: &[Contestant],
    limits: [(&'static str, &Vec<Took>); 2],
    table: &mut Table,
) {
    let title = |what: &str| format!("{}: {what}", packing.name());
    let rate = |seconds: f64| gib / seconds;
    let [device, source] = limits.map(|(name, runs)| (name, rate(middle(runs, seconds))));
    let limit = if device.1 < source.1 { device } else { source };
    let our_rate = rate(middle(&ours.runs, seconds));
    table.add(&title("GiB/s, beside the physical limit"), our_rate, limit, Goal::AtLeast(0.9));
    let (name, least) = best(peers, seconds, |_| true);
    table.add(&title("GiB/s, beside the fastest"), our_rate, (name, rate(least)), Goal::None);
    let our_cpu = middle(&ours.runs, cpu) / gib;
    let (name, least) = best(peers, cpu, |peer| peer.fetches);
    let beside = (name, least / gib);
    table.add(&title("CPU-s/GiB, who fetches too"), our_cpu, beside, Goal::AtMost(1.0));
    let (name, least) = best(peers, cpu, |peer| !peer.fetches);
    let (what, beside) = (title("CPU-s/GiB, who reads a file"), (name, least / gib));
    table.add(&what, our_cpu, beside, Goal::AtMost(1.0));
    if packing == Packing::Zstd {
        let source = limits[1].1;
        let alone = ("zstd alone", middle(source, seconds));
        let ours_took = middle(&ours.runs, seconds);
        table.add(&title("s, over the decoder alone"), ours_took, alone, Goal::AtMost(1.25));
        let alone = ("zstd alone", middle(source, cpu) / gib);
        table.add(&title("CPU-s/GiB, over the decoder"), our_cpu, alone, Goal::AtMost(1.5));
    }
    let our_peak = middle(&ours.runs, peak);
    table.add(&title("peak RSS, MiB"), our_peak, ("limit", PEAK_MIB), Goal::AtMost(1.0));
}

/// SHA-256 of a file as it is served, in hexadecimal.
///
/// # Errors
/// It cannot be read.
pub fn sum_of(file: &Path) -> Result<String> {
    let output = Command::new(find("sha256sum", "coreutils")?).arg(file).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let sum = said.split(' ').next().filter(|_| output.status.success());
    sum.map(str::to_owned).with_context(|| format!("cannot hash {}", file.display()))
}
