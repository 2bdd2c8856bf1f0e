//! Event log, sensors and inventory of a machine, read from its BMC as a request of the API, and
//! its identification LED. The path is the same for every driver.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use api::bmc::{MACHINE, Machine};
use api::meta::ObjectKey;
use apiserver::failure;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use bmc::{Driver, Error, HardwareInventory, LogEntry, Sensor, SensorState};
use controllers::Drivers;
use controllers::machine::connect_machine;
use objects::{ObjectError, Objects, fetch};
use serde_json::{Value, json};

/// Time for which a machine blinks, so that a person finds it.
pub const IDENTIFY_TIME: Duration = Duration::from_secs(60);

/// Drivers of BMCs with their queues; empty until the controllers start, and in safe mode.
pub type StartedDrivers = Arc<OnceLock<Arc<dyn Drivers>>>;

/// Reader of the BMCs of machines.
#[derive(Clone)]
pub struct BmcReader {
    pub objects: Arc<dyn Objects>,
    pub drivers: StartedDrivers,
}

/// Reason why a BMC cannot be read; the text is for people.
#[derive(Debug)]
pub enum ReadingError {
    /// The BMC Machine or the reading does not exist, or the driver does not offer the reading.
    NotFound(String),
    /// The BMC is not reached now, or refuses.
    Unavailable(String),
    /// The object of the BMC cannot be read.
    Internal(String),
}

impl ReadingError {
    /// Returns the reason; a hint follows in a line of its own.
    pub fn text(&self) -> &str {
        match self {
            Self::NotFound(why) | Self::Unavailable(why) | Self::Internal(why) => why,
        }
    }

    /// Returns the reason as a sentence, without its hint, which is for the command line.
    pub fn sentence(&self) -> String {
        stdx::sentence(self.text().lines().next().unwrap_or_default())
    }
}

/// Returns the route of the readings: `events` (newest last, at most [`LogEntry::LIMIT`]),
/// `sensors` and `inventory` of the BMC Machine `name`. Each request waits in the queue of its BMC.
pub fn router(reader: BmcReader) -> Router {
    let path = "/apis/tinbox.dev/v1alpha1/namespaces/{namespace}/bmcmachines/{name}/{reading}";
    let identify = "/apis/tinbox.dev/v1alpha1/namespaces/{namespace}/bmcmachines/{name}/identify";
    Router::new().route(path, get(read)).route(identify, post(blink)).with_state(reader)
}

/// Lets the machine blink. Returns the time in seconds.
async fn blink(
    State(reader): State<BmcReader>,
    Path((namespace, name)): Path<(String, String)>,
) -> Result<Response, Response> {
    let done = reader.identify(&ObjectKey::new(&namespace, &name)).await;
    let seconds = || Json(json!({ "seconds": IDENTIFY_TIME.as_secs() })).into_response();
    done.map(|()| seconds()).map_err(|error| response(&error))
}

async fn read(
    State(reader): State<BmcReader>,
    Path((namespace, name, reading)): Path<(String, String, String)>,
) -> Result<Response, Response> {
    let found = reader.read(&ObjectKey::new(&namespace, &name), &reading).await;
    found.map(|found| Json(found).into_response()).map_err(|error| response(&error))
}

fn response(error: &ReadingError) -> Response {
    let (status, reason) = match error {
        ReadingError::NotFound(_) => (StatusCode::NOT_FOUND, "NotFound"),
        ReadingError::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable"),
        ReadingError::Internal(_) => (StatusCode::INTERNAL_SERVER_ERROR, "InternalError"),
    };
    failure(status, reason, error.text())
}

impl BmcReader {
    /// Reads `events`, `sensors` or `inventory` of the BMC Machine with this key.
    ///
    /// # Errors
    /// The reading or the BMC does not exist, or the BMC cannot be read now.
    pub async fn read(&self, key: &ObjectKey, reading: &str) -> Result<Value, ReadingError> {
        let driver = self.driver(key).await?;
        let driver = driver.as_ref();
        let found = match reading {
            "events" => driver.events().await.map(|found| found.iter().map(event).collect()),
            "sensors" => driver.sensors().await.map(|found| found.iter().map(sensor).collect()),
            "inventory" => driver.inventory().await.map(|found| inventory(&found)),
            other => {
                let why = format!("expected events, sensors or inventory, found {other:?}");
                return Err(ReadingError::NotFound(why));
            }
        };
        found.map_err(|error| refused(driver, &error))
    }

    /// Lets the machine of the BMC Machine with this key blink for [`IDENTIFY_TIME`].
    ///
    /// # Errors
    /// The BMC does not exist, cannot blink, or cannot be reached now.
    pub async fn identify(&self, key: &ObjectKey) -> Result<(), ReadingError> {
        let driver = self.driver(key).await?;
        let done = driver.identify(IDENTIFY_TIME).await;
        done.map_err(|error| refused(driver.as_ref(), &error))
    }

    async fn driver(&self, key: &ObjectKey) -> Result<Arc<dyn Driver>, ReadingError> {
        let found: Result<Machine, _> = fetch(self.objects.as_ref(), MACHINE, key).await;
        let machine = found.map_err(|error| match error {
            ObjectError::NotFound(_) => {
                ReadingError::NotFound(format!("BMC machine {key} does not exist"))
            }
            error => ReadingError::Internal(format!("cannot read BMC machine {key}: {error}")),
        })?;
        let drivers = self.drivers.get().ok_or_else(|| {
            let why = "no BMC is reached now: the box is starting, or in safe mode";
            ReadingError::Unavailable(why.to_owned())
        })?;
        let (objects, connection) = (self.objects.as_ref(), &machine.spec.connection);
        let driver = connect_machine(objects, drivers.as_ref(), connection, key, Some(key)).await;
        driver.map_err(ReadingError::Unavailable)
    }
}

fn refused(driver: &dyn Driver, error: &Error) -> ReadingError {
    match error {
        Error::FeatureMissing { .. } => {
            let offered = driver.capabilities().names().join(", ");
            ReadingError::NotFound(format!("{}\nhint: it has {offered}", error.sentence()))
        }
        error => ReadingError::Unavailable(error.sentence()),
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
