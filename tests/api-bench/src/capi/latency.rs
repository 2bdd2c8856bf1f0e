//! Time from a TinkerbellMachine to its work, one machine after the other and many at once.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use api_bench::rss_mib;
use bytes::Bytes;
use capi::Repository;
use figures::{Goal, Table, median};
use futures_util::future::try_join_all;
use http::Method;
use peers::{Kubectl, Tinboxd, poll};

use crate::agents::Agents;
use crate::machines::{CLUSTER, Machine, TINKERBELL_MACHINES, cluster};
use crate::management::{Management, apply, create, flat_kubeconfig, good};
use crate::stock::Stock;

/// Machines one after the other; an odd number, whose median is one of the times.
const ALONE: u8 = 11;
/// Machines at once: twice what a site of this product has.
const CROWD: u8 = 100;
/// Maximum time until the cluster and its Machines are ready.
const LIMIT: Duration = Duration::from_secs(180);
/// Resource of the Machines; Tinkerbell has a kind of this name for management controllers.
const MACHINES: &str = "machines.cluster.x-k8s.io";
const PEER: &str = "CAPT 0.7";

/// Measured figures of one side.
pub struct Figures {
    /// Median of the machines one after the other, in seconds.
    alone: f64,
    /// Median of the machines at once, in seconds.
    crowd: f64,
    /// Slowest of the machines at once, in seconds.
    last: f64,
    /// Machines at once that got work.
    served: f64,
    /// Resident memory of the provider after the run, in MiB.
    pub rss_mib: f64,
}

/// Measures CAPT with Tinkerbell's own server.
///
/// # Errors
/// A program does not start, or an agent gets no work.
pub async fn of_stock() -> Result<Figures> {
    let stock = tokio::task::spawn_blocking(Stock::start).await??;
    let management = &stock.management;
    measure(management, &management.kubectl, &stock.authority, stock.capt_id()).await
}

/// Measures the box.
///
/// # Errors
/// A program does not start, or an agent gets no work.
pub async fn of_box() -> Result<Figures> {
    let (tinboxd, management) = tokio::task::spawn_blocking(|| {
        let tinboxd = Tinboxd::start_with("[agents]\npermissive = true\n")?;
        let management =
            Management::start(|_, kubectl| apply(kubectl, Repository::new("0.1.0").components()))?;
        pair(&tinboxd, &management.cluster, "prod")?;
        anyhow::Ok((tinboxd, management))
    })
    .await??;
    let kubectl = tinboxd.kubectl()?;
    measure(&management, &kubectl, &agents_of(&tinboxd), tinboxd.id()).await
}

/// Returns the address of a box's service for stock agents.
pub fn agents_of(tinboxd: &Tinboxd) -> String {
    format!("{}:42113", tinboxd.address())
}

/// Pairs a box with a management cluster.
///
/// # Errors
/// The message of `tinbox capi pair`.
pub fn pair(tinboxd: &Tinboxd, management: &peers::Cluster, name: &str) -> Result<()> {
    let mut command = std::process::Command::new(programs::find("tinbox")?);
    command.env_clear().arg("--kubeconfig").arg(tinboxd.kubeconfig());
    command.args(["capi", "pair", name, "--management-kubeconfig"]);
    command.arg(flat_kubeconfig(management)?);
    let printed = peers::run(command, "")?;
    ensure!(printed.success, "cannot pair: {}", printed.err.trim());
    Ok(())
}

async fn measure(
    management: &Management,
    hardware: &Kubectl,
    authority: &str,
    provider: u32,
) -> Result<Figures> {
    let machine = |number| Machine { of_box: 0, number };
    let all: Vec<Machine> = (0..ALONE + CROWD).map(machine).collect();
    create(hardware, &all.iter().map(|it| it.hardware()).collect::<Vec<_>>())?;
    prepare(management, &all)?;
    let (alone, crowd) = all.split_at(usize::from(ALONE));
    let mut times = Vec::new();
    for machine in alone {
        // One machine: no other can have its Hardware.
        times.extend(offer(management, &[(*machine, authority.to_owned())]).await?);
    }
    ensure!(times.len() == usize::from(ALONE), "only {} of {ALONE} got work", times.len());
    let alone = median(times);
    let crowd: Vec<_> = crowd.iter().map(|it| (*it, authority.to_owned())).collect();
    let before = management.requests()?;
    let times = offer(management, &crowd).await?;
    management.requests()?.since(&before).print(f64::from(CROWD));
    println!("{} of {CROWD} machines at once got work", times.len());
    let last = times.iter().copied().fold(0.0, f64::max);
    let served = f64::from(u32::try_from(times.len())?);
    let rss_mib = rss_mib(&[provider])?;
    Ok(Figures { alone, crowd: median(times), last, served, rss_mib })
}

/// Creates the cluster and the Machines, and waits until the infrastructure of the cluster is
/// provisioned and the Machines wait for theirs.
///
/// # Errors
/// An object is refused, or is not ready in time.
pub fn prepare(management: &Management, machines: &[Machine]) -> Result<()> {
    let kubectl = &management.kubectl;
    create(kubectl, &cluster())?;
    let path = "jsonpath={.status.initialization.infrastructureProvisioned}";
    poll("the infrastructure of the cluster", LIMIT, || {
        good(kubectl, &["get", "cluster", CLUSTER, "-o", path], "").is_ok_and(|it| it == "true")
    })?;
    create(kubectl, &machines.iter().map(|it| it.machine()).collect::<Vec<_>>())?;
    let path = "jsonpath={.items[*].status.phase}";
    poll("the Machines", LIMIT, || {
        let phases = good(kubectl, &["get", MACHINES, "-o", path], "").unwrap_or_default();
        phases.split_whitespace().count() == machines.len()
    })?;
    Ok(())
}

/// Creates the TinkerbellMachines, and returns the seconds until each agent got its work.
///
/// # Errors
/// A TinkerbellMachine is refused, or an agent gets no work.
pub async fn offer(management: &Management, machines: &[(Machine, String)]) -> Result<Vec<f64>> {
    let path = r#"jsonpath={range .items[*]}{.metadata.name} {.metadata.uid}{"\n"}{end}"#;
    let uids = good(&management.kubectl, &["get", MACHINES, "-o", path], "")?;
    let uid_of = |machine: Machine| {
        let mut pairs = uids.lines().filter_map(|line| line.split_once(' '));
        pairs.find(|(name, _)| *name == machine.name()).map(|(_, uid)| uid)
    };
    let agents = Agents::start(machines)?;
    let mut bodies = Vec::new();
    for (machine, _) in machines {
        let uid = uid_of(*machine).context("a Machine is missing")?;
        bodies.push(Bytes::from(machine.tinkerbell_machine(uid).to_string()));
    }
    let begun = Instant::now();
    let created = bodies.into_iter().map(|body| async {
        let begun = Instant::now();
        management.client.send(Method::POST, TINKERBELL_MACHINES, body).await.map(|_| begun)
    });
    let created = try_join_all(created).await?;
    let begun = created.iter().min().copied().unwrap_or(begun);
    let offered = agents.offered().await?;
    Ok(offered.into_iter().map(|(_, at)| (at - begun).as_secs_f64()).collect())
}

/// Adds the figures to the table.
pub fn compare(ours: &Figures, stock: &Figures, table: &mut Table) {
    let (one, many) = (Goal::AtMost(0.1), Goal::AtMost(1.0));
    table.add("one machine to its work, median, s", ours.alone, (PEER, stock.alone), one);
    table.add("100 machines at once, median, s", ours.crowd, (PEER, stock.crowd), many);
    table.add("100 machines at once, last, s", ours.last, (PEER, stock.last), many);
    let served = (PEER, stock.served);
    table.add("machines of 100 that got work", ours.served, served, Goal::AtLeast(1.0));
}
