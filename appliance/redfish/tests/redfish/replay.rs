//! Service with the recorded resources of a real BMC (`recordings/`), which takes the changes that
//! they offer.

use std::collections::BTreeMap;
use std::path::Path;

use redfish::{BootRequest, BootTarget, Error, PowerRequest, PowerState, Redfish};
use serde_json::{Map, Value, json};

use crate::server::{Received, Response, Service};

const ROOT: &str = "/redfish/v1";
const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";
const TOKEN: &str = "token";
/// Image that the tests insert.
pub const IMAGE: &str = "http://192.0.2.9/install.iso";

/// Requests that change something: method and path, and body.
pub type Changes = Vec<(String, Value)>;

/// Resources of a service, by path without a slash at its end.
struct Tree(BTreeMap<String, Value>);

impl Tree {
    fn read(recording: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings");
        let text = std::fs::read_to_string(folder.join(format!("{recording}.json"))).unwrap();
        let resources: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
        Self(resources.into_iter().map(|(path, it)| (trimmed(&path), it)).collect())
    }

    fn respond(&mut self, request: &Received) -> Response {
        let (method, path) = request.line.split_once(' ').unwrap();
        let path = trimmed(path);
        let body = serde_json::from_str(&request.body).unwrap_or_default();
        let is_open = path == ROOT || path == SESSIONS && method == "POST";
        match method {
            _ if !is_open && request.header("x-auth-token") != TOKEN => Response::new(401, "{}"),
            "POST" if path == SESSIONS => Response::new(201, "{}")
                .with(&format!("X-Auth-Token: {TOKEN}"))
                .with(&format!("Location: {SESSIONS}/1")),
            "DELETE" => Response::new(204, ""),
            "GET" => match self.0.get(&path) {
                Some(resource) => Response::new(200, resource),
                None => Response::new(404, "{}"),
            },
            "PATCH" => self.patch(&path, request.header("if-match"), &body),
            _ => self.act(&path, &body),
        }
    }

    /// Changes a resource; its version must be sent if it has one.
    fn patch(&mut self, path: &str, version: &str, body: &Value) -> Response {
        let Some(resource) = self.0.get_mut(path) else { return Response::new(404, "{}") };
        match resource["@odata.etag"].as_str() {
            Some(found) if found != version => Response::new(412, "{}"),
            _ => {
                merge(resource, body);
                Response::new(204, "")
            }
        }
    }

    /// Executes a reset, or inserts or ejects media.
    fn act(&mut self, path: &str, body: &Value) -> Response {
        let (owner, action) = path.split_once("/Actions/").unwrap_or_default();
        let offered = self.reset_types(owner);
        let Some(resource) = self.0.get_mut(owner) else { return Response::new(404, "{}") };
        match action {
            "ComputerSystem.Reset" => {
                let kind = body["ResetType"].as_str().unwrap_or_default();
                if !offered.iter().any(|it| it == kind) {
                    return Response::new(400, "{}");
                }
                let is_off = ["ForceOff", "GracefulShutdown"].contains(&kind);
                resource["PowerState"] = if is_off { "Off" } else { "On" }.into();
            }
            "VirtualMedia.InsertMedia" => {
                merge(resource, &json!({ "Inserted": true, "Image": body["Image"] }));
            }
            "VirtualMedia.EjectMedia" => {
                merge(resource, &json!({ "Inserted": false, "Image": null }));
            }
            _ => return Response::new(404, "{}"),
        }
        Response::new(204, "")
    }

    fn reset_types(&self, system: &str) -> Vec<Value> {
        let action =
            &self.0.get(system).unwrap_or(&Value::Null)["Actions"]["#ComputerSystem.Reset"];
        let own = &action["ResetType@Redfish.AllowableValues"];
        let info = action["@Redfish.ActionInfo"].as_str().and_then(|info| self.0.get(info));
        let parameter = info.map_or(&Value::Null, |info| &info["Parameters"][0]);
        [own, &parameter["AllowableValues"]]
            .into_iter()
            .filter_map(Value::as_array)
            .flatten()
            .cloned()
            .collect()
    }
}

fn trimmed(path: &str) -> String {
    path.trim_end_matches('/').to_owned()
}

/// Replaces properties, also of objects in the resource.
fn merge(resource: &mut Value, changes: &Value) {
    match changes {
        Value::Object(changes) => {
            if !resource.is_object() {
                *resource = Map::new().into();
            }
            for (name, value) in changes {
                merge(&mut resource[name.as_str()], value);
            }
        }
        value => resource.clone_from(value),
    }
}

/// Recorded service and a client of its machine.
pub struct Replay {
    service: Service,
    /// Client of the machine, without a name of the system.
    pub client: Redfish,
}

impl Replay {
    /// Starts the service with the resources of `recordings/<recording>.json`.
    pub fn start(recording: &str) -> Self {
        let mut tree = Tree::read(recording);
        let service = Service::start(move |request| tree.respond(request));
        let client = service.client("any");
        Self { service, client }
    }

    /// Returns the requests of `action` that change something.
    pub async fn changes_of(&self, action: impl Future<Output = Result<(), Error>>) -> Changes {
        let before = self.service.all().len();
        action.await.unwrap();
        let received = self.service.all().split_off(before);
        let changing = received.into_iter().filter(|it| !it.line.starts_with("GET "));
        let changing = changing.filter(|it| !it.line.ends_with(SESSIONS));
        changing.map(|it| (it.line, serde_json::from_str(&it.body).unwrap())).collect()
    }

    /// Checks the reset of each power request, and the state after it.
    pub async fn check_power(&self, target: &str, cycle: &str, soft: &str) {
        let client = &self.client;
        assert_eq!(client.power().await.unwrap(), PowerState::On);
        for (request, kind, state) in [
            (PowerRequest::Reset, "ForceRestart", PowerState::On),
            (PowerRequest::Cycle, cycle, PowerState::On),
            (PowerRequest::Soft, soft, PowerState::Off),
            (PowerRequest::On, "On", PowerState::On),
            (PowerRequest::Off, "ForceOff", PowerState::Off),
            // A machine that is off has no power to cycle.
            (PowerRequest::Cycle, "On", PowerState::On),
        ] {
            let changes = self.changes_of(client.set_power(request)).await;
            let expected = vec![(format!("POST {target}"), json!({ "ResetType": kind }))];
            assert_eq!(changes, expected, "{request:?}");
            assert_eq!(client.power().await.unwrap(), state, "{request:?}");
        }
    }

    /// Checks the one request that sets a boot device for the next boot, and reads it back.
    pub async fn check_boot(&self, target: BootTarget, place: &str, boot: Value) {
        let request = BootRequest { target, persistent: false, efi: true };
        let changes = self.changes_of(self.client.set_boot(&request)).await;
        assert_eq!(changes, [(format!("PATCH {place}"), json!({ "Boot": boot }))]);
        let found = self.client.boot().await.unwrap().unwrap();
        assert_eq!((found.target, found.persistent), (request.target, false));
    }

    /// Returns the error of a boot override that the service does not offer. Nothing is sent.
    pub async fn boot_error(&self, target: BootTarget, persistent: bool) -> String {
        let before = self.service.all().len();
        let request = BootRequest { target, persistent, efi: true };
        let error = self.client.set_boot(&request).await.unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        let sent = self.service.all().split_off(before);
        assert!(sent.iter().all(|it| it.line.starts_with("GET ")), "{sent:?}");
        error.to_string()
    }

    /// Checks the requests that insert and eject by the actions of a slot.
    pub async fn check_media(&self, slot: &str, insert: Value) {
        let inserted = self.changes_of(self.client.insert_media(IMAGE)).await;
        let target = |name: &str| format!("POST {slot}/Actions/VirtualMedia.{name}");
        assert_eq!(inserted, [(target("InsertMedia"), insert)]);
        let again = self.changes_of(self.client.insert_media(IMAGE)).await;
        assert_eq!(again, [], "the image is in the slot");
        let ejected = self.changes_of(self.client.eject_media()).await;
        assert_eq!(ejected, [(target("EjectMedia"), json!({}))]);
        assert_eq!(self.changes_of(self.client.eject_media()).await, []);
    }

    /// Checks the requests that switch the identification LED on and off.
    pub async fn check_led(&self, place: &str, on: Value, off: Value) {
        for (is_on, body) in [(true, on), (false, off)] {
            let changes = self.changes_of(self.client.identify(is_on)).await;
            assert_eq!(changes, [(format!("PATCH {place}"), body)]);
        }
    }

    /// Returns the sensors: name, value and unit.
    pub async fn sensors(&self) -> Vec<(String, Option<f64>, String)> {
        let sensors = self.client.sensors().await.unwrap().into_iter();
        sensors.map(|it| (it.name, it.value, it.unit)).collect()
    }

    /// Returns the newest entries of the log: identifier and message.
    pub async fn log(&self, limit: usize) -> Vec<(String, String)> {
        let log = self.client.events(limit).await.unwrap().into_iter();
        log.map(|it| (it.id, it.message)).collect()
    }
}
