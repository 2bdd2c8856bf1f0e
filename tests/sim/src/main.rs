//! `tinbox-sim`: boots a simulated rack and prints a summary.

use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use dhcp::Mode;
use sim::{Faults, Settings, fleet};

/// Boot a simulated rack against the box's real engines.
#[derive(Parser)]
struct Arguments {
    /// Machines, all switched on within a second
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=40_000))]
    machines: u32,
    /// Seed of the first run
    #[arg(long, env = "SIM_SEED", default_value_t = 1)]
    seed: u64,
    /// Number of runs; each run after the first increases the seed by one
    #[arg(long, default_value_t = 1)]
    runs: u64,
    /// Service that the box offers to machines
    #[arg(long, value_enum, default_value_t = Service::Pool)]
    mode: Service,
    /// Faults: calm, rough or storm, then changes, as in rough,drop=10,kill=5,until=900
    #[arg(long, default_value = "rough")]
    faults: Faults,
    /// Simulate workflows of the --machines instead of their boots, with these faults: calm, rough,
    /// storm or outages
    #[arg(long, conflicts_with_all = ["mode", "faults", "watch"])]
    fleet: Option<fleet::Faults>,
    /// Print the events of the machine with this number
    #[arg(long)]
    watch: Option<usize>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Service {
    Pool,
    Reserved,
    Proxy,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    for seed in (0..arguments.runs).map(|run| arguments.seed.wrapping_add(run)) {
        let began = Instant::now();
        match run(&arguments, seed) {
            Ok(summary) => {
                let real = began.elapsed().as_secs_f64();
                println!("seed {seed}\n{summary}\n{real:.1} s real time, {}", resident());
            }
            Err(error) => {
                eprintln!("error: {error}\nhint: the same arguments with --seed {seed} repeat it");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

/// Runs one simulation and returns its summary as text.
fn run(arguments: &Arguments, seed: u64) -> Result<String, String> {
    if let Some(faults) = arguments.fleet {
        let machines = usize::try_from(arguments.machines).unwrap_or(usize::MAX);
        let summary = fleet::run(fleet::Settings { machines, seed, faults });
        return summary.map(|it| it.to_string()).map_err(|failure| failure.to_string());
    }
    let mode = match arguments.mode {
        Service::Pool => Mode::Pool,
        Service::Reserved => Mode::Reserved,
        Service::Proxy => Mode::Proxy,
    };
    let (faults, watch) = (arguments.faults, arguments.watch);
    let settings = Settings { mode, faults, watch, ..Settings::new(arguments.machines, seed) };
    sim::run(settings).map(|it| it.to_string()).map_err(|failure| failure.to_string())
}

/// Text with the maximum resident memory of this process so far (`VmHWM` of the kernel).
fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.map_or("memory unknown".to_owned(), |peak| format!("{} resident at most", peak.trim()))
}
