//! `tinboxd`: the supervisor. Reads its configuration, opens the store, and runs every service of
//! the box in one process until it is told to stop.
//!
//! Never: a decision that a lower crate could make. This crate only joins: it implements the narrow
//! traits of the boot services over one in-memory index, and wires everything in `wiring`.

mod agents;
mod boot_token;
mod config;
mod discovery;
mod hardware_views;
mod heap;
mod heard;
mod images;
mod index;
mod instances;
mod live;
mod loaders;
mod networks;
mod objects;
mod observers;
mod private_file;
mod pump;
mod recorder;
mod wiring;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

/// Exit code of a configuration that cannot be used (sysexits.h, EX_CONFIG is 78; 64 is EX_USAGE).
const BAD_CONFIG: u8 = 64;

/// The provisioning box in one process.
///
/// Serves DHCP, TFTP, HTTP boot, instance metadata, agents and the Kubernetes-compatible API, and
/// drives the machines' management controllers. The administrator's kubeconfig is written to
/// STATE/admin.kubeconfig at the first start.
#[derive(Parser)]
#[command(
    name = "tinboxd",
    version,
    after_help = "Example:\n  tinboxd --state /var/lib/tinbox \
    --config /etc/tinbox.toml"
)]
struct Arguments {
    /// Folder of everything that must survive a restart; made when absent.
    #[arg(long, value_name = "DIR")]
    state: PathBuf,
    /// Configuration in TOML.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Read the configuration, say what is wrong with it, and stop.
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    heap::bound();
    let arguments = Arguments::parse();
    start_log();
    let config = match config::load(&arguments.config) {
        Ok(config) => config,
        Err(problems) => {
            eprintln!("error: {problems}");
            return ExitCode::from(BAD_CONFIG);
        }
    };
    if arguments.check {
        println!("{} is good", arguments.config.display());
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(8)
        .enable_all()
        .build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(wiring::run(&arguments.state, config)),
        Err(error) => Err(anyhow::Error::new(error).context("cannot start the runtime")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "tinboxd stops");
            ExitCode::FAILURE
        }
    }
}

/// Log lines go to standard error; `TINBOX_LOG` takes a filter such as `info,dhcp=debug`.
fn start_log() {
    let filter = EnvFilter::try_from_env("TINBOX_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}
