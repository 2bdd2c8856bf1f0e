//! Programs that write the image, their commands, and the part of the job that each does.

use std::path::Path;

use crate::job::{Job, Packing};
use crate::timed::Took;

/// Fastest common checksum program: the one of coreutils does not use the processor's SHA
/// instructions.
pub const SUM: &str = "openssl dgst -sha256 -r";

/// Paths and URL of a job.
pub struct Places<'a> {
    /// The release build of the agent.
    pub agent: &'a Path,
    /// Path of Tinkerbell's image2disk, if available.
    pub image2disk: Option<&'a Path>,
    /// The folder of images.
    pub images: &'a Path,
    /// URL of the image.
    pub url: &'a str,
    /// SHA-256 of the served file, in hexadecimal.
    pub sum: &'a str,
    /// Path of the disk's device.
    pub device: &'a Path,
    /// Folder for a pipe and a checksum.
    pub scratch: &'a Path,
}

/// One way to do the job.
pub struct Contestant {
    pub name: &'static str,
    /// Command line for bash.
    pub line: String,
    /// True when the program fetches the image over HTTP; false when it reads the image's file.
    pub fetches: bool,
    /// True when the program verifies the SHA-256 of the served file while writing.
    pub sums: bool,
    pub runs: Vec<Took>,
}

impl Contestant {
    /// True when the program does all parts of the job.
    pub fn does(&self, job: Job) -> bool {
        self.fetches && (self.sums || !job.summed)
    }
}

/// The agent, with the checksum when the job has one.
pub fn tinbox(places: &Places<'_>, job: Job) -> Contestant {
    let (agent, device) = (places.agent.display(), places.device.display());
    let mut line = format!("{agent} write --url {} --disk {device}", places.url);
    if job.summed {
        line.push_str(&format!(" --sha256 {}", places.sum));
    }
    Contestant { name: "tinbox", line, fetches: true, sums: job.summed, runs: Vec::new() }
}

/// Commands of other programs: pipes that fetch, with a checksum where the job has one, and
/// programs that read a file.
pub fn peers(places: &Places<'_>, job: Job) -> Vec<Contestant> {
    let (url, device) = (places.url, places.device.display());
    let image = places.images.join(job.packing.file());
    let (image, folder) = (image.display(), places.images.display());
    let unpack = match job.packing {
        Packing::Zstd => " | zstd -dcq",
        Packing::Raw => "",
    };
    // Only O_DIRECT needs full blocks; blocks that dd skips must be cleared before.
    let direct = format!("dd of={device} bs=4M iflag=fullblock oflag=direct conv=fsync");
    let sparse = format!("dd of={device} bs=64k iflag=fullblock conv=sparse,fsync");
    let clear = format!("blkdiscard {device}");
    let map = format!("{folder}/image.raw.bmap");
    let convert = "qemu-img convert -n -W -T none -t none -O raw";
    let (read, convert) = match job.packing {
        Packing::Zstd => {
            let line = format!("{convert} -f qcow2 {folder}/image.qcow2 {device}");
            (format!("zstd -dcq {image}"), line)
        }
        Packing::Raw => (format!("cat {image}"), format!("{convert} -f raw {image} {device}")),
    };
    let curl = format!("curl -sf {url}");
    let mut all = vec![
        one("curl|dd direct", format!("{curl}{unpack} | {direct}"), true),
        one("curl|dd sparse", format!("{clear}; {curl}{unpack} | {sparse}"), true),
        one("dd direct", format!("{read} | {direct}"), false),
        one("dd sparse", format!("{clear}; {read} | {sparse}"), false),
        one("bmaptool", format!("{clear}; bmaptool -q copy --bmap {map} {image} {device}"), false),
        one("qemu-img", convert, false),
    ];
    if job.summed {
        let piped = |write: &str| summed(places, &curl, &format!("{unpack} | {write}"));
        all.push(Contestant { sums: true, ..one("curl|sum|direct", piped(&direct), true) });
        let line = format!("{clear}; {}", piped(&sparse));
        all.push(Contestant { sums: true, ..one("curl|sum|sparse", line, true) });
    }
    if let Some(program) = places.image2disk {
        let packed = job.packing == Packing::Zstd;
        let settings = format!("IMG_URL={url} DEST_DISK={device} COMPRESSED={packed}");
        all.push(one("image2disk", format!("{settings} {}", program.display()), true));
    }
    all
}

fn one(name: &'static str, line: String, fetches: bool) -> Contestant {
    Contestant { name, line, fetches, sums: false, runs: Vec::new() }
}

/// Returns a command line that pipes the output of `fetch` into `rest` and into the checksum
/// program, and compares the checksum at the end. Uses a named pipe, because a shell does not wait
/// for a process substitution.
fn summed(places: &Places<'_>, fetch: &str, rest: &str) -> String {
    let (pipe, said) = (places.scratch.join("pipe"), places.scratch.join("sum"));
    let (pipe, said, sum) = (pipe.display(), said.display(), places.sum);
    format!(
        "rm -f {pipe}; mkfifo {pipe}; {SUM} <{pipe} >{said} & {fetch} | tee {pipe}{rest}; \
         wait $!; grep -q {sum} {said}"
    )
}
