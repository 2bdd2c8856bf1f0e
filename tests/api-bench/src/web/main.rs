//! `make bench-web`: bytes and first byte of the page beside Tinkerbell's UI, and the cost of 20
//! open tabs while 100 machines change every second. Compare ratios only: the machine may be busy,
//! and its load is printed. Tinkerbell comes last, so that the figures of the box are there where
//! its server cannot be built.

mod browse;
mod load;
mod tinkerbell;

use std::fs;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use api_bench::client::{Access, Client};
use figures::{Goal, Table};

use self::browse::{BoxPages, Visit};

/// Maximum size of a page with all its files, compressed, in KiB: 60 kB.
const PAGE_KIB_MAX: f64 = 60_000.0 / 1024.0;
/// Maximum time to the first byte with 100 machines, in milliseconds.
const FIRST_BYTE_MS_MAX: f64 = 50.0;

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let done = runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(run()));
    figures::exit(done.map_err(|error: anyhow::Error| format!("{error:#}")))
}

async fn run() -> Result<()> {
    let load = fs::read_to_string("/proc/loadavg").context("cannot read the load")?;
    println!("load average: {}", load.trim());
    let mut table = Table::default();
    let pages = tokio::task::spawn_blocking(BoxPages::start).await??;
    let client = Client::new(Access::read(&pages.tinboxd.kubeconfig())?)?;
    load::fill(&client).await?;
    let ours = pages.visit("/")?;
    let list = pages.visit("/machines")?;
    limits(&mut table, "first page", &ours);
    limits(&mut table, "list of 100 machines", &list);
    load::measure(&mut table, &pages, &client).await.context("measuring 20 tabs")?;
    let peer = tokio::task::spawn_blocking(tinkerbell::visits).await?;
    let peer = peer.context("measuring Tinkerbell's UI")?;
    compare(&mut table, "first page", &ours, &peer.first);
    compare(&mut table, "list of 100 machines", &list, &peer.list);
    table.sum_up();
    Ok(())
}

/// Adds the limits of one page, which a phone gets as well.
fn limits(table: &mut Table, page: &str, ours: &Visit) {
    let mut add = |what: &str, value: f64, most: f64| {
        table.add(&format!("{page}, {what}"), value, ("limit", most), Goal::AtMost(1.0));
    };
    add("with files (KiB)", ours.bytes as f64 / 1024.0, PAGE_KIB_MAX);
    add("first byte (ms)", ours.first_byte_ms, FIRST_BYTE_MS_MAX);
    add("new connection (ms)", ours.connected_ms, FIRST_BYTE_MS_MAX);
}

/// Adds bytes and first byte of one page with its files, beside those of the peer.
fn compare(table: &mut Table, page: &str, ours: &Visit, peer: &Visit) {
    let who = "Tinkerbell";
    let kib = |visit: &Visit| visit.bytes as f64 / 1024.0;
    table.add(&format!("{page} (KiB)"), kib(ours), (who, kib(peer)), Goal::AtMost(1.0));
    let name = format!("{page}, first byte (ms)");
    table.add(&name, ours.first_byte_ms, (who, peer.first_byte_ms), Goal::AtMost(1.0));
}
