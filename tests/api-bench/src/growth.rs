//! `tinbox-bench-api growth`: resources of a box with its maximum number of machines.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use futures_util::future::try_join_all;
use http::Method;
use peers::Tinboxd;
use serde_json::json;

use crate::until_ready;
use api_bench::client::{Access, Client};
use api_bench::rss_mib;

/// Number of machines that fill the box.
const MACHINES: usize = 10_000;
/// Size of the inventory of each machine, in bytes.
const INVENTORY_BYTES: usize = 10 * 1024;
const CLIENTS: usize = 16;
/// Idle time before the memory of a box is read.
const SETTLED: Duration = Duration::from_secs(20);

const COLLECTION: &str = "/apis/tinkerbell.org/v1alpha1/namespaces/default/hardware";

/// Fills a box with machines, restarts the box, and prints the figures before and after the
/// restart.
///
/// # Errors
/// The box refuses a machine, or does not start.
pub async fn run() -> Result<()> {
    let mut tinboxd = tokio::task::spawn_blocking(Tinboxd::start).await??;
    let client = Client::new(Access::read(&tinboxd.kubeconfig())?)?;
    let began = Instant::now();
    try_join_all((0..CLIENTS).map(|first| fill(client.clone(), first))).await?;
    let filled_in = began.elapsed();
    tokio::time::sleep(SETTLED).await;
    let filled = rss_mib(&[tinboxd.id()])?;
    let store = tinboxd.folder().join("state/objects.redb");
    let bytes = store.metadata().context("cannot measure the store")?.len();
    tinboxd.kill();
    let began = Instant::now();
    let restarted = tokio::task::spawn_blocking(move || tinboxd.restart().map(|()| tinboxd));
    until_ready(&client).await?;
    let start = began.elapsed();
    let tinboxd = restarted.await??;
    tokio::time::sleep(SETTLED).await;
    let again = rss_mib(&[tinboxd.id()])?;
    println!("{MACHINES} machines with an inventory of {INVENTORY_BYTES} bytes");
    println!("filled in            {:>8.1} s", filled_in.as_secs_f64());
    println!("store                {:>8.1} MiB", bytes as f64 / f64::from(1 << 20));
    println!("RSS after filling    {filled:>8.1} MiB");
    println!("RSS after a restart  {again:>8.1} MiB  {:.2} times, goal 1.1", again / filled);
    println!("start to ready       {:>8.2} s    goal 2", start.as_secs_f64());
    Ok(())
}

/// Creates every `CLIENTS`th machine from `first` on.
async fn fill(client: Client, first: usize) -> Result<()> {
    for number in (first..MACHINES).step_by(CLIENTS) {
        let mac = format!("52:54:01:{:02x}:{:02x}:01", number >> 8, number & 0xff);
        let object = json!({
            "apiVersion": "tinkerbell.org/v1alpha1",
            "kind": "Hardware",
            "metadata": {
                "name": format!("nuc{number}"),
                "annotations": { "tinbox.dev/inventory": inventory(number) },
            },
            "spec": { "interfaces": [{ "dhcp": { "mac": mac, "arch": "x86_64" } }] },
        });
        client.send(Method::POST, COLLECTION, Bytes::from(object.to_string())).await?;
    }
    Ok(())
}

/// Text with the length of an inventory; its words differ from machine to machine.
fn inventory(number: usize) -> String {
    let mut text = String::with_capacity(INVENTORY_BYTES + 64);
    let mut line = 0_usize;
    while text.len() < INVENTORY_BYTES {
        let value = number.wrapping_mul(2_654_435_761).wrapping_add(line * 40_503);
        text.push_str(&format!("{{\"slot\":{line},\"serial\":\"{value:016x}\"}},"));
        line += 1;
    }
    text
}
