//! Receiver of a power webhook, which checks the signatures of each request.

use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::{Json, Router};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::{Sha256, Sha512};
use stdx::hex;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Secret of both signatures.
pub const SECRET: &str = "a secret of the webhook";
/// Header fields whose values differ from request to request, or by HTTP client.
const VARIABLE: [&str; 9] = [
    "accept",
    "accept-encoding",
    "content-length",
    "host",
    "user-agent",
    "x-rufio-signature-256",
    "x-rufio-signature-512",
    "x-rufio-timestamp",
    "traceparent",
];

/// Behavior of the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Executes each command at once.
    #[default]
    Honest,
    /// Executes each command, and responds with an error of HTTP.
    Unacknowledged,
    /// Executes each command, and reports the old state for this number of readings.
    Late(u32),
    /// Responds to each request with this text instead of JSON of the contract.
    Text(&'static str),
}

/// Request as it arrived.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Received {
    /// Name of the RPC method.
    pub method: String,
    /// Body without the ID, with its keys in the order of their names.
    pub body: String,
    /// Header fields `name: value` in the order of their names, without the variable values.
    pub fields: Vec<String>,
}

#[derive(Default)]
struct Machine {
    is_on: bool,
    mode: Mode,
    received: Vec<Received>,
}

impl Machine {
    /// Executes a command, and returns the state that the receiver reports.
    fn execute(&mut self, command: Option<&str>) -> bool {
        match command {
            Some("on" | "cycle" | "reset") => self.is_on = true,
            Some(_) => self.is_on = false,
            None => {
                let is_commanded = self.received.iter().any(|it| it.method.starts_with("set"));
                if let Mode::Late(left @ 1..) = &mut self.mode
                    && is_commanded
                {
                    *left -= 1;
                    return !self.is_on;
                }
            }
        }
        self.is_on
    }
}

/// Running receiver with one machine; ended when dropped.
pub struct Receiver {
    pub url: String,
    machine: Arc<Mutex<Machine>>,
    serving: JoinHandle<()>,
}

impl Receiver {
    /// Starts a receiver, whose machine is off.
    pub async fn start() -> Self {
        let machine: Arc<Mutex<Machine>> = Arc::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/power", listener.local_addr().unwrap());
        let router = Router::new().fallback(receive).with_state(Arc::clone(&machine));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, machine, serving }
    }

    /// Switches the machine, as its power button would.
    pub fn set(&self, is_on: bool) {
        self.machine.lock().unwrap().is_on = is_on;
    }

    /// Sets the behavior for all later requests.
    pub fn behave(&self, mode: Mode) {
        self.machine.lock().unwrap().mode = mode;
    }

    /// True if the machine is on.
    pub fn is_on(&self) -> bool {
        self.machine.lock().unwrap().is_on
    }

    /// Returns and removes the requests so far.
    pub fn take(&self) -> Vec<Received> {
        std::mem::take(&mut self.machine.lock().unwrap().received)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn receive(
    State(machine): State<Arc<Mutex<Machine>>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap();
    let refusal = |message: &str| {
        let error = json!({ "code": 401, "message": message });
        Json(json!({ "id": request["id"], "error": error })).into_response()
    };
    if !is_signed(&headers, &body) {
        return refusal("the signatures are not valid");
    }
    let mut without_id = request.clone();
    let id = without_id.as_object_mut().and_then(|it| it.remove("id"));
    assert!(id.is_some_and(|id| id.is_i64()), "{request}");
    let mut fields: Vec<String> = headers
        .iter()
        .map(|(name, value)| match VARIABLE.contains(&name.as_str()) {
            true => name.to_string(),
            false => format!("{name}: {}", value.to_str().unwrap()),
        })
        .collect();
    fields.sort();
    let method = request["method"].as_str().unwrap_or_default().to_owned();
    let mut machine = machine.lock().unwrap();
    let is_on = machine.execute(request["params"]["state"].as_str());
    let result = match method.as_str() {
        "getPowerState" if is_on => "on",
        "getPowerState" => "off",
        _ => "ok",
    };
    let is_command = method.starts_with("set");
    machine.received.push(Received { method, body: without_id.to_string(), fields });
    match machine.mode {
        Mode::Unacknowledged if is_command => StatusCode::BAD_GATEWAY.into_response(),
        Mode::Text(text) => text.into_response(),
        _ => Json(json!({ "id": request["id"], "host": request["host"], "result": result }))
            .into_response(),
    }
}

/// Returns true if both signatures cover the body and the time of the request.
fn is_signed(headers: &HeaderMap, body: &[u8]) -> bool {
    let text = |name: &str| headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let time = text("x-rufio-timestamp");
    let has_time = time.parse::<jiff::Timestamp>().is_ok();
    let sha256 = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    let sha256 = sha256.chain_update(body).chain_update(time).finalize().into_bytes();
    let sha512 = Hmac::<Sha512>::new_from_slice(SECRET.as_bytes()).unwrap();
    let sha512 = sha512.chain_update(body).chain_update(time).finalize().into_bytes();
    has_time
        && text("x-rufio-signature-256") == format!("sha256={}", hex(&sha256))
        && text("x-rufio-signature-512") == format!("sha512={}", hex(&sha512))
}
