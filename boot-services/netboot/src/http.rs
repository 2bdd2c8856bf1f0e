//! HTTP server for loaders, scripts, the agent's files and disk images.
//!
//! | Path | Answer |
//! |---|---|
//! | `/ipxe/binary/[<mac>/]<name>` | a loader, as over TFTP |
//! | `/ipxe/script/<mac>/auto.ipxe`, `/<mac>/auto.ipxe` | that machine's script |
//! | `/ipxe/script/auto.ipxe`, `/auto.ipxe` | script for the client's IP address |
//! | `/tftp/<name>` | the files of TFTP, for U-Boot's PXE over HTTP |
//! | `/agent/<file>`, `/images/<file>` | files, with ranges |
//! | `/iso/…`, `/uki/…` | media with a machine's arguments, see [`crate::iso`] |
//! | `/cache/<key>/<path>` | files of other servers ([`cached_router`]) |
//! | `/v2/…` | images of other registries ([`registry_router`]) |
//! | `/healthz`, `/readyz`, `/healthcheck` | health, for probes |
//!
//! The paths are Smee's (`smee/internal/ipxe`; the short ones are its predecessor's); `/agent` and
//! `/images` are Tinbox's own. The router has no fallback, so that other routers can be merged with
//! it. The router needs the client's address (`ConnectInfo<SocketAddr>`), which [`serve`] supplies.
//! With an [`HttpService`] that has [`Downloads`], requests for files do not pass through the
//! router: `head` parses such a request, `downloads` finds the file, `content` decides the
//! response, `send_file` sends it.

mod activity;
mod cached;
mod connection;
mod content;
mod downloads;
pub mod head;
mod holes;
mod listener;
mod registry;
mod send_file;
mod write_timeout;

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

use downloads::ArtifactFile;

use crate::files::ArtifactFolder;
use crate::loader::{BootFile, owner};
use crate::script::{self, pxelinux};
use crate::{Boot, FetchEvent, Plan, Services, iso};

pub use cached::cached_router;
pub use content::Conditions;
pub use downloads::Downloads;
pub use listener::{HttpService, serve, serve_tls, serve_tls_or_plain};
pub use registry::registry_router;

/// Values that the HTTP server puts into its responses.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// Base URL of the scripts, for `autoexec.ipxe`: `http://10.77.0.1:7080`.
    pub script_base: String,
    /// Version of Tinbox, which `/healthcheck` reports as `git_rev`, the field name of Smee.
    pub version: String,
}

struct RouterState {
    config: HttpConfig,
    services: Services,
    media: Arc<iso::MediaRoutes>,
    started: Instant,
}

type Shared = State<Arc<RouterState>>;
type Client = ConnectInfo<SocketAddr>;

/// Returns the routes of this crate.
pub fn router(config: HttpConfig, services: Services) -> Router {
    let media = Arc::new(iso::MediaRoutes::new(services.clone()));
    let routes = iso::routes(Arc::clone(&media));
    let state = RouterState { config, services, media, started: Instant::now() };
    Router::new()
        .route("/ipxe/binary/{*path}", get(loader))
        .route("/tftp/{*path}", get(loader))
        .route("/ipxe/script/auto.ipxe", get(script_by_address))
        .route("/ipxe/script/{mac}/auto.ipxe", get(script_by_mac))
        .route("/auto.ipxe", get(script_by_address))
        .route("/{mac}/auto.ipxe", get(script_by_mac))
        .route("/agent/{*path}", get(agent))
        .route("/images/{*path}", get(image))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/healthcheck", get(healthcheck))
        .with_state(Arc::new(state))
        .merge(routes)
}

/// Serves the agent's files at the root, `vmlinuz-x86_64` and `initramfs-x86_64`. Machines request
/// them there when they are configured for a HookOS file server (`osie.baseURL` with port 7173).
pub fn files_router(services: Services) -> Router {
    let config = HttpConfig { script_base: String::new(), version: String::new() };
    let media = Arc::new(iso::MediaRoutes::new(services.clone()));
    let state = RouterState { config, services, media, started: Instant::now() };
    Router::new().route("/{file}", get(agent)).with_state(Arc::new(state))
}

async fn loader(
    State(state): Shared,
    client: Client,
    Path(path): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    if iso::is_unified(&path) {
        let request = iso::MediumRequest { peer: peer(client), uri: &uri, headers: &headers };
        return state.media.unified(&path, request).await;
    }
    if let Some(file) = ArtifactFile::loader(&path) {
        return state.file(&file, client, &uri, &headers).await;
    }
    let (peer, base) = (peer(client), &state.config.script_base);
    if !state.services.may_netboot(owner(&path), peer) {
        return StatusCode::NOT_FOUND.into_response();
    }
    match BootFile::read(&path) {
        Some(BootFile::Autoexec) => {
            let reader = state.services.reader(peer);
            let plan = state.services.plans.by_address(peer).filter(|plan| plan.is_for(reader));
            text(script::autoexec(base, plan.map(|plan| plan.mac)))
        }
        Some(BootFile::Pxelinux(mac)) => {
            let plan = state.services.plans.by_mac(mac);
            state.script(peer, Some(mac), plan, |plan| pxelinux::config(plan, base), None)
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn agent(
    State(state): Shared,
    client: Client,
    Path(path): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    state.file(&ArtifactFile::plain(ArtifactFolder::Agent, &path), client, &uri, &headers).await
}

async fn image(
    State(state): Shared,
    client: Client,
    Path(path): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    state.file(&ArtifactFile::plain(ArtifactFolder::Images, &path), client, &uri, &headers).await
}

async fn script_by_mac(State(state): Shared, client: Client, Path(mac): Path<String>) -> Response {
    match mac.parse::<MacAddr>() {
        Ok(mac) => {
            let plan = state.services.plans.by_mac(mac);
            state.script(peer(client), Some(mac), plan, ipxe, state.unknown_machine())
        }
        Err(error) => (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
    }
}

async fn script_by_address(State(state): Shared, client: Client) -> Response {
    let peer = peer(client);
    let plan = state.services.plans.by_address(peer);
    state.script(peer, plan.as_ref().map(|plan| plan.mac), plan, ipxe, state.unknown_machine())
}

/// Returns the iPXE script of a machine; `None` if the machine may not netboot.
fn ipxe(plan: &Plan) -> Option<String> {
    (plan.boot != Boot::NotAllowed).then(|| script::render(plan))
}

/// Handles `/readyz`: ready if the artifact directory has at least one boot loader.
async fn ready(State(state): Shared) -> Response {
    let folder = state.services.files.folder(ArtifactFolder::Loaders);
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

async fn healthcheck(State(state): Shared) -> Response {
    let version: String =
        state.config.version.chars().filter(|c| !c.is_control() && !"\"\\".contains(*c)).collect();
    let uptime = state.started.elapsed().as_secs_f64();
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    // Field names are Smee's; a task corresponds to a goroutine.
    let body =
        format!(r#"{{"git_rev":"{version}","uptime_seconds":{uptime:.3},"goroutines":{tasks}}}"#);
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

impl RouterState {
    /// Returns the common script for unknown machines; `None` if they get no script.
    fn unknown_machine(&self) -> Option<String> {
        self.services.plans.unknown_machine().map(|boot| script::unknown_machine(&boot))
    }

    /// Returns the response to a script request: for a known machine its plan rendered by
    /// `written`, for an unknown machine `common`. Without a script the status is 404, as in Smee,
    /// so that iPXE gives up and the firmware continues.
    fn script(
        &self,
        peer: IpAddr,
        mac: Option<MacAddr>,
        plan: Option<Plan>,
        written: impl FnOnce(&Plan) -> Option<String>,
        common: Option<String>,
    ) -> Response {
        let (boot, script) = match &plan {
            Some(plan) if plan.is_for(self.services.reader(peer)) => {
                (plan.boot.label(), written(plan))
            }
            // A client that requests the script of another machine does not get the common one.
            Some(_) => ("withheld", None),
            None if common.is_some() => ("unknown-machine", common),
            None => ("unknown", None),
        };
        let response = script.map_or_else(|| StatusCode::NOT_FOUND.into_response(), text);
        self.services.observer.fetched(FetchEvent::Script {
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
        file: &ArtifactFile,
        client: Client,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Response {
        let (observer, peer) = (self.services.observer.clone(), peer(client));
        let record = content::Record::new(observer, peer, uri.path());
        if file.loader_owner.is_some_and(|owner| !self.services.may_netboot(owner, peer)) {
            return record.empty(StatusCode::NOT_FOUND);
        }
        match self.services.files.open(file.folder, &file.name).await {
            Ok(opened) => content::answer(opened, headers, record).await,
            Err(error) => record.empty(downloads::status(file, &error)),
        }
    }
}

fn peer(ConnectInfo(address): Client) -> IpAddr {
    address.ip().to_canonical()
}

/// Returns a script as a response with `no-store`, because the next response may differ.
fn text(body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests;
