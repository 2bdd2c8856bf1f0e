//! Load on a server: creates, lists and watches, with their measured times.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use futures_util::future::try_join_all;
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use api_bench::client::Client;

/// API path of the created objects.
const COLLECTION: &str = "/api/v1/namespaces/default/configmaps";
/// Bytes of data in one object: with its metadata about the size of a Hardware.
const DATA_BYTES: usize = 1400;
/// Number of reads of the whole list; the median time is used.
const LISTS: usize = 5;
/// Number of events for each watcher.
const EVENTS: usize = 60;
/// Time between two events.
const EVENT_EVERY: Duration = Duration::from_millis(100);
/// Maximum time until the last watcher has the last event.
const WATCH_LIMIT: Duration = Duration::from_secs(120);

fn object(name: &str, label: &str) -> Bytes {
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "labels": { "bench": label } },
        "data": { "text": "x".repeat(DATA_BYTES) },
    });
    object.to_string().into()
}

/// Objects created per second by `clients` that each wait for the answer before the next request.
///
/// # Errors
/// A create was refused.
pub async fn creates(client: &Client, prefix: &str, clients: usize, each: usize) -> Result<f64> {
    let one = |number: usize| {
        let client = client.clone();
        let prefix = prefix.to_owned();
        let work = async move {
            for at in 0..each {
                let body = object(&format!("{prefix}-{number}-{at}"), "load");
                client.send(Method::POST, COLLECTION, body).await?;
            }
            anyhow::Ok(())
        };
        async { tokio::spawn(work).await? }
    };
    let began = Instant::now();
    try_join_all((0..clients).map(one)).await?;
    Ok((clients * each) as f64 / began.elapsed().as_secs_f64())
}

/// Seconds for a list of all objects, whose number is checked.
///
/// # Errors
/// A list was refused or incomplete.
pub async fn list(client: &Client, expected: usize) -> Result<f64> {
    let path = format!("{COLLECTION}?labelSelector=bench%3Dload");
    let mut times = Vec::new();
    for _ in 0..LISTS {
        let began = Instant::now();
        let body = client.send(Method::GET, &path, Bytes::new()).await?;
        times.push(began.elapsed().as_secs_f64());
        let list: Value = serde_json::from_slice(&body).context("the list is no JSON")?;
        let found = list["items"].as_array().map_or(0, Vec::len);
        ensure!(found == expected, "the list has {found} objects, not {expected}");
    }
    times.sort_by(f64::total_cmp);
    Ok(times[LISTS / 2])
}

/// The 99th percentile, in seconds, of the time from sending a create to its event at one of
/// `watchers`, each on a connection of its own.
///
/// # Errors
/// A watch ended, or an event did not come.
pub async fn watch_latency(client: &Client, watchers: usize) -> Result<f64> {
    let (ready, mut readies) = mpsc::channel(watchers.max(1));
    let (sent, sents) = watch::channel(Vec::<Instant>::new());
    let mut tasks = Vec::new();
    for _ in 0..watchers {
        tasks.push(tokio::spawn(watcher(client.clone(), ready.clone(), sents.clone())));
        // One by one: the box closes the oldest of many unauthenticated connections of one address.
        let began = tokio::time::timeout(WATCH_LIMIT, readies.recv()).await;
        began.context("a watch did not begin")?;
    }
    let mut ticks = tokio::time::interval(EVENT_EVERY);
    for number in 0..EVENTS {
        ticks.tick().await;
        sent.send_modify(|sent| sent.push(Instant::now()));
        let body = object(&format!("event-{number}"), "watched");
        client.send(Method::POST, COLLECTION, body).await?;
    }
    let all = tokio::time::timeout(WATCH_LIMIT, try_join_all(tasks)).await;
    let mut latencies = Vec::new();
    for one in all.context("events are missing")?? {
        latencies.extend(one?);
    }
    latencies.sort_by(f64::total_cmp);
    Ok(latencies[latencies.len() * 99 / 100])
}

/// Reads the events of one watch until the last; returns the latency of each.
async fn watcher(
    client: Client,
    ready: mpsc::Sender<()>,
    sents: watch::Receiver<Vec<Instant>>,
) -> Result<Vec<f64>> {
    let path = format!("{COLLECTION}?watch=true&labelSelector=bench%3Dwatched");
    let response = client.open(Method::GET, &path, Bytes::new()).await?;
    ready.send(()).await?;
    let mut body = response.into_body();
    let mut latencies = Vec::new();
    while latencies.len() < EVENTS {
        let frame = body.frame().await.context("the watch ended")??;
        let now = Instant::now();
        // Events are lines; a frame contains whole lines, or the end of a line.
        let lines = frame.data_ref().map_or(0, |data| data.iter().filter(|b| **b == b'\n').count());
        for _ in 0..lines {
            let sent = *sents.borrow().get(latencies.len()).context("an event nobody made")?;
            latencies.push(now.duration_since(sent).as_secs_f64());
        }
    }
    Ok(latencies)
}
