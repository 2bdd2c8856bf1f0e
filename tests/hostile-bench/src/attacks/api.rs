//! Attacks by clients with a credential.

use std::convert::Infallible;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::Method;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

use super::{HARDWARE, Running};
use crate::client::{Body, Client, full};

/// Requests of a client on one connection.
const STREAMS: usize = 100;
const MIB: usize = 1024 * 1024;

/// Metadata of an object for server-side apply.
pub fn applied(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "tinkerbell.org/v1alpha1", "kind": "Hardware",
        "metadata": { "name": name }, "spec": spec,
    })
}

/// Creates a client with a role of the box.
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

/// Requests answers without reading them; refused requests count too.
pub async fn unread(admin: &Client, (path, many): (&str, usize)) -> Result<Running> {
    let client = with_role(admin, "viewer").await?;
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

/// Opens watches without reading them, and writes objects that all of them must send.
pub async fn unread_watches(admin: &Client) -> Result<Running> {
    let connection = admin.connect().await?;
    let path = format!("{HARDWARE}?limit=1");
    let list = admin.send(&connection, (Method::GET, &path), &Value::Null).await?;
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let path = format!("{HARDWARE}?watch=true&resourceVersion={revision}");
    let running = unread(admin, (&path, 500)).await?;
    for number in 0..40 {
        let text = format!("{number}{}", "x".repeat(900_000));
        let config = applied("m0", &json!({ "userData": text }));
        let path = format!("{HARDWARE}/m0?fieldManager=writer&force=true");
        admin.send(&connection, (Method::PATCH, &path), &config).await?;
    }
    Ok(running)
}

/// One object, applied by many managers at the same time.
pub async fn heavy(admin: &Client) -> Result<Running> {
    let client = with_role(admin, "operator").await?;
    // Fields of a map, not a list, and below the limit at which they are refused before the merge.
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
            while client.open(&connection, (Method::PATCH, &path), full(text.clone())).await.is_ok()
            {
            }
        });
    }
    Ok(vec![Box::new(applies)])
}

/// A body that sends this number of bytes and never ends.
pub fn endless(bytes: usize) -> Body {
    let begun = Ok::<_, Infallible>(Frame::data(Bytes::from(vec![b' '; bytes])));
    StreamBody::new(stream::iter([begun]).chain(stream::pending())).boxed_unsync()
}

/// Sends bodies that never end.
pub async fn bodies(admin: &Client) -> Result<Running> {
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
