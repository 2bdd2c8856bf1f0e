//! TFTP compared with tftpd-hpa, dnsmasq and atftpd: one client, a rack of clients, and a network
//! with losses.

mod load;

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::served::TFTP_PORT;
use crate::server::{HOST, Server};
use figures::{Goal, Table, median};
use load::{Load, Took};

pub use load::floor;

const HPA_PORT: u16 = 1169;
const DNSMASQ_PORT: u16 = 69;
const ATFTPD_PORT: u16 = 1269;
const BIG: usize = 8 << 20;
const SMALL: usize = 1 << 20;

/// Load and figures of one measurement.
struct Case {
    what: &'static str,
    load: Load,
    figures: &'static [Figure],
}

/// A figure of a case, compared with the best of some peers.
struct Figure {
    what: &'static str,
    read: fn(&Took) -> f64,
    more_is_better: bool,
    beside: &'static [&'static str],
    goal: Goal,
}

const fn load(clients: usize, file: &'static str, window: u16, loss: u32) -> Load {
    Load { clients, file, window, loss }
}

/// Peers with which throughput is compared.
const USUAL: &[&str] = &["tftpd-hpa", "dnsmasq"];
const ALL: &[&str] = &["tftpd-hpa", "dnsmasq", "atftpd"];

const fn speed(goal: Goal) -> Figure {
    let read = |took: &Took| took.megabytes / took.seconds;
    Figure { what: "MB/s", read, more_is_better: true, beside: USUAL, goal }
}

const fn cost(beside: &'static [&'static str], goal: Goal) -> Figure {
    let read = |took: &Took| took.cpu_seconds * 1e3 / took.megabytes;
    Figure { what: "CPU ms/MB", read, more_is_better: false, beside, goal }
}

const fn duration(goal: Goal) -> Figure {
    Figure { what: "s", read: |took| took.seconds, more_is_better: false, beside: ALL, goal }
}

const CASES: [Case; 8] = [
    Case {
        what: "1 client, window 1",
        load: load(1, "big", 1, 0),
        figures: &[speed(Goal::None), cost(ALL, Goal::None)],
    },
    Case {
        what: "1 client, window 4",
        load: load(1, "big", 4, 0),
        figures: &[speed(Goal::AtLeast(1.5)), cost(ALL, Goal::None)],
    },
    Case {
        what: "1 client, window 8",
        load: load(1, "big", 8, 0),
        figures: &[speed(Goal::AtLeast(1.5)), cost(ALL, Goal::None)],
    },
    Case {
        what: "1 client, window 64",
        load: load(1, "big", 64, 0),
        figures: &[speed(Goal::AtLeast(1.5)), cost(ALL, Goal::None)],
    },
    Case {
        what: "100 clients, window 1",
        load: load(100, "small", 1, 0),
        figures: &[speed(Goal::None), cost(ALL, Goal::None)],
    },
    Case {
        what: "100 clients, window 8",
        load: load(100, "small", 8, 0),
        figures: &[speed(Goal::AtLeast(1.5)), cost(&["atftpd"], Goal::AtMost(0.5))],
    },
    Case {
        what: "10 clients, 1 % lost, window 1",
        load: load(10, "small", 1, 100),
        figures: &[duration(Goal::AtMost(0.15))],
    },
    Case {
        what: "10 clients, 1 % lost, window 8",
        load: load(10, "small", 8, 100),
        figures: &[duration(Goal::AtMost(0.15))],
    },
];

/// Adds the figures for TFTP to the table.
///
/// # Errors
/// A server is missing or fails, or a transfer does not end.
pub fn measure(rounds: usize, table: &mut Table) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let shelf = folder.path().join("ipxe");
    fs::create_dir(&shelf)?;
    fs::write(shelf.join("big"), vec![7; BIG])?;
    fs::write(shelf.join("small"), vec![7; SMALL])?;
    // Peers drop their privileges before they open a file.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(folder.path(), mode)?;
    let servers = servers(folder.path(), &shelf)?;
    for case in &CASES {
        let mut taken: Vec<Vec<Took>> = servers.iter().map(|_| Vec::new()).collect();
        for _ in 0..rounds {
            for ((server, port), taken) in servers.iter().zip(&mut taken) {
                let took = case.load.run(server, *port);
                taken.push(took.with_context(|| format!("{}: {}", server.name, case.what))?);
            }
        }
        for figure in case.figures {
            let middle = |taken: &[Took]| median(taken.iter().map(figure.read).collect());
            let ours = middle(&taken[0]);
            let peers =
                servers.iter().zip(&taken).map(|((server, _), taken)| (server.name, middle(taken)));
            let best = peers
                .filter(|(name, _)| figure.beside.contains(name))
                .reduce(|a, b| if (a.1 > b.1) == figure.more_is_better { a } else { b });
            let best = best.context("no peer was measured")?;
            table.add(&format!("TFTP {}, {}", case.what, figure.what), ours, best, figure.goal);
        }
    }
    Ok(())
}

/// All servers, ours first.
fn servers(folder: &Path, shelf: &Path) -> Result<Vec<(Server, u16)>> {
    let text = |path: &Path| path.to_str().map(ToOwned::to_owned).context("a path is not UTF-8");
    let me = text(&std::env::current_exe()?)?;
    let (artifacts, shelf) = (text(folder)?, text(shelf)?);
    crate::http::certificate(folder)?;
    let ours = Server::start("tinbox", (&me, ""), &["served", &artifacts], folder)?;
    let address = format!("{HOST}:{HPA_PORT}");
    let words = ["-L", "-s", "-u", "root", "-a", &address, &shelf];
    let hpa = Server::start("tftpd-hpa", ("in.tftpd", "tftpd-hpa"), &words, folder)?;
    let (root, host) = (format!("--tftp-root={shelf}"), format!("--listen-address={HOST}"));
    let words = [
        "--keep-in-foreground",
        "--conf-file=/dev/null",
        "--port=0",
        "--enable-tftp",
        "--tftp-max=300",
        "--user=root",
        "--pid-file=",
        "--bind-interfaces",
        &root,
        &host,
    ];
    let dnsmasq = Server::start("dnsmasq", ("dnsmasq", "dnsmasq-base"), &words, folder)?;
    let (host, port) = (HOST.to_string(), ATFTPD_PORT.to_string());
    let words = [
        "--daemon",
        "--no-fork",
        "--user",
        "root",
        "--group",
        "root",
        "--bind-address",
        &host,
        "--port",
        &port,
        "--maxthread",
        "300",
        &shelf,
    ];
    let atftpd = Server::start("atftpd", ("atftpd", "atftpd"), &words, folder)?;
    let mut servers =
        vec![(ours, TFTP_PORT), (hpa, HPA_PORT), (dnsmasq, DNSMASQ_PORT), (atftpd, ATFTPD_PORT)];
    for (server, port) in &mut servers {
        server.wait_for("udp", *port)?;
    }
    Ok(servers)
}
