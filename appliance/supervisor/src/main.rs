//! `tinboxd`: the supervisor. The program reads its configuration, opens the store, and runs all
//! services of the box in one process until a signal stops the process.
//!
//! Never: a decision that a lower crate could make. This crate only connects the others:
//! `provisioning` handles the machines, `lifecycle` the box itself, and `wiring` starts every
//! service. Enter at `wiring::run`.

mod access_tokens;
mod bmc_readings;
mod consoles;
mod device_id;
mod discovery;
mod handlers;
mod heap;
mod journal;
mod start;
mod status_builder;
mod wiring;

use std::ffi::OsStr;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use config::{Config, SystemKind};
use lifecycle::{backups, confined, copies, firmware, opened, sealing};
use tokio::task::JoinSet;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Exit code for an invalid configuration: 64, which sysexits.h calls EX_USAGE (EX_CONFIG is 78).
const BAD_CONFIG: u8 = 64;
/// Maximum wait at the end for blocking tasks, such as the assembly of boot media on a slow disk.
/// Process 1 kills the supervisor 15 s after the request to stop.
const BLOCKING_GRACE: Duration = Duration::from_secs(5);

/// The provisioning box in one process.
///
/// Serves DHCP, TFTP, HTTP boot, instance metadata, agents and the Kubernetes-compatible API, and
/// switches machines on and off through their BMCs. The administrator's kubeconfig is written to
/// STATE/admin.kubeconfig at the first start.
#[derive(Parser)]
#[command(
    name = "tinboxd",
    version,
    after_help = "The environment variable TINBOX_LOG filters the log, such as info,dhcp=debug \
    [default: info].\n\nExample:\n  tinboxd --state /var/lib/tinbox --config /etc/tinbox.toml"
)]
struct Arguments {
    /// Folder of everything that must survive a restart; created if it is missing.
    #[arg(long, value_name = "DIR", required_unless_present = "firmware")]
    state: Option<PathBuf>,
    /// Configuration file in TOML.
    #[arg(long, value_name = "FILE", required_unless_present = "firmware")]
    config: Option<PathBuf>,
    /// Check the configuration, print its mistakes, and exit without starting a service. The exit
    /// code is 64 if there are mistakes.
    #[arg(long)]
    check: bool,
    /// Flag that process 1 sets: this machine is the box.
    #[arg(long, hide = true, conflicts_with_all = ["state", "config", "check"])]
    firmware: bool,
}

/// Path of this program on firmware.
const INSTALLED: &str = "/usr/bin/tinboxd";

fn main() -> ExitCode {
    if platform::init::is_first_process() {
        platform::init::run(OsStr::new(INSTALLED), &["--firmware"], &keys_to_destroy());
    }
    heap::bound();
    let arguments = Arguments::parse();
    // Only the box may read the files that its services write: keys, leases, private images.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    start_log();
    let system_kind = if arguments.firmware { SystemKind::Firmware } else { SystemKind::Guest };
    if !arguments.check
        && let Err(error) = resume(arguments.state.as_deref())
    {
        eprintln!("error: cannot continue a restore: {error}");
        return ExitCode::FAILURE;
    }
    let (state, given, file) = match (arguments.state, arguments.config) {
        (Some(state), Some(file)) => match config::load(&file, system_kind) {
            Ok(_) if arguments.check => {
                println!("{} is good", file.display());
                return ExitCode::SUCCESS;
            }
            Ok(config) => (state, Some(config), file),
            Err(problems) => {
                eprintln!("error: {problems}");
                return ExitCode::from(BAD_CONFIG);
            }
        },
        _ => (firmware::state(), None, firmware::settings()),
    };
    // Before the first thread: later threads inherit the reduced rights.
    confined::enter(&state, given.as_ref(), system_kind);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(8)
        .enable_all()
        .build();
    let result = match runtime {
        Ok(runtime) => {
            let result = runtime.block_on(start(&state, given, (file, system_kind)));
            runtime.shutdown_timeout(BLOCKING_GRACE);
            result
        }
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

/// Returns the secret keys and their copies in order of destruction: the key of the store first.
fn keys_to_destroy() -> Vec<&'static str> {
    lifecycle::SECRET_KEYS.into_iter().chain(sealing::KEYS).chain(copies::KEYS).collect()
}

/// Continues an interrupted restore. Must run before the configuration is read, because a restore
/// replaces the configuration of firmware too.
fn resume(state: Option<&Path>) -> std::io::Result<()> {
    match state {
        Some(state) => backups::resume(state, |_| Ok(())),
        None => backups::resume(&firmware::state(), firmware::replace_settings),
    }
    .map(drop)
}

async fn start(
    state: &Path,
    given: Option<Config>,
    (file, system_kind): (PathBuf, SystemKind),
) -> anyhow::Result<()> {
    let trouble = copies::mend(state);
    let opened = opened::open(state, system_kind)?;
    let mut config = given.unwrap_or_else(|| firmware::config(opened.lost.is_some()));
    // The network tasks end with this function.
    let mut network = JoinSet::new();
    let firmware = match system_kind {
        SystemKind::Firmware => {
            Some(firmware::begin(&mut config, opened.lost.as_deref(), &mut network).await)
        }
        SystemKind::Guest => None,
    };
    wiring::run(state, (opened, trouble), (config, file), firmware).await
}

/// Writes log lines to standard error. The environment variable `TINBOX_LOG` sets a filter such as
/// `info,dhcp=debug`; the default is `info`.
fn start_log() {
    let filter = EnvFilter::try_from_env("TINBOX_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    // Log files and captured serial output must not contain color codes.
    let colors = std::io::stderr().is_terminal() && std::process::id() != 1;
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(colors);
    let kept = journal::JournalLayer(&journal::JOURNAL);
    tracing_subscriber::registry().with(filter).with(lines).with(kept).init();
}
