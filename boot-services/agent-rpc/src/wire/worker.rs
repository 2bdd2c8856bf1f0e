//! Conversion of older workers' messages, and detection of a report's protocol: current or older.

#[cfg(test)]
mod tests;

use prost::bytes::{Buf, BufMut};
use prost::encoding::{self, DecodeContext, WireType};
use prost::{DecodeError, Message};

use super::{bounded, id, proto, text};
use crate::message::{ActionState, Refusal, Report};
use crate::worker::{ActionList, ListedAction, NamedReport, Turn};

/// Highest field number in the reports of both protocols; higher fields are skipped.
const LAST_FIELD: u32 = 10;

/// Report of either protocol, not decoded yet. Both protocols use the same method and field
/// numbers, with different types. The types identify the protocol.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AnyActionStatus {
    /// Fields of the message, still encoded.
    fields: Vec<u8>,
    marks: Marks,
}

/// Protocols that the wire types of fields 4 to 6 belong to: current, older, or neither.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Marks {
    today: bool,
    older: bool,
    neither: bool,
}

/// Decoded report of either protocol.
#[derive(Debug, PartialEq)]
pub enum AnyReport {
    /// Report of an agent with the current protocol.
    Agent(Report),
    /// Report of an older worker (tink-worker).
    Worker(NamedReport),
}

impl Marks {
    /// Records the wire type of a field. Fields 4 to 6 are action id, action name and state in the
    /// current protocol; state, seconds and message in the older protocol.
    fn note(&mut self, tag: u32, wire_type: WireType) {
        use WireType::{LengthDelimited, Varint};
        match (tag, wire_type) {
            (4 | 5, LengthDelimited) | (6, Varint) => self.today = true,
            (4 | 5, Varint) | (6, LengthDelimited) => self.older = true,
            (4..=6, _) => self.neither = true,
            _ => {}
        }
    }
}

impl AnyActionStatus {
    /// Decodes the report by its protocol. A report without fields 4 to 6 is from an older worker
    /// in state PENDING, because a current agent always sends a state.
    pub fn identify(self) -> Result<AnyReport, Refusal> {
        let unreadable = |error: DecodeError| {
            Refusal::InvalidArgument(format!("the report is not readable: {error}"))
        };
        let Marks { today, older, neither } = self.marks;
        if neither || (today && older) {
            let why = "fields 4 to 6 of the report are of neither protocol's types";
            return Err(Refusal::InvalidArgument(why.to_owned()));
        }
        let fields = self.fields.as_slice();
        if today {
            let report = proto::ActionStatusRequest::decode(fields).map_err(unreadable)?;
            return Report::try_from(report).map(AnyReport::Agent);
        }
        let report = proto::WorkflowActionStatus::decode(fields).map_err(unreadable)?;
        NamedReport::try_from(report).map(AnyReport::Worker)
    }
}

impl From<proto::ActionStatusRequest> for AnyActionStatus {
    fn from(report: proto::ActionStatusRequest) -> Self {
        let marks = Marks { today: true, ..Marks::default() };
        Self { fields: report.encode_to_vec(), marks }
    }
}

/// Stores the fields unchanged. tonic limits the message's length.
impl Message for AnyActionStatus {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        buf.put_slice(&self.fields);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        self.marks.note(tag, wire_type);
        match wire_type {
            WireType::Varint if tag <= LAST_FIELD => {
                let value = encoding::decode_varint(buf)?;
                encoding::encode_key(tag, wire_type, &mut self.fields);
                encoding::encode_varint(value, &mut self.fields);
            }
            WireType::LengthDelimited if tag <= LAST_FIELD => {
                let mut value = Vec::new();
                encoding::bytes::merge(wire_type, &mut value, buf, ctx)?;
                encoding::bytes::encode(tag, &value, &mut self.fields);
            }
            _ => encoding::skip_field(wire_type, tag, buf, ctx)?,
        }
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        self.fields.len()
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

impl TryFrom<proto::WorkflowActionStatus> for NamedReport {
    type Error = Refusal;

    fn try_from(value: proto::WorkflowActionStatus) -> Result<Self, Refusal> {
        let state = match proto::State::try_from(value.action_status) {
            Ok(proto::State::Pending) => ActionState::Pending,
            Ok(proto::State::Running) => ActionState::Running,
            Ok(proto::State::Failed) => ActionState::Failed,
            Ok(proto::State::Timeout) => ActionState::Timeout,
            Ok(proto::State::Success) => ActionState::Success,
            Err(_) => {
                return Err(Refusal::InvalidArgument("action status is not one of five".into()));
            }
        };
        Ok(Self {
            workflow_id: id("workflow id", Some(value.workflow_id))?,
            worker_id: bounded("worker id", value.worker_id)?,
            task_name: id("task name", Some(value.task_name))?,
            action_name: id("action name", Some(value.action_name))?,
            state,
            seconds: value.seconds.max(0),
            message: text(value.message),
        })
    }
}

impl From<Turn> for proto::WorkflowContext {
    /// Converts a turn. The state is always PENDING, also for an action that is served again: a
    /// worker that receives RUNNING runs this and all later actions without a report.
    fn from(turn: Turn) -> Self {
        Self {
            workflow_id: turn.workflow_id,
            current_worker: turn.worker_id,
            current_task: turn.task_name,
            current_action: turn.action_name,
            current_action_index: i64::try_from(turn.index).unwrap_or(i64::MAX),
            current_action_state: proto::State::Pending.into(),
            total_number_of_actions: i64::try_from(turn.total).unwrap_or(i64::MAX),
        }
    }
}

impl From<ActionList> for proto::WorkflowActionList {
    fn from(list: ActionList) -> Self {
        Self { action_list: list.actions.into_iter().map(Into::into).collect() }
    }
}

impl From<ListedAction> for proto::WorkflowAction {
    fn from(action: ListedAction) -> Self {
        Self {
            task_name: action.task_name,
            name: action.name,
            image: action.image,
            timeout: action.timeout_secs,
            command: action.command,
            on_timeout: Vec::new(),
            on_failure: Vec::new(),
            worker_id: action.worker_id,
            volumes: action.volumes,
            environment: action.environment,
            pid: action.pid,
        }
    }
}
