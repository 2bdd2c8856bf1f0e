//! Attacks by machines of the rack, which have no credential.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use agent_rpc::client::Client as Agent;
use agent_rpc::{Attributes, Hello, Pin};
use anyhow::{Context as _, Result, anyhow, ensure};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use super::Running;
use super::api::endless;
use crate::client::Body;
use crate::lab::{ATTACKER, ATTACKER_MAC, BOX};
use crate::machine::after;

/// Number of machines in the burst.
const BURST: usize = 300;
const TFTP: u16 = 69;
/// Port of boot scripts and files.
const BOOT: u16 = 7080;
/// Port of the agent protocol.
const WORKFLOWS: u16 = 42113;
/// Time to wait for a datagram that may be lost.
const ANSWER_LIMIT: Duration = Duration::from_millis(200);
/// Interval between two messages of an agent.
const AGAIN: Duration = Duration::from_secs(2);
/// Largest file that every box serves.
const UNIFIED_IMAGE: &str = "agent-x86_64.efi";
/// TFTP opcode `ERROR` (RFC 1350).
const ERROR: u8 = 5;
/// TFTP opcode `OACK`, the answer to options (RFC 2347).
const OACK: u8 = 6;

/// Address of the attacker with this number.
fn attacker(number: u8) -> Ipv4Addr {
    Ipv4Addr::from_bits(ATTACKER.to_bits() + u32::from(number))
}

async fn socket(port: u16, from: u8) -> Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((attacker(from), 0).into())?;
    Ok(socket.connect(SocketAddr::from((BOX, port))).await?)
}

/// Opens connections without sending data, from each attacker in turn.
pub async fn idle(ports: &[u16], many: usize, from: Range<u8>) -> Result<Running> {
    let mut running = Running::new();
    for port in ports {
        let mut open = 0;
        for attacker in from.clone().cycle().take(many) {
            match tokio::time::timeout(ANSWER_LIMIT, socket(*port, attacker)).await {
                Ok(Ok(socket)) => running.push(Box::new(socket)),
                // The server accepts no further connections.
                _ => break,
            }
            open += 1;
        }
        ensure!(open > 0, "port {port} does not answer");
    }
    Ok(running)
}

/// Fetches the pin of the box's workflow service from a machine's boot script.
async fn pin() -> Result<Pin> {
    let mut stream = socket(BOOT, 0).await?;
    let path = format!("/ipxe/script/{ATTACKER_MAC}/auto.ipxe");
    let ask = format!("GET {path} HTTP/1.1\r\nHost: box\r\nConnection: close\r\n\r\n");
    stream.write_all(ask.as_bytes()).await?;
    let mut script = String::new();
    stream.read_to_string(&mut script).await?;
    let pin = after(&script, " tinbox.pin=").with_context(|| format!("no pin in: {script}"))?;
    pin.parse().map_err(|error| anyhow!("{pin}: {error}"))
}

/// Opens connections to the workflow service, with bodies that never end.
pub async fn bodies() -> Result<Running> {
    let mut requests = JoinSet::new();
    let tls = TlsConnector::from(Arc::new(pin().await?.client_config()?));
    let mut open = 0;
    for _ in 0..80 {
        let stream = socket(WORKFLOWS, 1).await?;
        let stream = tls.connect(ServerName::IpAddress(IpAddr::from(BOX).into()), stream).await;
        // The server accepts no further connections.
        let Ok(stream) = stream.map(TokioIo::new) else { break };
        let handshake = http2::handshake::<_, _, Body>(TokioExecutor::new(), stream);
        let (sender, connection) = handshake.await.context("no HTTP/2 connection")?;
        open += 1;
        requests.spawn(async move { drop(connection.await) });
        for _ in 0..50 {
            let mut sender = sender.clone();
            let path = "https://box/proto.WorkflowService/GetAction";
            let request = http::Request::post(path)
                .header("content-type", "application/grpc")
                .body(endless(256 * 1024))?;
            requests.spawn(async move {
                if sender.ready().await.is_ok() {
                    drop(sender.send_request(request).await);
                }
            });
        }
    }
    ensure!(open > 0, "the workflow service takes no connection");
    Ok(vec![Box::new(requests)])
}

/// Requests a file; returns the opcode of the first answer, or `None` after the timeout.
async fn ask(request: &str) -> Result<(UdpSocket, Option<u8>)> {
    let socket = UdpSocket::bind((ATTACKER, 0)).await?;
    socket.send_to(request.as_bytes(), (BOX, TFTP)).await?;
    let mut answer = [0; 2048];
    let kind = match tokio::time::timeout(ANSWER_LIMIT, socket.recv(&mut answer)).await {
        Ok(Ok(_)) => Some(answer[1]),
        _ => None,
    };
    Ok((socket, kind))
}

/// Requests files that do not exist.
pub async fn not_found() -> Result<Running> {
    let (_, kind) = ask("\0\u{1}no-such-file\0octet\0").await?;
    ensure!(kind == Some(ERROR), "TFTP answered {kind:?} to a request for no file");
    let mut requests = JoinSet::new();
    requests.spawn(async {
        for number in 0_u64.. {
            drop(ask(&format!("\0\u{1}no-{number}\0octet\0")).await);
        }
    });
    Ok(vec![Box::new(requests)])
}

/// Requests the largest file from a machine that acknowledges nothing.
pub async fn unified_image() -> Result<Running> {
    let mut running = Running::new();
    let mut answered = 0;
    for _ in 0..60 {
        let request = format!("\0\u{1}{UNIFIED_IMAGE}\0octet\0tsize\x000\0");
        let (socket, kind) = ask(&request).await?;
        answered += usize::from(kind == Some(OACK));
        running.push(Box::new(socket));
    }
    ensure!(answered > 0, "no request for {UNIFIED_IMAGE} was answered");
    Ok(running)
}

/// Unknown machines send Hello to the box, all at once, and repeat this message until the box has
/// received it.
pub async fn burst() -> Result<Running> {
    let mut agents = JoinSet::new();
    let pin = pin().await?;
    for number in 0..BURST {
        let [high, low] = u16::try_from(number)?.to_be_bytes();
        let mac = format!("52:54:00:99:{high:02x}:{low:02x}");
        let agent = Agent::connect(&format!("{BOX}:{WORKFLOWS}"), &mac, None, Some(pin));
        let agent = agent.context("cannot make an agent")?;
        agents.spawn(async move {
            let hello = Hello {
                agent_id: mac.clone(),
                agent_version: env!("CARGO_PKG_VERSION").to_owned(),
                boot_id: format!("boot of {mac}"),
                attributes: Some(Attributes::default()),
                inventory: None,
            };
            loop {
                drop(agent.hello(hello.clone()).await);
                tokio::time::sleep(AGAIN).await;
            }
        });
    }
    Ok(vec![Box::new(agents)])
}
