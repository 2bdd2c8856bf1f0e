//! `make bench-boot`: the box's boot services compared with common servers, in one run on one
//! machine. Compare ratios only: the machine may be busy, and its load is printed.
//!
//! Each protocol is a module that fills a [`Table`]. The box's servers run in a separate process
//! (`served`, `served-dhcp`), as the peers do, in a cgroup that counts their CPU time. Servers are
//! pinned to one core, clients to another. Must run in a network namespace of its own, as root.

mod cgroup;
mod dhcp;
mod http;
mod served;
mod server;
mod tftp;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, ensure};
use figures::Table;

/// Rounds, in which box and peers alternate; each figure is the median.
const ROUNDS: usize = 3;
/// Maximum ratio of the baseline's two results, before and after the measurements; a larger ratio
/// means that another program used the cores.
const QUIET: f64 = 1.25;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.as_slice() {
        [served, artifacts] if served == "served" => served::run(Path::new(artifacts)),
        [served, folder] if served == "served-dhcp" => dhcp::serve(Path::new(folder)),
        [one] if one == "reflect" => dhcp::reflect(),
        [one] if one == "first-ack" => dhcp::first_ack(),
        names => run(names),
    };
    figures::exit(done)
}

/// Measures the named protocols, or all.
fn run(names: &[String]) -> Result<()> {
    prepare_network()?;
    let rounds = std::env::var("ROUNDS").ok().and_then(|text| text.parse().ok());
    let rounds = rounds.unwrap_or(ROUNDS).max(1);
    println!("load average: {}", fs::read_to_string("/proc/loadavg")?.trim());
    let mut table = Table::default();
    let before = tftp::floor()?;
    let wanted = |name: &str| names.is_empty() || names.iter().any(|one| one == name);
    if wanted("tftp") {
        tftp::measure(rounds, &mut table).context("measuring TFTP")?;
    }
    if wanted("http") {
        http::measure(rounds, &mut table).context("measuring HTTP")?;
    }
    if wanted("dhcp") {
        dhcp::measure(rounds, &mut table).context("measuring DHCP")?;
    }
    let after = tftp::floor()?;
    println!(
        "floor, ms of CPU to send a MB datagram by datagram: {before:.3} before, {after:.3} after"
    );
    if before.max(after) > before.min(after) * QUIET {
        println!("the machine was not quiet: the floor's passes differ by more than a quarter");
    }
    let missed = table.sum_up();
    ensure!(missed == 0, "{missed} goals were missed by more than a third");
    Ok(())
}

/// Sets loopback up, with a congestion control without pacing: cubic, or Reno where the kernel does
/// not allow cubic in a network namespace.
fn prepare_network() -> Result<()> {
    // tftpd-hpa finds its own address only if the machine has one besides 127.0.0.1.
    for line in ["link set lo up", "address replace 192.0.2.1 dev lo"] {
        let done = Command::new("ip").args(line.split(' ')).status().context("cannot run ip")?;
        ensure!(done.success(), "cannot set loopback up: run me as root in `unshare --net`");
    }
    let choice = "/proc/sys/net/ipv4/tcp_congestion_control";
    fs::write(choice, "cubic")
        .or_else(|_| fs::write(choice, "reno"))
        .context("cannot choose a congestion control: run me as root in `unshare --net`")
}
