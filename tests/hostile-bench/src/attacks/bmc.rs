//! Attacks with BMCs that do not answer, and with BMC host names that are not resolved.

use std::time::Duration;

use anyhow::{Context as _, Result};
use http::Method;
use serde_json::{Value, json};
use tokio::net::UdpSocket;

use super::Running;
use crate::client::{Client, Connection};
use crate::lab::{ATTACKER, NAME_SERVER};

const MACHINES: &str = "/apis/bmc.tinkerbell.org/v1alpha1/namespaces/default/machines";
const JOBS: &str = "/apis/bmc.tinkerbell.org/v1alpha1/namespaces/default/jobs";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
/// Name of the Secret of all BMCs.
const SECRET: &str = "hostile-bmc";
const DNS: u16 = 53;
/// Port of the first BMC.
const FIRST_PORT: u16 = 20_000;

/// BMCs that must have received a request before the attack counts as begun.
const HEARD: usize = 20;
const HEARD_LIMIT: Duration = Duration::from_secs(120);

/// BMCs with a host name that the only name server does not resolve.
pub async fn by_name(admin: &Client) -> Result<Running> {
    let server = UdpSocket::bind((NAME_SERVER, DNS)).await?;
    let connection = admin.connect().await?;
    secret(admin, &connection).await?;
    for number in 0..60 {
        machine(admin, &connection, number, (&format!("bmc{number}.lab.example"), 623)).await?;
    }
    heard(&server).await.context("the name server is not asked")?;
    Ok(vec![Box::new(server)])
}

/// BMCs that receive datagrams and answer none, with one Job for each.
pub async fn dead(admin: &Client) -> Result<Running> {
    let connection = admin.connect().await?;
    secret(admin, &connection).await?;
    let mut silent = Vec::new();
    for number in 0..150 {
        let port = FIRST_PORT + number;
        silent.push(UdpSocket::bind((ATTACKER, port)).await?);
        machine(admin, &connection, number, (&ATTACKER.to_string(), port)).await?;
        let job = json!({
            "metadata": { "name": format!("hostile-{number}") },
            "spec": {
                "machineRef": { "name": format!("hostile-{number}"), "namespace": "default" },
                "tasks": [{ "powerAction": "on" }],
            },
        });
        admin.send(&connection, (Method::POST, JOBS), &job).await?;
    }
    for bmc in silent.iter().take(HEARD) {
        heard(bmc).await.context("a BMC is not asked")?;
    }
    Ok(vec![Box::new(silent)])
}

/// Waits for a datagram.
async fn heard(socket: &UdpSocket) -> Result<()> {
    tokio::time::timeout(HEARD_LIMIT, socket.recv(&mut [0; 512])).await??;
    Ok(())
}

async fn secret(admin: &Client, connection: &Connection) -> Result<()> {
    let secret = json!({
        "metadata": { "name": SECRET },
        "stringData": { "username": "admin", "password": "bench" },
    });
    admin.send(connection, (Method::POST, SECRETS), &secret).await.map(drop)
}

async fn machine(
    admin: &Client,
    connection: &Connection,
    number: u16,
    (host, port): (&str, u16),
) -> Result<()> {
    let machine = json!({
        "metadata": { "name": format!("hostile-{number}") },
        "spec": { "connection": {
            "host": host,
            "port": port,
            "insecureTLS": true,
            "authSecretRef": { "name": SECRET, "namespace": "default" },
        } },
    });
    admin.send(connection, (Method::POST, MACHINES), &machine).await.map(drop)
}

/// Deletes all BMC objects of an attack.
pub async fn clear(admin: &Client) -> Result<()> {
    let connection = admin.connect().await?;
    for all in [JOBS, MACHINES, &format!("{SECRETS}/{SECRET}")] {
        admin.send(&connection, (Method::DELETE, all), &Value::Null).await?;
    }
    Ok(())
}
