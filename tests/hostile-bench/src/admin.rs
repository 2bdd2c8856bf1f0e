//! The administrator, who creates the workflows and checks their progress while the box is
//! attacked.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use http::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::attacks::HARDWARE;
use crate::client::{Client, Connection};
use crate::lab::{ATTACKER, ATTACKER_MAC};
use crate::machine::{Machine, TEMPLATE, template};

const WORKFLOWS: &str = "/apis/tinkerbell.org/v1alpha1/namespaces/default/workflows";
const TEMPLATES: &str = "/apis/tinkerbell.org/v1alpha1/namespaces/default/templates";
/// Number of objects in the store, of 100 KiB each: a list has about 19 MB.
const OBJECTS: usize = 190;
const OBJECT_BYTES: usize = 100 * 1024;
/// Maximum wait for an answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// Maximum wait for the installation of all machines.
const LIMIT: Duration = Duration::from_secs(240);
/// Interval between two checks of the machines.
const LOOK: Duration = Duration::from_millis(250);

/// Figures of the administrator and the machines.
#[derive(Default)]
pub struct Served {
    /// Durations of answers to the administrator.
    pub answers: Vec<Duration>,
    /// Number of requests without an answer in time.
    pub unanswered: usize,
    /// Time from the beginning of the round to the end of a workflow, by the workflow's name.
    pub installed: BTreeMap<String, Duration>,
}

impl Served {
    /// Adds the figures of another round.
    pub fn add(&mut self, other: Self) {
        self.answers.extend(other.answers);
        self.unanswered += other.unanswered;
        self.installed.extend(other.installed);
    }
}

/// Creates the objects that exist before any attack.
///
/// # Errors
/// The box refuses an object.
pub async fn prepare(admin: &Client, machines: &[Machine]) -> Result<()> {
    let connection = admin.connect().await?;
    for number in 0..OBJECTS {
        let object = json!({
            "metadata": { "name": format!("m{number}") },
            "spec": { "userData": "x".repeat(OBJECT_BYTES) },
        });
        admin.send(&connection, (Method::POST, HARDWARE), &object).await?;
    }
    let mac = ATTACKER_MAC.to_string();
    let ip = json!({ "address": ATTACKER, "netmask": "255.255.255.0" });
    let interface = json!({ "netboot": { "allowPXE": true }, "dhcp": { "mac": mac, "ip": ip } });
    let attacker = json!({
        "metadata": { "name": "attacker" },
        "spec": { "disks": [{ "device": "/dev/sda" }], "interfaces": [interface] },
    });
    for hardware in machines.iter().map(Machine::hardware).chain([attacker]) {
        admin.send(&connection, (Method::POST, HARDWARE), &hardware).await?;
    }
    admin.send(&connection, (Method::POST, TEMPLATES), &template()).await?;
    // The box serves the unified image only to a machine that has a workflow.
    let workflow = json!({
        "metadata": { "name": "attacker", "labels": { "round": "attacker" } },
        "spec": {
            "templateRef": TEMPLATE, "hardwareRef": "attacker", "hardwareMap": { "device_1": mac },
        },
    });
    admin.send(&connection, (Method::POST, WORKFLOWS), &workflow).await?;
    pending(admin, &connection, ("attacker", 1)).await
}

/// Creates a workflow for every machine, and waits until all of them can boot.
///
/// # Errors
/// The box refuses a workflow, or does not prepare it in time.
pub async fn workflows(admin: &Client, machines: &[Machine], round: usize) -> Result<()> {
    let connection = admin.connect().await?;
    for machine in machines {
        admin.send(&connection, (Method::POST, WORKFLOWS), &machine.workflow(round)).await?;
    }
    pending(admin, &connection, (&round.to_string(), machines.len())).await
}

/// Waits until the machines of this many workflows, labeled with the round, can boot.
async fn pending(
    admin: &Client,
    connection: &Connection,
    (round, many): (&str, usize),
) -> Result<()> {
    let deadline = Instant::now() + LIMIT;
    loop {
        let states = states(admin, connection, round).await?;
        if states.len() == many && states.iter().all(|(_, state)| state == "PENDING") {
            return Ok(());
        }
        anyhow::ensure!(Instant::now() < deadline, "the workflows do not wait: {states:?}");
        sleep(LOOK).await;
    }
}

async fn states(
    admin: &Client,
    connection: &Connection,
    round: &str,
) -> Result<Vec<(String, String)>> {
    let path = format!("{WORKFLOWS}?labelSelector=round%3D{round}");
    let list = admin.send(connection, (Method::GET, &path), &Value::Null).await?;
    let items = list["items"].as_array().context("a list has items")?;
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(items
        .iter()
        .map(|it| (word(&it["metadata"]["name"]), word(&it["status"]["state"])))
        .collect())
}

/// Polls until all machines are installed, with one write in each turn.
///
/// # Errors
/// The box cannot be reached at all.
pub async fn watch(admin: &Client, machines: &[Machine], round: usize) -> Result<Served> {
    let mut connection = admin.connect().await?;
    let round = round.to_string();
    let (began, mut served) = (Instant::now(), Served::default());
    for look in 0_u64.. {
        match timed(&mut served, states(admin, &connection, &round)).await {
            Some(states) => {
                for (name, _) in states.into_iter().filter(|(_, state)| state == "SUCCESS") {
                    served.installed.entry(name).or_insert_with(|| began.elapsed());
                }
            }
            // The box may have closed the connection.
            None => connection = admin.connect().await?,
        }
        timed(&mut served, write(admin, &connection, look)).await;
        if served.installed.len() == machines.len() || began.elapsed() > LIMIT {
            break;
        }
        sleep(LOOK).await;
    }
    Ok(served)
}

async fn timed<T>(served: &mut Served, work: impl Future<Output = Result<T>>) -> Option<T> {
    let began = Instant::now();
    match tokio::time::timeout(ANSWER_LIMIT, work).await {
        Ok(Ok(done)) => {
            served.answers.push(began.elapsed());
            Some(done)
        }
        failed => {
            let failed = failed.map(|failed| failed.err());
            eprintln!("the administrator was not served: {failed:?}");
            served.unanswered += 1;
            None
        }
    }
}

async fn write(admin: &Client, connection: &Connection, look: u64) -> Result<()> {
    let config = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "honest" },
        "data": { "look": look.to_string() },
    });
    let path = "/api/v1/namespaces/default/configmaps/honest?fieldManager=honest&force=true";
    admin.send(connection, (Method::PATCH, path), &config).await.map(drop)
}

/// Deletes the workflows of a round.
///
/// # Errors
/// The box refuses.
pub async fn clear(admin: &Client, round: usize) -> Result<()> {
    let connection = admin.connect().await?;
    let path = format!("{WORKFLOWS}?labelSelector=round%3D{round}");
    admin.send(&connection, (Method::DELETE, &path), &Value::Null).await.map(drop)
}
