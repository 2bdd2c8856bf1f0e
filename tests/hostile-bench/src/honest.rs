//! Those who use the box while it is attacked.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures_util::future::join_all;
use http::Method;
use peers::Tinboxd;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::attacks::HARDWARE;
use crate::client::Client;

/// Objects in the store, and bytes of each: lists of some 19 MB.
const OBJECTS: usize = 190;
const OBJECT_BYTES: usize = 100 * 1024;
/// Machines that fetch boot files at the same time.
const MACHINES: usize = 20;
/// Rounds of requests that each of them makes.
const ROUNDS: usize = 10;
/// Longest wait for an answer.
const LIMIT: Duration = Duration::from_secs(30);

/// How they were served: milliseconds, and requests without an answer.
pub struct Served {
    pub median: f64,
    pub worst: f64,
    pub failed: usize,
}

/// Makes the objects that lists show.
///
/// # Errors
/// The box refuses one.
pub async fn prepare(admin: &Client) -> Result<()> {
    let connection = admin.connect().await?;
    for number in 0..OBJECTS {
        let object = json!({
            "metadata": { "name": format!("m{number}") },
            "spec": { "userData": "x".repeat(OBJECT_BYTES) },
        });
        admin.send(&connection, (Method::POST, HARDWARE), &object).await?;
    }
    Ok(())
}

/// Lets machines fetch over HTTP, the administrator write, and the liveness check look.
///
/// # Errors
/// The box cannot be reached at all.
pub async fn serve(tinboxd: &Tinboxd, admin: &Client) -> Result<Served> {
    let machines = (0..MACHINES).map(|number| machine(tinboxd, number));
    let (machines, writes) = tokio::join!(join_all(machines), write(admin));
    let mut times: Vec<Option<Duration>> = machines.into_iter().flatten().collect();
    times.extend(writes?);
    let failed = times.iter().filter(|time| time.is_none()).count();
    let mut millis: Vec<f64> =
        times.into_iter().flatten().map(|time| time.as_secs_f64() * 1000.0).collect();
    millis.sort_by(f64::total_cmp);
    let median = millis.get(millis.len() / 2).copied().context("nobody was served")?;
    Ok(Served { median, worst: millis.last().copied().unwrap_or(median), failed })
}

async fn timed<T>(work: impl Future<Output = Result<T>>) -> Option<Duration> {
    let began = Instant::now();
    let done = tokio::time::timeout(LIMIT, work).await;
    matches!(done, Ok(Ok(_))).then(|| began.elapsed())
}

async fn write(admin: &Client) -> Result<Vec<Option<Duration>>> {
    let connection = admin.connect().await?;
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        let labels = json!({ "metadata": { "labels": { "round": round.to_string() } } });
        let config = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "honest" },
            "data": labels["metadata"]["labels"],
        });
        let path = "/api/v1/namespaces/default/configmaps/honest?fieldManager=honest&force=true";
        times.push(timed(admin.send(&connection, (Method::PATCH, path), &config)).await);
        times.push(timed(admin.send(&connection, (Method::GET, "/readyz"), &Value::Null)).await);
    }
    Ok(times)
}

async fn machine(tinboxd: &Tinboxd, number: usize) -> Vec<Option<Duration>> {
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        let path = format!("/auto.ipxe?machine={number}&round={round}");
        times.push(timed(fetch(tinboxd, &path)).await);
    }
    times
}

async fn fetch(tinboxd: &Tinboxd, path: &str) -> Result<usize> {
    let mut socket = TcpStream::connect((tinboxd.address(), 7080)).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: box\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await?;
    anyhow::ensure!(answer.starts_with(b"HTTP/1.1 "), "no answer");
    Ok(answer.len())
}
