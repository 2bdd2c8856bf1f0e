//! Event log, sensors and inventory of a machine, read from its BMC as a request of the API. The
//! path is the same for every driver.

use std::sync::{Arc, OnceLock};

use api::bmc::{MACHINE, Machine};
use api::meta::ObjectKey;
use apiserver::failure;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use bmc::{Driver, Error, HardwareInventory, LogEntry, Sensor, SensorState};
use controllers::Drivers;
use controllers::machine::connect_machine;
use objects::{ObjectError, Objects, fetch};
use serde_json::{Value, json};

/// Drivers of BMCs with their queues; empty until the controllers start, and in safe mode.
pub type StartedDrivers = Arc<OnceLock<Arc<dyn Drivers>>>;

#[derive(Clone)]
struct Access {
    objects: Arc<dyn Objects>,
    drivers: StartedDrivers,
}

/// Returns the route of the readings: `events` (newest last, at most [`LogEntry::LIMIT`]),
/// `sensors` and `inventory` of the BMC Machine `name`. Each request waits in the queue of its BMC.
pub fn router(objects: Arc<dyn Objects>, drivers: StartedDrivers) -> Router {
    let path = "/apis/tinbox.dev/v1alpha1/namespaces/{namespace}/bmcmachines/{name}/{reading}";
    Router::new().route(path, get(read)).with_state(Access { objects, drivers })
}

async fn read(
    State(access): State<Access>,
    Path((namespace, name, reading)): Path<(String, String, String)>,
) -> Result<Response, Response> {
    let driver = access.driver(&ObjectKey::new(&namespace, &name)).await?;
    let driver = driver.as_ref();
    let found = match reading.as_str() {
        "events" => driver.events().await.map(|found| found.iter().map(event).collect()),
        "sensors" => driver.sensors().await.map(|found| found.iter().map(sensor).collect()),
        "inventory" => driver.inventory().await.map(|found| inventory(&found)),
        other => {
            let why = format!("expected events, sensors or inventory, found {other:?}");
            return Err(failure(StatusCode::NOT_FOUND, "NotFound", &why));
        }
    };
    found.map(|found| Json(found).into_response()).map_err(|error| refused(driver, &error))
}

impl Access {
    async fn driver(&self, key: &ObjectKey) -> Result<Arc<dyn Driver>, Response> {
        let found: Result<Machine, _> = fetch(self.objects.as_ref(), MACHINE, key).await;
        let machine = found.map_err(|error| match error {
            ObjectError::NotFound(_) => {
                let why = format!("BMC machine {key} does not exist");
                failure(StatusCode::NOT_FOUND, "NotFound", &why)
            }
            error => {
                let why = format!("cannot read BMC machine {key}: {error}");
                failure(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", &why)
            }
        })?;
        let drivers = self.drivers.get().ok_or_else(|| {
            unavailable("no BMC is reached now: the box is starting, or in safe mode")
        })?;
        let (objects, connection) = (self.objects.as_ref(), &machine.spec.connection);
        let driver = connect_machine(objects, drivers.as_ref(), connection, key, Some(key)).await;
        driver.map_err(|why| unavailable(&why))
    }
}

fn unavailable(why: &str) -> Response {
    failure(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", why)
}

fn refused(driver: &dyn Driver, error: &Error) -> Response {
    match error {
        Error::FeatureMissing { .. } => {
            let offered = driver.capabilities().names().join(", ");
            let why = format!("{}\nhint: it has {offered}", error.sentence());
            failure(StatusCode::NOT_FOUND, "NotFound", &why)
        }
        error => unavailable(&error.sentence()),
    }
}

fn event(entry: &LogEntry) -> Value {
    let LogEntry { id, time, message } = entry;
    json!({ "id": id, "time": time, "message": message })
}

fn sensor(sensor: &Sensor) -> Value {
    let Sensor { name, value, unit, state } = sensor;
    let state = match state {
        SensorState::Ok => "ok",
        SensorState::Warning => "warning",
        SensorState::Critical => "critical",
        SensorState::Unknown => "unknown",
    };
    json!({ "name": name, "value": value, "unit": unit, "state": state })
}

fn inventory(found: &HardwareInventory) -> Value {
    json!({
        "uuid": found.uuid,
        "manufacturer": found.manufacturer,
        "model": found.model,
        "serial": found.serial,
        "firmware": found.firmware,
        "bmcFirmware": found.bmc_firmware,
        "processors": found.processors,
        "memoryBytes": found.memory_bytes,
        "diskBytes": found.disk_bytes,
        "macs": found.macs,
    })
}
