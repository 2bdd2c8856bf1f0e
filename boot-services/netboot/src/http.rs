//! The HTTP side: loaders, scripts, the agent's files and disk images.
//!
//! | Path | Answer |
//! |---|---|
//! | `/ipxe/binary/[<mac>/]<name>` | a loader, as over TFTP |
//! | `/ipxe/script/<mac>/auto.ipxe` | the script of that machine |
//! | `/ipxe/script/auto.ipxe` | the script of the machine that asks, by its address |
//! | `/agent/<file>`, `/images/<file>` | files, with ranges |
//! | `/healthz`, `/readyz`, `/healthcheck` | for probes |
//!
//! The paths are Smee's (`smee/internal/ipxe`), `/agent` and `/images` are our own. The router has
//! no fallback, so that others can be merged with it; it needs the client's address
//! (`ConnectInfo<SocketAddr>`), which [`serve`] supplies.

mod content;
mod edge;
mod range;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use stdx::MacAddr;

use crate::files::Shelf;
use crate::loader::Wanted;
use crate::{Fetched, Plan, Services, script};

pub use edge::{MAX_CONNECTIONS, serve};

/// What the server says about itself and its surroundings.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// Where the scripts are, for `autoexec.ipxe`: `http://10.77.0.1:7080`.
    pub script_base: String,
    /// The product's version, shown by `/healthcheck` as `git_rev` as Smee does.
    pub version: String,
}

struct Site {
    config: HttpConfig,
    services: Services,
    started: Instant,
}

type Shared = State<Arc<Site>>;
type Client = ConnectInfo<SocketAddr>;

/// The routes of this crate.
pub fn router(config: HttpConfig, services: Services) -> Router {
    let site = Site { config, services, started: Instant::now() };
    Router::new()
        .route("/ipxe/binary/{*path}", get(binary))
        .route("/ipxe/script/auto.ipxe", get(script_by_address))
        .route("/ipxe/script/{mac}/auto.ipxe", get(script_by_mac))
        .route("/agent/{*path}", get(agent))
        .route("/images/{*path}", get(image))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/healthcheck", get(healthcheck))
        .with_state(Arc::new(site))
}

async fn binary(
    State(site): Shared,
    client: Client,
    Path(path): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    match Wanted::read(&path) {
        Some(Wanted::File(name)) => site.file(Shelf::Loaders, &name, client, &uri, &headers).await,
        Some(Wanted::Autoexec) => {
            let plan = site.services.plans.by_address(peer(client));
            text(script::autoexec(&site.config.script_base, plan.map(|plan| plan.mac)))
        }
        Some(Wanted::NotAllowed) | None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn agent(
    State(site): Shared,
    client: Client,
    Path(path): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    site.file(Shelf::Agent, &path, client, &uri, &headers).await
}

async fn image(
    State(site): Shared,
    client: Client,
    Path(path): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    site.file(Shelf::Images, &path, client, &uri, &headers).await
}

async fn script_by_mac(State(site): Shared, client: Client, Path(mac): Path<String>) -> Response {
    match mac.parse::<MacAddr>() {
        Ok(mac) => {
            let (peer, plan) = (peer(client), site.services.plans.by_mac(mac));
            let plan = plan.filter(|plan| plan.is_for(peer));
            site.script(peer, Some(mac), plan)
        }
        Err(error) => (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
    }
}

async fn script_by_address(State(site): Shared, client: Client) -> Response {
    let peer = peer(client);
    let plan = site.services.plans.by_address(peer);
    site.script(peer, plan.as_ref().map(|plan| plan.mac), plan)
}

/// Ready when there is something to boot machines with.
async fn ready(State(site): Shared) -> Response {
    let folder = site.services.files.shelf(Shelf::Loaders);
    let filled = match tokio::fs::read_dir(&folder).await {
        Ok(mut entries) => matches!(entries.next_entry().await, Ok(Some(_))),
        Err(_) => false,
    };
    if filled {
        "ok\n".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "no boot loaders in the artifact directory\n")
            .into_response()
    }
}

async fn healthcheck(State(site): Shared) -> Response {
    let version: String =
        site.config.version.chars().filter(|c| !c.is_control() && !"\"\\".contains(*c)).collect();
    let uptime = site.started.elapsed().as_secs_f64();
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    // Smee's field names; a task is what a goroutine is there.
    let body =
        format!(r#"{{"git_rev":"{version}","uptime_seconds":{uptime:.3},"goroutines":{tasks}}}"#);
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

impl Site {
    /// A script's answer. 404 for machines nobody knows, as Smee gives, so that iPXE gives up.
    fn script(&self, peer: IpAddr, mac: Option<MacAddr>, plan: Option<Plan>) -> Response {
        let (response, boot) = match &plan {
            Some(plan) => (text(script::render(plan)), plan.boot.word()),
            None => (StatusCode::NOT_FOUND.into_response(), "unknown"),
        };
        self.services.observer.fetched(Fetched::Script {
            peer,
            mac,
            hardware: plan.map(|plan| plan.hardware),
            boot,
            status: response.status().as_u16(),
        });
        response
    }

    async fn file(
        &self,
        shelf: Shelf,
        name: &str,
        client: Client,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Response {
        let observer = self.services.observer.clone();
        let record = content::Record::new(observer, peer(client), uri.path());
        match self.services.files.open(shelf, name).await {
            Ok(opened) => content::answer(opened, headers, record).await,
            Err(error) => {
                let status = match error.kind() {
                    std::io::ErrorKind::NotFound => StatusCode::NOT_FOUND,
                    _ => {
                        tracing::warn!(path = uri.path(), %error, "a file could not be opened");
                        StatusCode::INTERNAL_SERVER_ERROR
                    }
                };
                record.empty(status)
            }
        }
    }
}

fn peer(ConnectInfo(address): Client) -> IpAddr {
    address.ip().to_canonical()
}

/// A script: small, and different the next time.
fn text(body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests;
