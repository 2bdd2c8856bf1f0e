//! `make bench-capi`: the box as the infrastructure provider of Cluster API, compared in one run
//! with stock Cluster API Provider Tinkerbell (CAPT) and Tinkerbell's own server on their own API
//! server.
//!
//! A machine's time begins with the request that creates its TinkerbellMachine, when all inputs
//! exist, and ends when its agent gets the first action of its installation. Both sides have the
//! real kube-apiserver, etcd, Cluster API managers, agent client and polling interval.

mod agents;
mod boxes;
mod latency;
mod machines;
mod management;
mod memory;
mod requests;
mod stock;

use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use figures::Table;

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    figures::exit(runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(run())))
}

async fn run() -> Result<()> {
    let load = std::fs::read_to_string("/proc/loadavg").context("cannot read the load")?;
    println!("load average: {}", load.trim());
    let mut table = Table::default();
    println!("CAPT and Tinkerbell's server");
    let stock = latency::of_stock().await.context("measuring CAPT with Tinkerbell")?;
    println!("the box");
    let ours = latency::of_box().await.context("measuring the box")?;
    latency::compare(&ours, &stock, &mut table);
    memory::compare(stock.rss_mib, &mut table).await.context("measuring paired clusters")?;
    let curve = boxes::measure().await.context("measuring several boxes")?;
    let missed = table.sum_up();
    curve.print();
    ensure!(missed == 0, "{missed} goals missed");
    Ok(())
}
