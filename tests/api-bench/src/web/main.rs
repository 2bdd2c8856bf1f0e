//! `make bench-web`: bytes and first byte of the page beside Tinkerbell's UI, and the cost of 20
//! open tabs while 100 machines change every second. Compare ratios only: the machine may be busy,
//! and its load is printed.

mod browse;
mod load;
mod tinkerbell;

use std::fs;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use api_bench::client::{Access, Client};
use figures::{Goal, Table};

use self::browse::{BoxPages, Visit};

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
    let peer = tokio::task::spawn_blocking(tinkerbell::visits).await??;
    compare(&mut table, "first page", &ours, &peer.first);
    compare(&mut table, "list of 100 machines", &list, &peer.list);
    load::measure(&mut table, &pages, &client).await.context("measuring 20 tabs")?;
    table.sum_up();
    Ok(())
}

/// Adds bytes and first byte of one page with its files.
fn compare(table: &mut Table, page: &str, ours: &Visit, peer: &Visit) {
    let who = "Tinkerbell";
    let kib = |visit: &Visit| visit.bytes as f64 / 1024.0;
    table.add(&format!("{page} (KiB)"), kib(ours), (who, kib(peer)), Goal::AtMost(1.0));
    let name = format!("{page}, first byte (ms)");
    table.add(&name, ours.first_byte_ms, (who, peer.first_byte_ms), Goal::AtMost(1.0));
}
