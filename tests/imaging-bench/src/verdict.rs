//! Results of the runs, compared with each goal.

use figures::{Goal, Table, median};

use crate::contest::Part;
use crate::contestants::Contestant;
use crate::job::{Job, Packing};
use crate::timed::Took;

/// Goal: minimum ratio of the agent's speed to the speed of the job's slowest part alone.
const OF_THE_LIMIT: f64 = 0.9;
/// Goal: maximum ratio of the agent's time to the time of the decoder alone.
const OVER_THE_DECODER: f64 = 1.25;
/// Goal: maximum ratio of the agent's CPU time to the CPU time of the decoder alone.
const CPU_OVER_THE_DECODER: f64 = 1.5;
/// Goal: minimum ratio of the agent's speed to image2disk's speed.
const OF_IMAGE2DISK: f64 = 4.0;
/// Goal: maximum memory of an agent, in MiB.
const PEAK_MIB: f64 = 64.0;

/// Explanation of the goals, printed once.
pub const LEGEND: &str = "\
Three jobs, each from the box's own HTTP server onto a disk that held something else:
  zstd+sum  fetch the packed image, verify SHA-256 of what is served, decode, write
  raw       fetch the image as it is and write it, as dd, bmaptool and qemu-img do: no sum
  raw+sum   the same, and verify its SHA-256
Goals, as ours over another's:
  of the limit    GiB of image a second, over those of the slowest part of the job done alone:
                  writing zeros over the whole disk past the page cache (device), unpacking to
                  nowhere (zstd), summing the file in memory (sum). 1 is what no way of doing the
                  job that writes every byte could beat; who leaves out zeros may.
  over the decoder  seconds, and CPU seconds, of the whole job over those of unpacking alone
  CPU, same job   CPU seconds for a GiB of image, all processes of the contestant, over the least
                  of any peer that does the same job: fetches by HTTP and, where the job has a
                  sum, verifies it. The server's CPU is in nobody's figure.
  CPU, lesser jobs  the same beside who fetches but sums nothing, and who reads a local file, which
                  is no fetching at all: shown, no goal
  of image2disk   speed over that of Tinkerbell's own action: 4, or 0.9 of the limit where four
                  times its speed is more than that
  memory          the largest process, over 64 MiB";

/// Runs of one job.
pub struct Outcome<'a> {
    pub job: Job,
    /// Size of the image in GiB.
    pub gib: f64,
    pub ours: &'a Contestant,
    pub peers: &'a [Contestant],
    pub parts: &'a [Part],
}

/// Median of a figure.
pub fn middle(runs: &[Took], figure: fn(&Took) -> f64) -> f64 {
    median(runs.iter().map(figure).collect())
}

pub fn seconds(took: &Took) -> f64 {
    took.seconds
}

fn cpu(took: &Took) -> f64 {
    took.cpu_seconds
}

fn peak(took: &Took) -> f64 {
    took.peak_mib
}

/// One line of the list of runs.
pub fn print(name: &str, does: &str, runs: &[Took]) {
    let [s, c, p] = [seconds, cpu, peak].map(|figure| middle(runs, figure));
    println!("  {name:18}{does:16}{s:>8.2}{c:>10.2}{p:>10.1}");
}

impl Outcome<'_> {
    /// Adds the job's lines to the table.
    pub fn judge(&self, table: &mut Table) {
        self.judge_speed(table);
        self.judge_cpu(table);
        let peak = middle(&self.ours.runs, peak);
        self.add(table, "memory, MiB", peak, ("limit", PEAK_MIB), Goal::AtMost(1.0));
    }

    fn judge_speed(&self, table: &mut Table) {
        let rate = |runs: &[Took]| self.gib / middle(runs, seconds);
        let ours = rate(&self.ours.runs);
        let limits = self.parts.iter().filter(|part| part.limits);
        let limits = limits.map(|part| (part.name, rate(&part.runs)));
        let limit = limits.min_by(|a, b| a.1.total_cmp(&b.1));
        if let Some(limit) = limit {
            self.add(table, "GiB/s, of the limit", ours, limit, Goal::AtLeast(OF_THE_LIMIT));
        }
        if let Some((name, least)) = self.best(seconds, |_| true) {
            let fastest = (name, self.gib / least);
            self.add(table, "GiB/s, beside the fastest", ours, fastest, Goal::None);
        }
        if let Some((name, least)) = self.best(seconds, |peer| peer.name == "image2disk") {
            let theirs = self.gib / least;
            let reach = limit.map_or(OF_IMAGE2DISK, |(_, limit)| OF_THE_LIMIT * limit / theirs);
            // The goal applies to a packed image only.
            let packed = self.job.packing == Packing::Zstd;
            let goal = Goal::AtLeast(OF_IMAGE2DISK.min(reach));
            let goal = if packed { goal } else { Goal::None };
            self.add(table, "GiB/s, of image2disk", ours, (name, theirs), goal);
        }
        if let Some(decoder) = self.parts.iter().find(|part| part.name == "zstd alone") {
            let alone = (decoder.name, middle(&decoder.runs, seconds));
            let (what, took) = ("s, over the decoder", middle(&self.ours.runs, seconds));
            self.add(table, what, took, alone, Goal::AtMost(OVER_THE_DECODER));
        }
    }

    fn judge_cpu(&self, table: &mut Table) {
        let ours = middle(&self.ours.runs, cpu) / self.gib;
        if let Some(decoder) = self.parts.iter().find(|part| part.name == "zstd alone") {
            let alone = (decoder.name, middle(&decoder.runs, cpu) / self.gib);
            let what = "CPU-s/GiB, over the decoder";
            self.add(table, what, ours, alone, Goal::AtMost(CPU_OVER_THE_DECODER));
        }
        let (job, summed) = (self.job, self.job.summed);
        type Like<'a> = &'a dyn Fn(&Contestant) -> bool;
        let groups: [(&str, Like<'_>, Goal); 3] = [
            ("CPU-s/GiB, same job", &|peer| peer.does(job), Goal::AtMost(1.0)),
            (
                "CPU-s/GiB, who sums nothing",
                &|peer| summed && peer.fetches && !peer.sums,
                Goal::None,
            ),
            ("CPU-s/GiB, who reads a file", &|peer| !peer.fetches, Goal::None),
        ];
        for (what, like, goal) in groups {
            if let Some((name, least)) = self.best(cpu, like) {
                self.add(table, what, ours, (name, least / self.gib), goal);
            }
        }
    }

    fn add(
        &self,
        table: &mut Table,
        what: &str,
        ours: f64,
        beside: (&'static str, f64),
        goal: Goal,
    ) {
        table.add(&format!("{}: {what}", self.job.name()), ours, beside, goal);
    }

    /// Name and value of the peer with the smallest value of a figure.
    fn best(
        &self,
        figure: fn(&Took) -> f64,
        like: impl Fn(&Contestant) -> bool,
    ) -> Option<(&'static str, f64)> {
        let of_each = self.peers.iter().filter(|peer| like(peer));
        let figures = of_each.map(|peer| (peer.name, middle(&peer.runs, figure)));
        figures.min_by(|a, b| a.1.total_cmp(&b.1))
    }
}
