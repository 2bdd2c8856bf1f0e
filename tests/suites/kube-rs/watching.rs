//! Watches ConfigMaps with kube-rs' reflector while it writes them, until standard input is closed;
//! the server may restart meanwhile. Then the acknowledged writes, the server's objects and the
//! reflector's objects must be equal.
//!
//! Prints a line for every write that the server acknowledged.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::runtime::reflector::{self, Store};
use kube::runtime::utils::Backoff;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, Error, ResourceExt as _};
use serde_json::json;
use tokio::io::AsyncReadExt as _;

/// Label selector of the watch.
const LABEL: &str = "watched=yes";
/// Number of objects that are written in turn.
const NAMES: u64 = 40;
/// Interval of attempts to reach a server that is down.
const RETRY: Duration = Duration::from_millis(20);
/// Maximum time until the reflector has received the last write.
const LIMIT: Duration = Duration::from_secs(120);

/// Name, and written value or revision.
type Objects = BTreeMap<String, String>;

/// Constant backoff: the server always comes back.
struct Always;

impl Iterator for Always {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(RETRY)
    }
}

impl Backoff for Always {
    fn reset(&mut self) {}
}

#[tokio::main]
async fn main() -> Result<()> {
    let client = Client::try_default().await?;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let (reader, writer) = reflector::store();
    let lists = std::sync::Arc::new(AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&lists);
    let watching = watcher(maps.clone(), watcher::Config::default().labels(LABEL))
        .inspect(move |event| {
            if matches!(event, Ok(watcher::Event::Init)) {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        })
        .backoff(Always)
        .reflect(writer)
        .for_each(|_| ready(()));
    tokio::spawn(watching);
    let written = write(&maps).await?;
    compare(&maps, &reader, &written).await?;
    let lists = lists.load(Ordering::Relaxed);
    println!("same: {} objects after {lists} lists", written.len());
    Ok(())
}

/// Writes until standard input ends; returns the acknowledged objects.
async fn write(maps: &Api<ConfigMap>) -> Result<Objects> {
    let mut input = tokio::io::stdin();
    let (mut written, mut buffer) = (Objects::new(), [0_u8; 64]);
    for number in 0_u64.. {
        tokio::select! {
            biased;
            read = input.read(&mut buffer) => if read? == 0 { break },
            () = ready(()) => {}
        }
        // Order of the names: 17 and the number of names have no common divisor, so every name is
        // reached.
        let name = format!("watched-{}", number * 17 % NAMES);
        if number % 5 == 4 {
            acknowledged(async || delete(maps, &name).await).await?;
            written.remove(&name);
        } else {
            acknowledged(async || apply(maps, &name, number).await).await?;
            written.insert(name, number.to_string());
        }
        println!("{number}");
    }
    Ok(written)
}

async fn apply(maps: &Api<ConfigMap>, name: &str, number: u64) -> kube::Result<()> {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "labels": { "watched": "yes" } },
        "data": { "number": number.to_string() },
    });
    let params = PatchParams::apply("watching");
    maps.patch(name, &params, &Patch::Apply(&object)).await.map(drop)
}

async fn delete(maps: &Api<ConfigMap>, name: &str) -> kube::Result<()> {
    match maps.delete(name, &DeleteParams::default()).await {
        Err(Error::Api(status)) if status.code == 404 => Ok(()),
        deleted => deleted.map(drop),
    }
}

/// Repeats an idempotent write until the server has answered it.
async fn acknowledged(write: impl AsyncFn() -> kube::Result<()>) -> Result<()> {
    loop {
        match write().await {
            Ok(()) => return Ok(()),
            // The server answered with an error that a retry cannot fix.
            Err(Error::Api(status)) if status.code != 429 && status.code < 500 => {
                bail!("a write is refused: {status:?}")
            }
            Err(_) => tokio::time::sleep(RETRY).await,
        }
    }
}

/// Compares the acknowledged objects with the server's list, and the list with the reflector.
async fn compare(maps: &Api<ConfigMap>, held: &Store<ConfigMap>, written: &Objects) -> Result<()> {
    let list = maps.list(&ListParams::default().labels(LABEL)).await?;
    let number = |map: &ConfigMap| map.data.as_ref().and_then(|data| data.get("number").cloned());
    let stored: Objects =
        list.iter().map(|map| (map.name_any(), number(map).unwrap_or_default())).collect();
    ensure!(stored == *written, "acknowledged\n{written:?}\nand stored\n{stored:?}");
    let revision = |map: &ConfigMap| map.resource_version().unwrap_or_default();
    let listed: Objects = list.iter().map(|map| (map.name_any(), revision(map))).collect();
    let reflected =
        || held.state().iter().map(|map| (map.name_any(), revision(map))).collect::<Objects>();
    let equal = async {
        while reflected() != listed {
            tokio::time::sleep(RETRY).await;
        }
    };
    if tokio::time::timeout(LIMIT, equal).await.is_err() {
        bail!("listed\n{listed:?}\nand reflected\n{:?}", reflected());
    }
    Ok(())
}
