//! Routes and handlers of the metadata service.
//!
//! | Path | Answer |
//! |---|---|
//! | `/2009-04-04/…` | Tinkerbell's tree |
//! | `/<later version>/…`, `/latest/…` | the EC2 tree |
//! | PUT `/latest/api/token` | an IMDSv2 token |
//! | `/tootles/instanceID/<id>/2009-04-04/…` | the same of any machine, where switched on |
//! | `/nocloud/{meta-data,user-data,vendor-data,network-config}` | the NoCloud seed |
//! | `/nocloud/v1/…` | the same, its network configuration of version 1 |
//! | `/ignition`, `/config.ign` | user data, as Ignition's configuration |
//! | `/talos` | user data, as Talos' configuration; the query is ignored |
//! | `/metadata` | the storage part, for rootio |
//! | POST `/phone-home` | recorded |
//! | `/power-hook` | script that installs the power hook of the machine, with its key |
//! | POST `/power-hook/poll`, `/power-hook/down` | messages of the power hook |
//!
//! [`Instances`] finds the machine by the source address of the request. An unknown address gets
//! 404 for every path, even for lists, which Tootles sends to any client. Methods other than GET
//! and HEAD get 405; Tootles sends 404. The router has no fallback, so that other routers can be
//! merged with it. The router needs the client's address (`ConnectInfo<SocketAddr>`).

pub mod fake;
mod power_hook;
mod tree;

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{
    ConnectInfo, DefaultBodyLimit, Extension, FromRequest as _, Path, Request, State,
};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use stdx::MacAddr;

use crate::nocloud::NetworkConfig;
use crate::phone_home::MAX_FORM;
use crate::token::Tokens;
use crate::window::{self, PhoneHomes};
use crate::{
    Config, Instance, Instances, PhoneHome, PowerHooks, Unmatched, nocloud, proxy, rootio,
};

/// Maximum characters of a path that the observer gets.
const MAX_PATH: usize = 200;
const USER_DATA: &str = "user-data";
/// Files of the NoCloud seed that may have secrets, which only the machine may read.
const SECRET_FILES: [&str; 2] = [USER_DATA, "vendor-data"];

/// Receiver of events. The server's tasks call it, so it must not block.
pub trait Observer: Send + Sync + 'static {
    /// Reports an answered request. `path` is shortened and contains no metadata.
    fn answered(&self, peer: IpAddr, path: &str, status: u16);
    /// Reports that a machine's operating system has started. An identical report within a minute
    /// is dropped.
    fn phoned_home(&self, phone_home: PhoneHome);
    /// Reports that a client with the machine's address requested user data outside the window, and
    /// got an empty answer.
    fn withheld(&self, peer: IpAddr, hardware: &str);
    /// Reports an unanswered request from the address of `hardware`. Its sender is the NIC `mac`,
    /// which is not one of the machine's.
    fn refused(&self, peer: IpAddr, hardware: &str, mac: MacAddr);
}

struct RouterState {
    config: Config,
    instances: Arc<dyn Instances>,
    observer: Arc<dyn Observer>,
    tokens: Mutex<Tokens>,
    phone_homes: Mutex<PhoneHomes>,
    hooks: Arc<PowerHooks>,
}

type Shared = State<Arc<RouterState>>;
/// Address of the client, also behind trusted proxies.
type Client = Extension<IpAddr>;

/// Returns the routes of this crate.
pub fn router(
    config: Config,
    instances: Arc<dyn Instances>,
    observer: Arc<dyn Observer>,
    hooks: Arc<PowerHooks>,
) -> Router {
    let by_id = config.instance_endpoint;
    let (tokens, phone_homes) = (Mutex::default(), Mutex::default());
    let state = Arc::new(RouterState { config, instances, observer, tokens, phone_homes, hooks });
    let mut routes = Router::new()
        .route("/latest/api/token", put(tree::token))
        .route("/metadata", get(storage))
        .route("/nocloud/{file}", get(seed))
        .route("/nocloud/v1/{file}", get(seed_v1))
        .route("/ignition", get(ignition))
        .route("/config.ign", get(ignition))
        .route("/talos", get(talos))
        .route("/phone-home", post(phone_home))
        .route("/phone-home/", post(phone_home))
        .route("/phone-home/{id}", post(phone_home))
        .route("/power-hook", get(power_hook::install))
        .route("/power-hook/poll", post(power_hook::poll))
        .route("/power-hook/down", post(power_hook::down))
        .route("/{version}", get(tree::own))
        .route("/{version}/", get(tree::own))
        .route("/{version}/{*path}", get(tree::own));
    if by_id {
        routes = routes
            .route("/tootles/instanceID/{id}/2009-04-04", get(tree::of_id))
            .route("/tootles/instanceID/{id}/2009-04-04/", get(tree::of_id))
            .route("/tootles/instanceID/{id}/2009-04-04/{*path}", get(tree::of_id));
    }
    routes
        .layer(DefaultBodyLimit::max(MAX_FORM))
        .route_layer(middleware::from_fn_with_state(state.clone(), observe))
        .with_state(state)
}

/// Determines the client, and reports every response to the observer.
async fn observe(
    State(state): Shared,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Response {
    let path: String = request.uri().path().chars().take(MAX_PATH).collect();
    let (client, response) = match proxy::client(peer.ip(), request.headers(), &state.config) {
        Ok(client) => {
            request.extensions_mut().insert(client);
            (client, next.run(request).await)
        }
        Err(proxy::Malformed) => {
            let why = "the X-Forwarded-For of a trusted proxy has no client\n";
            (peer.ip().to_canonical(), (StatusCode::BAD_REQUEST, why).into_response())
        }
    };
    // The polls of a power hook count by their HMAC, not by the address of their sender.
    if !path.starts_with("/power-hook/") {
        state.observer.answered(client, &path, response.status().as_u16());
    }
    response
}

impl RouterState {
    /// Returns the machine at the address, without user data that it may not have now. `path` is
    /// for the observer. `None`: no machine has this address.
    fn machine(&self, client: IpAddr, path: &str) -> Option<Instance> {
        Some(self.without_secrets(self.sender(client)?, client, path))
    }

    /// Returns the machine that sent a request, with its user data.
    fn sender(&self, client: IpAddr) -> Option<Instance> {
        match self.instances.by_address(client) {
            Ok(instance) => Some(instance),
            Err(Unmatched::UnknownAddress) => None,
            Err(Unmatched::OtherNic { hardware, mac }) => {
                self.observer.refused(client, &hardware, mac);
                None
            }
        }
    }

    /// Returns true if the machine may have its user data now.
    fn may_have_secrets(&self, instance: &Instance) -> bool {
        let since_phone_home = lock(&self.phone_homes).since(&instance.hardware, Instant::now());
        window::is_open(&self.config, instance.provisioning, since_phone_home)
    }

    /// Removes user data and vendor data from `instance` if the machine may not have them now.
    fn without_secrets(&self, mut instance: Instance, client: IpAddr, path: &str) -> Instance {
        if self.may_have_secrets(&instance) {
            return instance;
        }
        let secrets = [instance.user_data.take(), instance.vendor_data.take()];
        let file = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        if SECRET_FILES.contains(&file) && secrets.iter().any(Option::is_some) {
            self.observer.withheld(client, &instance.hardware);
        }
        instance
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn seed(
    State(state): Shared,
    Extension(client): Client,
    Path(file): Path<String>,
) -> Response {
    seed_file(&state, client, &file, NetworkConfig::V2)
}

async fn seed_v1(
    State(state): Shared,
    Extension(client): Client,
    Path(file): Path<String>,
) -> Response {
    seed_file(&state, client, &file, NetworkConfig::V1)
}

fn seed_file(state: &RouterState, client: IpAddr, file: &str, version: NetworkConfig) -> Response {
    let machine = state.machine(client, file);
    let addressing = state.config.addressing;
    answer(machine.and_then(|machine| nocloud::file(&machine, file, version, addressing)))
}

/// Serves user data as Ignition's configuration, with the content type of Ignition's specification.
async fn ignition(State(state): Shared, Extension(client): Client) -> Response {
    configuration(&state, client, "application/vnd.coreos.ignition+json")
}

async fn talos(State(state): Shared, Extension(client): Client) -> Response {
    configuration(&state, client, "application/yaml")
}

/// Returns user data as a complete configuration. Without user data the status is 404, because an
/// empty body is not a valid configuration.
fn configuration(state: &RouterState, client: IpAddr, kind: &'static str) -> Response {
    let machine = state.machine(client, USER_DATA);
    match machine.and_then(|machine| machine.user_data) {
        Some(data) => ([(header::CONTENT_TYPE, kind)], data.expose().to_owned()).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn storage(State(state): Shared, Extension(client): Client) -> Response {
    let Some(instance) = state.sender(client) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    match rootio::json(&instance) {
        Some(json) => {
            ([(header::CONTENT_TYPE, "application/json; charset=utf-8")], json).into_response()
        }
        None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn phone_home(State(state): Shared, Extension(client): Client, request: Request) -> Response {
    // Looked up first: nothing is read from clients that no machine is known for.
    let Some(instance) = state.sender(client) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    match Bytes::from_request(request, &()).await {
        Ok(form) => {
            let phone_home = PhoneHome::read(client, instance.hardware.clone(), &form);
            let is_new = lock(&state.phone_homes).note(&instance, &phone_home, Instant::now());
            if is_new {
                state.observer.phoned_home(phone_home);
            }
            answer(Some(String::new()))
        }
        Err(rejection) => rejection.into_response(),
    }
}

fn answer(text: Option<String>) -> Response {
    let Some(text) = text else { return StatusCode::NOT_FOUND.into_response() };
    let mut response = Response::new(Body::from(text));
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

#[cfg(test)]
mod tests;
