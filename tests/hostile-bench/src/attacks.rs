//! The attacks.

use std::any::Any;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::Method;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use peers::Tinboxd;
use serde_json::{Map, Value, json};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};
use tokio::task::JoinSet;

use crate::client::{Body, Client, full};

pub const HARDWARE: &str = "/apis/tinkerbell.org/v1alpha1/namespaces/default/hardware";
/// Requests that a client sends on one connection.
const STREAMS: usize = 100;
const MIB: usize = 1024 * 1024;
/// Wait for a datagram that may be lost.
const ANSWER_LIMIT: Duration = Duration::from_millis(200);

/// What an attack holds; it ends when this is dropped.
pub type Running = Vec<Box<dyn Any + Send>>;

/// An attack.
#[derive(Debug, Clone, Copy)]
pub enum Attack {
    Nothing,
    UnreadLists,
    UnreadWatches,
    HeavyApplies,
    UnfinishedBodies,
    IdleConnections,
    StrangersOfTheApi,
    StrangersBodies,
    NotFoundByTftp,
}

impl Attack {
    /// All of them, nothing first.
    pub const ALL: [Self; 9] = [
        Self::Nothing,
        Self::UnreadLists,
        Self::UnreadWatches,
        Self::HeavyApplies,
        Self::UnfinishedBodies,
        Self::IdleConnections,
        Self::StrangersOfTheApi,
        Self::StrangersBodies,
        Self::NotFoundByTftp,
    ];

    /// As people read it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::UnreadLists => "200 lists of 19 MB that a viewer does not read",
            Self::UnreadWatches => "500 watches unread, 40 writes of 0.9 MB",
            Self::HeavyApplies => "24 applies of 19,000 keys, by as many managers",
            Self::UnfinishedBodies => "90 bodies of 1.5 MB that do not end",
            Self::IdleConnections => "512 idle connections to each port",
            Self::StrangersOfTheApi => "four addresses with 560 idle API connections",
            Self::StrangersBodies => "80 connections, 50 bodies of 256 kB, at 42113",
            Self::NotFoundByTftp => "2,000 TFTP requests for files not there",
        }
    }

    /// Begins it; what it needs to have happened has happened then.
    ///
    /// # Errors
    /// The box cannot be reached.
    pub async fn begin(self, tinboxd: &Tinboxd, admin: &Client) -> Result<Running> {
        match self {
            Self::Nothing => Ok(Vec::new()),
            Self::UnreadLists => unread(admin, "viewer", (HARDWARE, 200)).await,
            Self::UnreadWatches => {
                let connection = admin.connect().await?;
                let path = format!("{HARDWARE}?limit=1");
                let list = admin.send(&connection, (Method::GET, &path), &Value::Null).await?;
                let revision = list["metadata"]["resourceVersion"].as_str().unwrap_or_default();
                let path = format!("{HARDWARE}?watch=true&resourceVersion={revision}");
                let running = unread(admin, "viewer", (&path, 500)).await?;
                for number in 0..40 {
                    let text = format!("{number}{}", "x".repeat(900_000));
                    let config = applied("m0", &json!({ "userData": text }));
                    let path = format!("{HARDWARE}/m0?fieldManager=writer&force=true");
                    admin.send(&connection, (Method::PATCH, &path), &config).await?;
                }
                Ok(running)
            }
            Self::HeavyApplies => heavy(admin).await,
            Self::UnfinishedBodies => bodies(admin).await,
            Self::IdleConnections => {
                let ports = [6443, 7080, 42113, 50061];
                idle(tinboxd, &ports, 512, &[9]).await
            }
            Self::StrangersOfTheApi => idle(tinboxd, &[6443], 560, &[10, 11, 12, 13]).await,
            Self::StrangersBodies => strangers(tinboxd).await,
            Self::NotFoundByTftp => not_found(tinboxd, admin).await,
        }
    }
}

fn applied(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "tinkerbell.org/v1alpha1", "kind": "Hardware",
        "metadata": { "name": name }, "spec": spec,
    })
}

/// A client with a role of the box.
async fn with_role(admin: &Client, role: &str) -> Result<Client> {
    let connection = admin.connect().await?;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    let account = json!({ "metadata": { "generateName": "hostile-" } });
    let account = admin.send(&connection, (Method::POST, accounts), &account).await?;
    let name = account["metadata"]["name"].as_str().context("no name")?.to_owned();
    let binding = json!({
        "metadata": { "name": name },
        "roleRef": { "kind": "ClusterRole", "name": format!("tinbox:{role}") },
        "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": "default" }],
    });
    admin.send(&connection, (Method::POST, bindings), &binding).await?;
    let path = format!("{accounts}/{name}/token");
    let token = admin.send(&connection, (Method::POST, &path), &json!({})).await?;
    Ok(admin.with(token["status"]["token"].as_str().context("no token")?))
}

/// Answers that nobody reads; those that were refused count too.
async fn unread(admin: &Client, role: &str, (path, many): (&str, usize)) -> Result<Running> {
    let client = with_role(admin, role).await?;
    let mut running = Running::new();
    for _ in 0..many.div_ceil(STREAMS) {
        let connection = client.connect().await?;
        for _ in 0..STREAMS {
            let answer = client.open(&connection, (Method::GET, path), full("")).await?;
            running.push(Box::new(answer));
        }
        running.push(Box::new(connection));
    }
    Ok(running)
}

async fn heavy(admin: &Client) -> Result<Running> {
    let client = with_role(admin, "operator").await?;
    // Not a list, and no more of them, which would be refused before they are merged.
    let data: Map<String, Value> = (0..19_000).map(|at| (at.to_string(), json!("x"))).collect();
    let config = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "heavy" }, "data": data,
    });
    let text = Bytes::from(config.to_string());
    let connection = client.connect().await?;
    let mut applies = JoinSet::new();
    for manager in 0..24 {
        let (client, connection, text) = (client.clone(), connection.clone(), text.clone());
        applies.spawn(async move {
            let path = "/api/v1/namespaces/default/configmaps/heavy";
            let path = format!("{path}?fieldManager=m{manager}&force=true");
            client.open(&connection, (Method::PATCH, &path), full(text)).await
        });
    }
    Ok(vec![Box::new(applies)])
}

fn endless(bytes: usize) -> Body {
    let begun = Ok::<_, Infallible>(Frame::data(Bytes::from(vec![b' '; bytes])));
    StreamBody::new(stream::iter([begun]).chain(stream::pending())).boxed_unsync()
}

async fn bodies(admin: &Client) -> Result<Running> {
    let client = with_role(admin, "operator").await?;
    let connection = client.connect().await?;
    let mut requests = JoinSet::new();
    for _ in 0..90 {
        let (client, connection) = (client.clone(), connection.clone());
        requests.spawn(async move {
            client.open(&connection, (Method::POST, HARDWARE), endless(3 * MIB / 2)).await
        });
    }
    Ok(vec![Box::new(requests)])
}

async fn socket(tinboxd: &Tinboxd, port: u16, last: u8) -> Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::new(127, 99, 0, last), 0).into())?;
    Ok(socket.connect(SocketAddr::from((tinboxd.address(), port))).await?)
}

/// Connections that say nothing. Ports that the box does not serve here are left out.
async fn idle(tinboxd: &Tinboxd, ports: &[u16], many: usize, from: &[u8]) -> Result<Running> {
    let mut running = Running::new();
    for port in ports {
        for last in from.iter().cycle().take(many) {
            match socket(tinboxd, *port, *last).await {
                Ok(socket) => running.push(Box::new(socket)),
                Err(_) => break,
            }
        }
    }
    Ok(running)
}

async fn strangers(tinboxd: &Tinboxd) -> Result<Running> {
    let mut requests = JoinSet::new();
    for _ in 0..80 {
        let stream = TokioIo::new(socket(tinboxd, 42113, 14).await?);
        let Ok((sender, connection)) =
            http2::handshake::<_, _, Body>(TokioExecutor::new(), stream).await
        else {
            continue;
        };
        requests.spawn(async move { drop(connection.await) });
        for _ in 0..50 {
            let mut sender = sender.clone();
            let path = "http://box:42113/proto.WorkflowService/GetAction";
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
    Ok(vec![Box::new(requests)])
}

/// From the address of a machine that the box knows.
async fn not_found(tinboxd: &Tinboxd, admin: &Client) -> Result<Running> {
    let from = Ipv4Addr::new(127, 99, 0, 20);
    let interface = json!({ "dhcp": {
        "mac": "52:54:00:99:00:20",
        "ip": { "address": from, "netmask": "255.0.0.0" },
    } });
    let config = applied("attacker", &json!({ "interfaces": [interface] }));
    let connection = admin.connect().await?;
    let path = format!("{HARDWARE}/attacker?fieldManager=bench&force=true");
    admin.send(&connection, (Method::PATCH, &path), &config).await?;
    for number in 0..2000 {
        let socket = UdpSocket::bind((from, 0)).await?;
        let request = format!("\0\u{1}no-{number}\0octet\0");
        socket.send_to(request.as_bytes(), (tinboxd.address(), 69)).await?;
        let mut answer = [0; 64];
        let answered = tokio::time::timeout(ANSWER_LIMIT, socket.recv(&mut answer)).await;
        ensure!(number > 0 || answered.is_ok(), "TFTP does not answer");
    }
    Ok(Vec::new())
}
