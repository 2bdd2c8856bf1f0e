//! `make bench-agents`: 200 simultaneous agents of a running box, over the real gRPC and TLS. The
//! baseline, in the same run on the same machine, is a server that answers the same messages and
//! stores nothing.
//!
//! The box answers a report once it is on the disk; the baseline answers at once. The agents share
//! the machine with both. Needs no root, but ports 42113 and 7080 on a loopback address of its own.

mod bare;
mod calls;
mod load;
mod rack;

use std::fs;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use agent_rpc::Pin;
use anyhow::{Context as _, Result, ensure};
use calls::{Call, Calls, Spread, spread};
use figures::{Goal, Table, median};
use load::Pace;
use peers::{Process, Tinboxd};
use rack::Rack;

/// Number of simultaneous agents.
const AGENTS: u8 = 200;
/// Rounds, in which box and baseline alternate; each figure is the median.
const ROUNDS: usize = 3;
/// Maximum ratio between the baseline's first and last result; a larger ratio means that another
/// program disturbed the run.
const QUIET: f64 = 1.25;
/// Goal for the 99th percentile of all calls, in milliseconds.
const GOAL_MS: f64 = 20.0;
/// Durable writes that measure the disk.
const DURABLE_WRITES: usize = 200;
/// Listen address of the baseline server.
const FLOOR: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 42_199);
/// Clock ticks per second in `/proc/PID/stat`, which Linux fixes for all programs and machines.
const TICKS: f64 = 100.0;
const START_LIMIT: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.as_slice() {
        [bare, folder] if bare == "bare" => bare::run(Path::new(folder), FLOOR),
        _ => run(),
    };
    figures::exit(done)
}

fn run() -> Result<()> {
    println!("load average: {}", fs::read_to_string("/proc/loadavg")?.trim());
    let tinboxd = Tinboxd::start().context("starting the box")?;
    let folder = tempfile::tempdir()?;
    let pin = bare::prepare(folder.path())?;
    let me = std::env::current_exe().context("cannot find the running program")?;
    let words = ["bare".to_owned(), folder.path().display().to_string()];
    let mut floor = Process::start(&me, &words, &folder.path().join("log"))?;
    let answers = || std::net::TcpStream::connect(FLOOR).is_ok();
    floor.wait_until("the floor's server", START_LIMIT, answers)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let floor = Floor { pin, process: floor.id(), _running: floor };
    let mut table = Table::default();
    runtime.block_on(async {
        let mut rack = Rack::new(&tinboxd, AGENTS)?;
        let steady = measure(&mut rack, tinboxd.id(), &tinboxd, &floor, &mut table).await?;
        let missed = table.sum_up();
        ensure!(
            steady,
            "the figures do not count: the floor's passes differ by more than a quarter\n\
             hint: run it again when nothing else runs"
        );
        ensure!(missed == 0, "{missed} goals were missed by more than a third");
        Ok(())
    })
}

/// Baseline server, which stores nothing.
struct Floor {
    pin: Pin,
    process: u32,
    _running: Process,
}

/// Calls of one round, and their cost for the server.
struct Run {
    calls: Calls,
    seconds: f64,
    cpu_seconds: f64,
}

impl Floor {
    async fn run(&self, pace: Pace) -> Result<Run> {
        let members = rack::strangers(AGENTS);
        timed(self.process, load::run(&members, &FLOOR.to_string(), self.pin, pace)).await
    }
}

async fn timed(process: u32, load: impl Future<Output = Result<Calls>>) -> Result<Run> {
    let (begun, before) = (Instant::now(), cpu_seconds(process)?);
    let calls = load.await?;
    let cpu_seconds = cpu_seconds(process)? - before;
    Ok(Run { calls, seconds: begun.elapsed().as_secs_f64(), cpu_seconds })
}

/// Measures all rounds; returns true when the baseline stayed constant.
async fn measure(
    rack: &mut Rack<'_>,
    process: u32,
    tinboxd: &Tinboxd,
    floor: &Floor,
    table: &mut Table,
) -> Result<bool> {
    let authority = format!("{}:42113", tinboxd.address());
    let rounds = std::env::var("ROUNDS").ok().and_then(|text| text.parse().ok());
    let rounds = rounds.unwrap_or(ROUNDS).max(1);
    let mut steady = true;
    let mut workflow = 0;
    print_disk(tinboxd.folder())?;
    for pace in [Pace::Machines, Pace::Rush] {
        let (mut ours, mut floors) = (Vec::new(), vec![floor.run(pace).await?]);
        for _ in 0..rounds {
            let (members, pin) = rack.work(workflow).await?;
            workflow += 1;
            ours.push(timed(process, load::run(&members, &authority, pin, pace)).await?);
            floors.push(floor.run(pace).await?);
        }
        let title = match pace {
            Pace::Machines => "as machines call",
            Pace::Rush => "as fast as it answers",
        };
        print(title, &ours, &floors);
        judge(pace, &ours, &floors, table);
        let cost = |run: &Run| run.cpu_seconds / run.calls.all().count as f64;
        let passes = [floors.first(), floors.last()].map(|run| run.map_or(f64::NAN, cost) * 1e6);
        let [before, after] = passes;
        println!("floor, CPU us a call: {before:.0} before, {after:.0} after\n");
        steady &= before.max(after) <= before.min(after) * QUIET;
    }
    print_disk(tinboxd.folder())?;
    Ok(steady)
}

/// Prints the duration of one durable write to the box's disk. It is the lower bound of a report; a
/// commit of the store needs two such writes.
fn print_disk(folder: &Path) -> Result<()> {
    let path = folder.join("durable");
    let mut file = fs::File::create(&path)?;
    let mut times = Vec::new();
    for _ in 0..DURABLE_WRITES {
        let begun = Instant::now();
        file.write_all(&[0xa5; 4096])?;
        file.sync_data().context("cannot flush the disk")?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    fs::remove_file(&path)?;
    let Spread { p50, p99, most, .. } = spread(times);
    println!("disk, ms for a durable write of 4 KiB: p50 {p50:.2}, p99 {p99:.2}, max {most:.2}");
    Ok(())
}

fn middle(runs: &[Run], figure: impl Fn(&Run) -> f64) -> f64 {
    median(runs.iter().map(figure).collect())
}

fn print(title: &str, ours: &[Run], floors: &[Run]) {
    println!("{AGENTS} agents, {title}:{:>40}{:>28}", "tinboxd, ms", "floor, ms");
    let heads = format!("{:>9}{:>9}{:>9}", "p50", "p99", "max");
    println!("  {:28}{:>8} {heads} {heads}", "", "calls");
    for call in Call::ALL {
        let count = ours.first().map_or(0, |run| run.calls.of(call).count);
        let three = |runs: &[Run]| {
            let p50 = middle(runs, |run| run.calls.of(call).p50);
            let p99 = middle(runs, |run| run.calls.of(call).p99);
            let most = middle(runs, |run| run.calls.of(call).most);
            format!("{p50:>9.2}{p99:>9.2}{most:>9.2}")
        };
        println!("  {:28}{count:>8} {} {}", call.name(), three(ours), three(floors));
    }
}

fn judge(pace: Pace, ours: &[Run], floors: &[Run], table: &mut Table) {
    let p99 = |run: &Run| run.calls.all().p99;
    let rate = |run: &Run| run.calls.all().count as f64 / run.seconds;
    let cost = |run: &Run| run.cpu_seconds * 1e6 / run.calls.all().count as f64;
    let beside = |figure: &dyn Fn(&Run) -> f64| ("floor", middle(floors, figure));
    match pace {
        Pace::Machines => {
            let ours = middle(ours, p99);
            table.add("p99 of all calls, ms", ours, ("limit", GOAL_MS), Goal::AtMost(1.0));
            table.add("p99 of all calls, ms", ours, beside(&p99), Goal::None);
        }
        Pace::Rush => {
            let limit = ("limit", GOAL_MS);
            table.add("rush: p99 of all calls, ms", middle(ours, p99), limit, Goal::None);
            let ours = middle(ours, rate);
            table.add("rush: calls/s", ours, beside(&rate), Goal::None);
        }
    }
    table.add("CPU us a call", middle(ours, cost), beside(&cost), Goal::None);
}

/// CPU time that a process has used, with the kernel's resolution of 10 ms.
fn cpu_seconds(process: u32) -> Result<f64> {
    let path = format!("/proc/{process}/stat");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    // The name may contain any character; after its parenthesis user and system time are words 11
    // and 12.
    let words = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks = words.skip(11).take(2).filter_map(|word| word.parse::<f64>().ok());
    Ok(ticks.sum::<f64>() / TICKS)
}
