//! `make demo-capi`: Cluster API provisions a virtual NUC, with live output.

mod capt;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::ensure;
use clap::{Parser, ValueEnum};
use scenarios::{QuickStart, say};

/// Let Cluster API claim, provision and release a virtual NUC.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Provider of the management cluster.
    #[arg(long, env = "DEMO_MODE", value_name = "DEMO_MODE", default_value = "box")]
    mode: Mode,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    /// The box itself
    Box,
    /// Stock Cluster API Provider Tinkerbell, with the box as its external Tinkerbell
    Capt,
}

fn main() -> ExitCode {
    scenarios::exit(run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "the demo needs root\n\
         why: it makes network namespaces, a bridge and tap devices for the virtual rack\n\
         hint: sudo make demo-capi"
    );
    let begun = Instant::now();
    match arguments.mode {
        Mode::Box => quick_start()?,
        Mode::Capt => capt::run()?,
    }
    say(&format!("done in {:.0} s", begun.elapsed().as_secs_f32()));
    Ok(())
}

fn quick_start() -> anyhow::Result<()> {
    let quick_start = QuickStart::start("demo-capi")?;
    quick_start.create()?;
    quick_start.join()?;
    quick_start.delete()?;
    quick_start.succeed();
    Ok(())
}
