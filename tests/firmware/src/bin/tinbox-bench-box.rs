//! `make bench-box`: resources of the box, compared with the design's budgets (section 6): the
//! image, the agent OS, memory, and the start time. The start time is compared with an image whose
//! first process does nothing.
//!
//! Processors are emulated, so times are ratios; sizes are valid on any machine.

use std::fmt::Write as _;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result, ensure};
use figures::{Goal, Table, median};
use firmware::boot_volume;
use firmware::owner::{Owner, program};
use firmware::{BARE, FIRST_LINE, Image, PATIENCE, STARTING, Variant, run};
use image::{AGENT_OS_BUDGET, Arch, box_image_budget};
use qemu::{Board, Bus, Drive, Mark, Nic, Rack, RackConfig, Segment, poll};
use scenarios::{Artifacts, Lab, LabConfig};
use stdx::MacAddr;

/// Memory budgets: of the whole operating system, idle or with [`MACHINES`] machines, and of the
/// supervisor alone with these machines.
const SYSTEM_BUDGET_MIB: f64 = 96.0;
const SUPERVISOR_BUDGET_MIB: f64 = 32.0;
const MACHINES: u8 = 100;
/// Starts of each image; the median is used.
const STARTS: usize = 3;
/// Time without a decrease after which memory in use counts as steady.
const STEADY: Duration = Duration::from_secs(20);
const MIB: f64 = (1_u64 << 20) as f64;
const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0, 0xbb]);
const BOX: &str = "10.77.0.9";
const BOX_TOML: &str = "[[management]]\ninterface = \"eth0\"\naddress = \"10.77.0.9/24\"\n";
/// Units on the Box page, in MiB.
const UNITS: [(&str, f64); 3] = [("K", 1.0 / 1024.0), ("M", 1.0), ("G", 1024.0)];

fn main() -> ExitCode {
    figures::exit(bench())
}

fn bench() -> Result<()> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "measuring needs root: network namespaces\nhint: sudo make bench-box"
    );
    println!("load average: {}", fs::read_to_string("/proc/loadavg")?.trim());
    // On disk: a released image needs a gigabyte to compress, and the machines need the memory.
    let folder = tempfile::tempdir_in(qemu::out_dir())?;
    let own = Image::made(&folder.path().join("own"))?;
    let nothing = program("bare-box");
    let nothing = Variant { tinboxd: Some(&nothing), ..Variant::default() };
    let nothing = Image::variant(&folder.path().join("nothing"), &nothing)?;
    let mut table = Table::default();
    sizes(&own, &mut table)?;
    starts(&own, &nothing, &mut table)?;
    supervisor(&mut table)?;
    system(&own, folder.path(), &mut table)?;
    let missed = table.sum_up();
    ensure!(missed == 0, "{missed} goals were missed by more than a third");
    Ok(())
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / MIB
}

fn sizes(image: &Image, table: &mut Table) -> Result<()> {
    let length = |path: &Path| Ok::<_, std::io::Error>(fs::metadata(path)?.len());
    let packed = image.path.with_added_extension("xz");
    if packed.is_file() {
        let budget = ("budget", mib(box_image_budget(Arch::X86_64)));
        table.add("image as published, MiB", mib(length(&packed)?), budget, Goal::AtMost(1.0));
    } else {
        println!("the image was not packed as it is published: TINBOX_PUBLISH names no components");
    }
    let agent = Artifacts::open()?.root().join("agent");
    let agent = length(&agent.join("vmlinuz-x86_64"))? + length(&agent.join("initramfs-x86_64"))?;
    let budget = ("budget", mib(AGENT_OS_BUDGET));
    table.add("agent kernel and initramfs, MiB", mib(agent), budget, Goal::AtMost(1.0));
    Ok(())
}

/// Seconds from the loader's last line to each of the patterns, in one start.
fn start(image: &Image, patterns: &[&str]) -> Result<Vec<f64>> {
    let folder = tempfile::tempdir()?;
    let disk = folder.path().join("disk");
    image.copy(&disk)?;
    let board = Board::start(folder.path(), &Drive::new(&disk, Bus::Nvme))?;
    let (loaded, mark) = board.serial().wait_for_after(Mark::START, STARTING, PATIENCE)?;
    let since = |at: SystemTime| at.duration_since(loaded.at).unwrap_or_default().as_secs_f64();
    let said = patterns.iter().map(|pattern| {
        let (line, _) = board.serial().wait_for_after(mark, pattern, PATIENCE)?;
        Ok(since(line.at))
    });
    said.collect()
}

fn starts(own: &Image, nothing: &Image, table: &mut Table) -> Result<()> {
    let (mut bare, mut panel, mut api) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..STARTS {
        bare.extend(start(nothing, &[BARE])?);
        let times = start(own, &["drawing on the monitor", FIRST_LINE])?;
        panel.push(times[0]);
        api.push(times[1]);
    }
    let bare = ("bare process", median(bare));
    table.add("s from the loader to the panel, emulated", median(panel), bare, Goal::None);
    table.add("s from the loader to the API, emulated", median(api), bare, Goal::None);
    Ok(())
}

fn machines() -> String {
    let mut all = String::new();
    for number in 0..MACHINES {
        let _ = write!(
            all,
            "---\napiVersion: tinkerbell.org/v1alpha1\nkind: Hardware\n\
             metadata: {{name: machine{number}}}\nspec:\n  interfaces:\n  - dhcp:\n\
             \x20     mac: \"02:00:00:00:00:{number:02x}\"\n\
             \x20     ip: {{address: 10.77.1.{number}, netmask: 255.255.0.0}}\n"
        );
    }
    all
}

/// Measures `tinboxd` alone, as a process.
fn supervisor(table: &mut Table) -> Result<()> {
    let lab = Lab::start(LabConfig::new(RackConfig::new("bench-box")))?;
    let file = lab.file("machines.yaml", &machines())?;
    lab.tinbox(&["hardware", "push", "--file", file.to_str().context("the path is UTF-8")?])?;
    let rss = mib(lab.daemon.rss().context("tinboxd has ended")?);
    let budget = ("budget", SUPERVISOR_BUDGET_MIB);
    table.add("tinboxd with 100 machines, MiB", rss, budget, Goal::AtMost(1.0));
    let own = mib(lab.daemon.anonymous().context("tinboxd has ended")?);
    table.add("of it not its program's text, MiB", own, budget, Goal::None);
    lab.rack.succeed();
    Ok(())
}

/// Measures the whole operating system, as the box itself reports it.
fn system(image: &Image, folder: &Path, table: &mut Table) -> Result<()> {
    let disk = folder.join("disk");
    image.copy(&disk)?;
    boot_volume::put(&disk, "box.toml", BOX_TOML.as_bytes())?;
    let rack = Rack::build(RackConfig::new("bench-box"))?;
    let host = rack.add_host("owner", &[(Segment::Near, Ipv4Addr::new(10, 77, 0, 250))])?;
    let board = rack.add_board(&Drive::new(&disk, Bus::Nvme), (Segment::Near, Nic::E1000e, MAC))?;
    board.serial().wait_for_after(Mark::START, FIRST_LINE, PATIENCE)?;
    let owner = Owner::claims(&host, BOX, board.serial(), folder);
    owner.log_in();
    let idle = settled(&owner)?;
    let file = folder.join("machines.yaml");
    fs::write(&file, machines())?;
    run(owner.tinbox().args(["hardware", "push", "--file"]).arg(&file))?;
    let full = settled(&owner)?;
    let budget = ("budget", SYSTEM_BUDGET_MIB);
    table.add("the whole system, claimed, MiB", idle, budget, Goal::AtMost(1.0));
    table.add("the whole system with 100 machines, MiB", full, budget, Goal::AtMost(1.0));
    drop(board);
    rack.succeed();
    Ok(())
}

/// MiB in use, once the value has not decreased for [`STEADY`]: the memory of a claim is freed a
/// little later.
fn settled(owner: &Owner<'_>) -> Result<f64> {
    let (mut least, mut since) = (in_use(owner)?, Instant::now());
    Ok(poll("the memory in use to be steady", PATIENCE, || {
        let now = in_use(owner).ok()?;
        if now < least {
            (least, since) = (now, Instant::now());
        }
        (since.elapsed() >= STEADY).then_some(least)
    })?)
}

/// Memory in use on the Box page, in MiB.
fn in_use(owner: &Owner<'_>) -> Result<f64> {
    let page = run(&mut owner.curl("/box"))?;
    let (_, rest) = page.split_once("Memory").context("the Box page tells no memory")?;
    let text = rest.split_once(" of ").context("the Box page tells no memory")?.0;
    let figure = text.rsplit('>').next().unwrap_or_default();
    let unit = figure.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let factor = UNITS.iter().find(|(name, _)| *name == unit);
    let factor = factor.with_context(|| format!("an unknown unit: {unit:?} in {text:?}"))?.1;
    let number = figure[..figure.len() - unit.len()].parse::<f64>();
    Ok(number.with_context(|| format!("no number: {figure:?}"))? * factor)
}
