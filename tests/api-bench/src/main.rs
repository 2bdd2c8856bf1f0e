//! `make bench-api`: the box's API compared with a real kube-apiserver with etcd, in one run on one
//! machine, durable on both sides. Compare ratios only: the machine may be busy, and its load is
//! printed. The argument `growth` (`make bench-growth`) measures a full box alone.

mod growth;
mod load;

use std::fs;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;

use api_bench::client::{Access, Client};
use api_bench::rss_mib;
use http::Method;
use peers::{Cluster, ClusterConfig, Tinboxd};

/// Objects in the store during the list.
const OBJECTS: usize = 5_000;
const ALONE: usize = 400;
const CLIENTS: usize = 64;
const WATCHERS: usize = 200;
/// Interval between readiness checks of a starting server.
const ASK_EVERY: Duration = Duration::from_millis(5);
/// Maximum time until a started server is ready.
const START_LIMIT: Duration = Duration::from_secs(180);

/// Measured figures of one server.
#[derive(Default)]
struct Figures {
    start: f64,
    rss_idle: f64,
    alone: f64,
    crowd: f64,
    list: f64,
    watch: f64,
    rss_loaded: f64,
}

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(run())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<()> {
    let load = fs::read_to_string("/proc/loadavg").context("cannot read the load")?;
    println!("load average: {}", load.trim());
    if std::env::args().nth(1).as_deref() == Some("growth") {
        return growth::run().await;
    }
    let ours = the_box().await.context("measuring the box")?;
    let theirs = the_cluster().await.context("measuring kube-apiserver and etcd")?;
    print(&ours, &theirs);
    Ok(())
}

async fn the_box() -> Result<Figures> {
    let mut tinboxd = tokio::task::spawn_blocking(Tinboxd::start).await??;
    let client = Client::new(Access::read(&tinboxd.kubeconfig())?)?;
    // The second start is measured: the first one generates keys and the authority, which the other
    // server gets ready-made.
    tinboxd.kill();
    let began = Instant::now();
    let restarted = tokio::task::spawn_blocking(move || tinboxd.restart().map(|()| tinboxd));
    until_ready(&client).await?;
    let start = began.elapsed();
    let tinboxd = restarted.await??;
    measure(&client, start, &[tinboxd.id()]).await
}

async fn the_cluster() -> Result<Figures> {
    let config = ClusterConfig { durable: true, ..ClusterConfig::default() };
    let began = Instant::now();
    let cluster = tokio::task::spawn_blocking(move || Cluster::start(&config)).await??;
    let start = began.elapsed();
    let client = Client::new(Access::read(&cluster.kubeconfig())?)?;
    measure(&client, start, &cluster.ids()).await
}

async fn until_ready(client: &Client) -> Result<()> {
    let began = Instant::now();
    let mut ticks = tokio::time::interval(ASK_EVERY);
    while client.send(Method::GET, "/readyz", Bytes::new()).await.is_err() {
        ensure!(began.elapsed() < START_LIMIT, "it is not ready after {START_LIMIT:?}");
        ticks.tick().await;
    }
    Ok(())
}

async fn measure(client: &Client, start: Duration, processes: &[u32]) -> Result<Figures> {
    let rss_idle = rss_mib(processes)?;
    let alone = load::creates(client, "alone", 1, ALONE).await?;
    let each = (OBJECTS - ALONE) / CLIENTS;
    let crowd = load::creates(client, "crowd", CLIENTS, each).await?;
    let rest = OBJECTS - ALONE - CLIENTS * each;
    load::creates(client, "rest", 1, rest).await?;
    let list = load::list(client, OBJECTS).await?;
    let watch = load::watch_latency(client, WATCHERS).await?;
    let rss_loaded = rss_mib(processes)?;
    Ok(Figures { start: start.as_secs_f64(), rss_idle, alone, crowd, list, watch, rss_loaded })
}

/// Prints one line per figure: the value of the box, the value of kube-apiserver, the factor by
/// which the box is better, and the goal.
fn print(ours: &Figures, theirs: &Figures) {
    println!("{:34}{:>12}{:>16}{:>9}{:>8}", "", "tinboxd", "kube-apiserver", "ratio", "goal");
    let line = |what: &str, ours: f64, theirs: f64, ratio: f64, goal: &str| {
        println!("{what:34}{ours:>12.2}{theirs:>16.2}{ratio:>8.1}x{goal:>8}");
    };
    let more = |what: &str, a: f64, b: f64, goal: &str| line(what, a, b, a / b, goal);
    let less = |what: &str, a: f64, b: f64, goal: &str| line(what, a, b, b / a, goal);
    more("creates/s, 1 client, durable", ours.alone, theirs.alone, "");
    more("creates/s, 64 clients, durable", ours.crowd, theirs.crowd, "3x");
    less("list of 5,000 objects, ms", ours.list * 1e3, theirs.list * 1e3, "3x");
    less("watch p99, 200 watchers, ms", ours.watch * 1e3, theirs.watch * 1e3, "");
    less("RSS idle, MiB", ours.rss_idle, theirs.rss_idle, "8x");
    less("RSS with 5,000 objects, MiB", ours.rss_loaded, theirs.rss_loaded, "8x");
    less("start to ready, s", ours.start, theirs.start, "20x");
}
