//! Conversion between generated protobuf messages and validated types.

#[cfg(test)]
mod tests;
mod worker;

use jiff::Timestamp;
use prost::Message as _;

use crate::message::{
    ActionState, Assignment, DiskChoice, Hello, Namespaces, OUTPUT_LINES, Progress, Refusal, Report,
};
use proto::action_status_request::StateType;
pub use worker::{AnyActionStatus, AnyReport};

#[allow(missing_docs, clippy::all)]
pub mod proto {
    //! Generated from `proto/tinkerbell.proto` and `proto/worker.proto`.
    tonic::include_proto!("proto");
}

#[allow(missing_docs, clippy::all)]
pub mod tinbox {
    //! Module generated from `proto/tinbox.proto`.
    pub mod v1 {
        //! Messages of version 1.
        tonic::include_proto!("tinbox.v1");
    }
}

/// Maximum length of a received message in bytes, in both directions.
pub const MESSAGE_BYTES: usize = 256 << 10;
/// Maximum encoded length of an agent's attributes, in bytes.
const ATTRIBUTES_BYTES: usize = 128 << 10;
/// Maximum encoded length of an agent's inventory, in bytes.
const INVENTORY_BYTES: usize = 64 << 10;
/// Maximum length of an identifier in bytes; enough for two Kubernetes names and a slash.
const ID_BYTES: usize = 512;
/// Maximum length of a display text in bytes; longer text is truncated.
const TEXT_BYTES: usize = 4 << 10;

/// Returns true for a default value. serde omits such fields from the JSON.
pub fn absent<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Checks an identifier: not empty, at most [`ID_BYTES`], no control characters. `name` is for the
/// error.
pub fn id(name: &str, value: Option<String>) -> Result<String, Refusal> {
    let value = value.unwrap_or_default();
    if value.is_empty() {
        return Err(Refusal::InvalidArgument(format!("{name} is empty")));
    }
    bounded(name, value)
}

fn bounded(name: &str, value: String) -> Result<String, Refusal> {
    if value.len() > ID_BYTES {
        return Err(Refusal::InvalidArgument(format!("{name} is longer than {ID_BYTES} bytes")));
    }
    if value.chars().any(char::is_control) {
        return Err(Refusal::InvalidArgument(format!("{name} contains a control character")));
    }
    Ok(value)
}

/// Truncates a display text to [`TEXT_BYTES`], at a character boundary.
pub fn text(mut value: String) -> String {
    value.truncate(value.floor_char_boundary(TEXT_BYTES));
    value
}

/// Checks that attributes are at most [`ATTRIBUTES_BYTES`] long.
pub fn attributes(
    value: Option<proto::AgentAttributes>,
) -> Result<Option<proto::AgentAttributes>, Refusal> {
    match value {
        Some(value) if value.encoded_len() > ATTRIBUTES_BYTES => {
            let limit = format!("agent attributes are longer than {ATTRIBUTES_BYTES} bytes");
            Err(Refusal::InvalidArgument(limit))
        }
        value => Ok(value),
    }
}

/// Checks that an inventory is at most [`INVENTORY_BYTES`] long.
fn inventory(
    value: Option<tinbox::v1::Inventory>,
) -> Result<Option<tinbox::v1::Inventory>, Refusal> {
    match value {
        Some(value) if value.encoded_len() > INVENTORY_BYTES => {
            let limit = format!("the inventory is longer than {INVENTORY_BYTES} bytes");
            Err(Refusal::InvalidArgument(limit))
        }
        value => Ok(value),
    }
}

/// Converts a time; `None` for a time before 1970. A stock agent sends Go's zero time for "not
/// yet".
fn time(value: Option<prost_types::Timestamp>) -> Option<Timestamp> {
    let value = value.filter(|value| value.seconds > 0)?;
    Timestamp::new(value.seconds, value.nanos).ok()
}

fn time_to_wire(value: Timestamp) -> prost_types::Timestamp {
    prost_types::Timestamp { seconds: value.as_second(), nanos: value.subsec_nanosecond() }
}

fn some(value: String) -> Option<String> {
    (!value.is_empty()).then_some(value)
}

impl From<Assignment> for proto::ActionResponse {
    fn from(value: Assignment) -> Self {
        Self {
            workflow_id: Some(value.workflow_id),
            task_id: Some(value.task_id),
            agent_id: Some(value.agent_id),
            action_id: Some(value.action_id),
            name: Some(value.name),
            image: Some(value.image),
            timeout: Some(value.timeout_secs),
            command: value.command,
            volumes: value.volumes,
            environment: value.environment,
            pid: some(value.pid),
            namespaces: value.namespaces.map(|names| proto::Namespaces {
                network: some(names.network),
                pid: some(names.pid),
            }),
            on_failure: value.on_failure,
            on_timeout: value.on_timeout,
        }
    }
}

impl From<proto::ActionResponse> for Assignment {
    fn from(value: proto::ActionResponse) -> Self {
        Self {
            workflow_id: value.workflow_id.unwrap_or_default(),
            task_id: value.task_id.unwrap_or_default(),
            agent_id: value.agent_id.unwrap_or_default(),
            action_id: value.action_id.unwrap_or_default(),
            name: value.name.unwrap_or_default(),
            image: value.image.unwrap_or_default(),
            timeout_secs: value.timeout.unwrap_or_default(),
            command: value.command,
            volumes: value.volumes,
            environment: value.environment,
            pid: value.pid.unwrap_or_default(),
            namespaces: value.namespaces.map(|names| Namespaces {
                network: names.network.unwrap_or_default(),
                pid: names.pid.unwrap_or_default(),
            }),
            on_failure: value.on_failure,
            on_timeout: value.on_timeout,
        }
    }
}

impl TryFrom<proto::ActionStatusRequest> for Report {
    type Error = Refusal;

    fn try_from(value: proto::ActionStatusRequest) -> Result<Self, Refusal> {
        let state = match StateType::try_from(value.action_state.unwrap_or_default()) {
            Ok(StateType::Pending) => ActionState::Pending,
            Ok(StateType::Running) => ActionState::Running,
            Ok(StateType::Failed) => ActionState::Failed,
            Ok(StateType::Timeout) => ActionState::Timeout,
            Ok(StateType::Success) => ActionState::Success,
            Ok(StateType::Unspecified) | Err(_) => {
                return Err(Refusal::InvalidArgument("the action state is unknown".into()));
            }
        };
        Ok(Self {
            workflow_id: id("workflow id", value.workflow_id)?,
            agent_id: bounded("agent id", value.agent_id.unwrap_or_default())?,
            task_id: id("task id", value.task_id)?,
            action_id: id("action id", value.action_id)?,
            action_name: text(value.action_name.unwrap_or_default()),
            state,
            start: time(value.execution_start),
            stop: time(value.execution_stop),
            duration: text(value.execution_duration.unwrap_or_default()),
            message: text(value.message.and_then(|inner| inner.message).unwrap_or_default()),
        })
    }
}

impl From<Report> for proto::ActionStatusRequest {
    fn from(value: Report) -> Self {
        let state = match value.state {
            ActionState::Pending => StateType::Pending,
            ActionState::Running => StateType::Running,
            ActionState::Failed => StateType::Failed,
            ActionState::Timeout => StateType::Timeout,
            ActionState::Success => StateType::Success,
        };
        Self {
            workflow_id: Some(value.workflow_id),
            agent_id: Some(value.agent_id),
            task_id: Some(value.task_id),
            action_id: Some(value.action_id),
            action_name: Some(value.action_name),
            action_state: Some(state.into()),
            execution_start: value.start.map(time_to_wire),
            execution_stop: value.stop.map(time_to_wire),
            execution_duration: Some(value.duration),
            message: some(value.message)
                .map(|message| proto::ActionMessage { message: Some(message) }),
        }
    }
}

impl TryFrom<tinbox::v1::ProgressReport> for Progress {
    type Error = Refusal;

    fn try_from(value: tinbox::v1::ProgressReport) -> Result<Self, Refusal> {
        Ok(Self {
            agent_id: id("agent id", Some(value.agent_id))?,
            workflow_id: id("workflow id", Some(value.workflow_id))?,
            task_id: id("task id", Some(value.task_id))?,
            action_id: id("action id", Some(value.action_id))?,
            bytes_done: value.bytes_done,
            bytes_total: value.bytes_total,
            message: text(value.message),
            output: value.output.into_iter().take(OUTPUT_LINES).map(text).collect(),
        })
    }
}

impl From<Progress> for tinbox::v1::ProgressReport {
    fn from(value: Progress) -> Self {
        Self {
            agent_id: value.agent_id,
            workflow_id: value.workflow_id,
            task_id: value.task_id,
            action_id: value.action_id,
            bytes_done: value.bytes_done,
            bytes_total: value.bytes_total,
            message: value.message,
            output: value.output,
        }
    }
}

impl TryFrom<tinbox::v1::DiskChoiceRequest> for DiskChoice {
    type Error = Refusal;

    fn try_from(value: tinbox::v1::DiskChoiceRequest) -> Result<Self, Refusal> {
        Ok(Self {
            agent_id: id("agent id", Some(value.agent_id))?,
            workflow_id: id("workflow id", Some(value.workflow_id))?,
            task_id: id("task id", Some(value.task_id))?,
            action_id: id("action id", Some(value.action_id))?,
            hint: id("hint", Some(value.hint))?,
            wwn: bounded("wwn", value.wwn)?,
            serial: bounded("serial", value.serial)?,
            model: bounded("model", value.model)?,
            bytes: value.bytes,
        })
    }
}

impl From<DiskChoice> for tinbox::v1::DiskChoiceRequest {
    fn from(value: DiskChoice) -> Self {
        Self {
            agent_id: value.agent_id,
            workflow_id: value.workflow_id,
            task_id: value.task_id,
            action_id: value.action_id,
            hint: value.hint,
            wwn: value.wwn,
            serial: value.serial,
            model: value.model,
            bytes: value.bytes,
        }
    }
}

impl TryFrom<tinbox::v1::HelloRequest> for Hello {
    type Error = Refusal;

    fn try_from(value: tinbox::v1::HelloRequest) -> Result<Self, Refusal> {
        Ok(Self {
            agent_id: id("agent id", Some(value.agent_id))?,
            agent_version: bounded("agent version", value.agent_version)?,
            boot_id: bounded("boot id", value.boot_id)?,
            attributes: attributes(value.attributes)?,
            inventory: inventory(value.inventory)?,
        })
    }
}

impl From<Hello> for tinbox::v1::HelloRequest {
    fn from(value: Hello) -> Self {
        Self {
            agent_id: value.agent_id,
            agent_version: value.agent_version,
            boot_id: value.boot_id,
            attributes: value.attributes,
            inventory: value.inventory,
        }
    }
}

impl From<Refusal> for tonic::Status {
    fn from(value: Refusal) -> Self {
        match value {
            Refusal::NotFound(text) => Self::not_found(text),
            Refusal::Precondition(text) => Self::failed_precondition(text),
            Refusal::InvalidArgument(text) => Self::invalid_argument(text),
            Refusal::Unauthenticated(text) => Self::unauthenticated(text),
            Refusal::Unavailable(text) => Self::unavailable(text),
            Refusal::Internal(text) => Self::internal(text),
        }
    }
}

impl From<tonic::Status> for Refusal {
    fn from(value: tonic::Status) -> Self {
        let message = value.message().to_owned();
        match value.code() {
            tonic::Code::NotFound => Self::NotFound(message),
            tonic::Code::FailedPrecondition => Self::Precondition(message),
            tonic::Code::InvalidArgument => Self::InvalidArgument(message),
            tonic::Code::Unauthenticated => Self::Unauthenticated(message),
            tonic::Code::Internal => Self::Internal(message),
            _ => Self::Unavailable(message),
        }
    }
}
