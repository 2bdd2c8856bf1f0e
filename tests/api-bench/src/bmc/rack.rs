//! Cost of 1,000 simulated BMCs, which a real `tinboxd` polls every 30 s.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use api_bench::client::{Access, Client};
use api_bench::{cpu_percent, rss_mib};
use bytes::Bytes;
use figures::{Goal, Table};
use http::Method;
use peers::Tinboxd;
use peers::bmc_sim::{BmcEngine, BmcSim, Config};
use peers::loopback_address;
use serde_json::{Value, json};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

/// Argument with which this program simulates the BMCs.
pub const SIMULATE: &str = "simulate";
/// Number of BMCs: 20 times the largest rack that the box is made for.
const BMCS: usize = 1000;
/// Interval between two readings of one BMC, in seconds.
const POLL_SECS: u64 = 30;
/// Number of intervals over which the processor time is measured.
const INTERVALS: u64 = 3;
/// Maximum share of one processor core, in percent.
const CPU_MAX: f64 = 5.0;
/// Maximum growth of the resident memory, in MiB.
const GROWTH_MAX: f64 = 16.0;
/// Maximum time until each BMC was read once.
const FIRST_READINGS: Duration = Duration::from_secs(120);
const MACHINES: &str = "/apis/bmc.tinkerbell.org/v1alpha1/namespaces/default/machines";

/// Simulates the BMCs, and prints the address of each. Runs until the process is killed.
pub async fn simulate() -> Result<()> {
    let mut serving = JoinSet::new();
    for _ in 0..BMCS {
        let socket = UdpSocket::bind((loopback_address()?, 0)).await?;
        println!("{}", socket.local_addr()?);
        let mut engine = BmcEngine::new(Config::default());
        serving.spawn(async move {
            let mut buffer = [0; 1024];
            while let Ok((bytes, peer)) = socket.recv_from(&mut buffer).await {
                let answer = engine.receive(&buffer[..bytes]);
                let answer = answer.unwrap_or_default();
                if !answer.is_empty() && socket.send_to(&answer, peer).await.is_err() {
                    return;
                }
            }
        });
    }
    serving.join_next().await;
    Ok(())
}

/// Process that simulates the BMCs; killed when dropped.
struct Rack {
    process: Child,
    addresses: Vec<(String, u16)>,
}

impl Rack {
    fn start() -> Result<Self> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(program);
        let mut process = command.arg(SIMULATE).stdout(Stdio::piped()).spawn()?;
        let output = process.stdout.take().context("the simulator has no output")?;
        let mut addresses = Vec::with_capacity(BMCS);
        for line in BufReader::new(output).lines().take(BMCS) {
            let line = line?;
            let (host, port) = line.split_once(':').context("no address of a BMC")?;
            addresses.push((host.to_owned(), port.parse()?));
        }
        Ok(Self { process, addresses })
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Adds processor time and memory of `tinboxd`.
pub async fn measure(table: &mut Table) -> Result<()> {
    let rack = tokio::task::spawn_blocking(Rack::start).await??;
    let settings = format!("[bmc]\npoll_secs = {POLL_SECS}\n");
    let start = tokio::task::spawn_blocking(move || Tinboxd::start_with(&settings));
    let tinboxd = start.await??;
    let client = Client::new(Access::read(&tinboxd.kubeconfig())?)?;
    let interval = Duration::from_secs(POLL_SECS);
    let idle = cpu_percent(tinboxd.id(), interval).await?;
    let before = rss_mib(&[tinboxd.id()])?;
    fill(&client, &rack).await?;
    until_read(&client).await?;
    // The first readings after a change follow one another faster.
    tokio::time::sleep(interval * 2).await;
    let busy = cpu_percent(tinboxd.id(), interval * u32::try_from(INTERVALS)?).await?;
    let growth = rss_mib(&[tinboxd.id()])? - before;
    println!("tinboxd without a BMC uses {idle:.2} % of a core");
    let goal = Goal::AtMost(1.0);
    table.add("1,000 BMCs every 30 s, % of a core", busy, ("limit", CPU_MAX), goal);
    table.add("1,000 BMCs, growth of RSS (MiB)", growth, ("limit", GROWTH_MAX), goal);
    Ok(())
}

async fn fill(client: &Client, rack: &Rack) -> Result<()> {
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": "bmc" },
        "stringData": { "username": BmcSim::USERNAME, "password": BmcSim::PASSWORD },
    });
    let path = "/api/v1/namespaces/default/secrets";
    client.send(Method::POST, path, Bytes::from(secret.to_string())).await?;
    for (number, (host, port)) in rack.addresses.iter().enumerate() {
        let machine = json!({
            "apiVersion": "bmc.tinkerbell.org/v1alpha1",
            "kind": "Machine",
            "metadata": { "name": format!("bmc{number}") },
            "spec": { "connection": {
                "host": host,
                "port": port,
                "insecureTLS": true,
                "authSecretRef": { "name": "bmc", "namespace": "default" },
            } },
        });
        client.send(Method::POST, MACHINES, Bytes::from(machine.to_string())).await?;
    }
    Ok(())
}

/// Waits until the power state of each machine was read.
async fn until_read(client: &Client) -> Result<()> {
    let begin = Instant::now();
    loop {
        let list = client.send(Method::GET, MACHINES, Bytes::new()).await?;
        let list: Value = serde_json::from_slice(&list)?;
        let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let read = items.iter().filter(|it| it["status"]["powerState"] == "off").count();
        if read == BMCS {
            println!("all BMCs were read within {:.1} s", begin.elapsed().as_secs_f64());
            return Ok(());
        }
        ensure!(begin.elapsed() < FIRST_READINGS, "{read} of {BMCS} BMCs were read");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
