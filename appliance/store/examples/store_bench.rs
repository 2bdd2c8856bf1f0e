//! Benchmark of the store and of the disk below: durable commits of one and of 16 writers, list,
//! watch fan-out. `store_bench [FOLDER]` (default: the system's temporary folder).

use std::fs::File;
use std::io::{Error, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use store::{Key, Options, Store};

const RUN: Duration = Duration::from_secs(2);
const OBJECT: usize = 1700;
const LIVE: u64 = 5000;
const WATCHES: usize = 100;
const RESOURCE: &str = "bench/objects";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = match std::env::args_os().nth(1) {
        Some(folder) => tempfile::tempdir_in(folder)?,
        None => tempfile::tempdir()?,
    };
    let disk = raw(&folder.path().join("raw"))?;
    println!("disk       {disk:>8.0} fdatasync/s of {OBJECT} bytes");
    let store = Store::open(&folder.path().join("store.redb"), Options::default())?;
    write(&store, |txn| {
        for number in 0..LIVE {
            txn.put(key(number), vec![b'.'; OBJECT]);
        }
    })
    .await?;
    let (alone, _) = writers(&store, 1).await?;
    let ratio = alone / disk;
    println!(
        "1 writer   {alone:>8.0} durable writes/s, {ratio:.2} of the disk (two phases: 2 syncs)"
    );
    let (many, group) = writers(&store, 16).await?;
    let ratio = many / disk;
    println!(
        "16 writers {many:>8.0} durable writes/s, {ratio:.2} of the disk, {group:.1} a commit"
    );
    let started = Instant::now();
    let (_, rows) = store.list(RESOURCE, None)?;
    println!("list       {:>8.1} ms for {} objects", millis(started.elapsed()), rows.len());
    drop(rows);
    let (lag, seen) = fan_out(&store).await?;
    println!("watch      {lag:>8.1} ms p99 from acknowledgement, {WATCHES} watches, {seen} events");
    println!(
        "file       {:>8.1} MiB",
        mebibytes(folder.path().join("store.redb").metadata()?.len())
    );
    drop(store);
    let started = Instant::now();
    drop(Store::open(&folder.path().join("store.redb"), Options::default())?);
    println!("open       {:>8.1} ms", millis(started.elapsed()));
    println!("memory     {:>8.1} MiB resident at most", mebibytes(peak_memory()?));
    Ok(())
}

/// Measures the disk without the store: append and sync, per second.
fn raw(path: &Path) -> Result<f64, Error> {
    let mut file = File::create(path)?;
    let started = Instant::now();
    let mut count = 0;
    while started.elapsed() < RUN {
        file.write_all(&[b'.'; OBJECT])?;
        file.sync_data()?;
        count += 1;
    }
    Ok(f64::from(count) / started.elapsed().as_secs_f64())
}

/// Returns the durable writes per second of `writers` writers, and the writes per commit.
async fn writers(store: &Store, writers: u64) -> Result<(f64, f64), store::Error> {
    let before = store.stats();
    let started = Instant::now();
    let tasks = (0..writers).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            let mut number = writer;
            while started.elapsed() < RUN {
                let key = key(number % LIVE);
                write(&store, |txn| txn.put(key, vec![b'.'; OBJECT])).await?;
                number += writers;
            }
            Ok::<_, store::Error>(())
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("no writer panics")?;
    }
    let after = store.stats();
    let (writes, commits) = (after.writes - before.writes, after.commits - before.commits);
    Ok((writes as f64 / started.elapsed().as_secs_f64(), writes as f64 / commits as f64))
}

/// Returns the 99th percentile of the delay from the writer's result to a watch, in milliseconds,
/// over all watches and events; and the number of received events.
async fn fan_out(store: &Store) -> Result<(f64, usize), store::Error> {
    const EVENTS: u64 = 200;
    let started = Instant::now();
    let mut watches = Vec::new();
    for _ in 0..WATCHES {
        let mut watch = store.watch(RESOURCE, None, store.revision())?;
        watches.push(tokio::spawn(async move {
            let mut seen = Vec::new();
            for _ in 0..EVENTS {
                watch.next().await?;
                seen.push(started.elapsed());
            }
            Ok::<_, store::Error>(seen)
        }));
    }
    let mut answered = Vec::new();
    for number in 0..EVENTS {
        let key = key(number);
        write(store, |txn| txn.put(key, vec![b'.'; OBJECT])).await?;
        answered.push(started.elapsed());
    }
    let mut lags = Vec::new();
    for watch in watches {
        let seen = watch.await.expect("no watch panics")?;
        lags.extend(seen.iter().zip(&answered).map(|(seen, asked)| seen.saturating_sub(*asked)));
    }
    lags.sort_unstable();
    Ok((millis(lags[lags.len() * 99 / 100]), lags.len()))
}

async fn write<T: Send + 'static>(
    store: &Store,
    f: impl FnOnce(&mut store::Txn<'_>) -> T + Send + 'static,
) -> Result<T, store::Error> {
    let outcome = store.write(|txn| Ok::<T, std::convert::Infallible>(f(txn))).await?;
    Ok(outcome.unwrap_or_else(|never| match never {}))
}

fn key(number: u64) -> Key {
    Key::new(RESOURCE, "default", format!("object-{number:05}"))
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Returns the peak memory (`VmHWM`) of this process, in bytes.
fn peak_memory() -> Result<u64, Error> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kibibytes.unwrap_or(0) * 1024)
}
