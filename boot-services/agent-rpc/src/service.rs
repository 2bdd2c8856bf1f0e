//! Interface of the workflow service, which the box implements.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use crate::Attributes;
use crate::message::{Assignment, DiskChoice, Hello, Progress, Refusal, Report};
use crate::worker::{ActionList, NamedReport, Turn};

/// Boxed future, because [`Workflows`] is used as a trait object.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Handlers of the box for agent calls. All arguments are validated and limited in size.
pub trait Workflows: Send + Sync + 'static {
    /// Returns the action that this agent must run now. Without an action, waits up to `max_wait`
    /// for one. `max_wait` is zero for a stock agent, which sends the next request within two
    /// seconds.
    fn next<'a>(
        &'a self,
        agent_id: &'a str,
        attributes: Option<Attributes>,
        max_wait: Duration,
    ) -> Pending<'a, Result<Assignment, Refusal>>;

    /// Stores a report. Returns `Ok` only when the report is durable.
    fn report(&self, report: Report) -> Pending<'_, Result<(), Refusal>>;

    /// Takes the progress of an action. Returns the reason if the action must be stopped, else
    /// `None`.
    fn progress(&self, progress: Progress) -> Pending<'_, Option<String>>;

    /// Returns the action that an older worker (tink-worker) must run now; `None` without an
    /// action. The default implementations of the three methods for older workers provide no
    /// actions.
    fn turn<'a>(&'a self, _worker_id: &'a str) -> Pending<'a, Result<Option<Turn>, Refusal>> {
        Box::pin(async { Ok(None) })
    }

    /// Returns all actions of a workflow, with their workers. The request does not name the sender.
    /// The server returns the list only to a sender that may act for `ActionList::worker_id`.
    fn actions<'a>(&'a self, _workflow_id: &'a str) -> Pending<'a, Result<ActionList, Refusal>> {
        Box::pin(async { Err(Refusal::NotFound("older workers are not supported".to_owned())) })
    }

    /// Stores a report of an older worker. Returns `Ok` only when the report is durable.
    fn named_report(&self, _report: NamedReport) -> Pending<'_, Result<(), Refusal>> {
        Box::pin(async { Err(Refusal::NotFound("older workers are not supported".to_owned())) })
    }

    /// Stores the disk that a hint selected. Returns `Ok` only when the choice is durable, and
    /// [`Refusal::Precondition`] if the workflow has used another disk for the same hint. The
    /// default implementation stores nothing.
    fn choose_disk(&self, _choice: DiskChoice) -> Pending<'_, Result<(), Refusal>> {
        Box::pin(async { Ok(()) })
    }

    /// Returns the ID of a request to power the agent's machine off; waits up to `max_wait` for
    /// one. `boot` is the machine's boot id, empty if unknown. The default implementation refuses.
    fn power_off_request<'a>(
        &'a self,
        _agent_id: &'a str,
        _boot: &'a str,
        _max_wait: Duration,
    ) -> Pending<'a, Result<Option<String>, Refusal>> {
        Box::pin(async { Err(Refusal::NotFound("no requests to power off".to_owned())) })
    }

    /// Takes the confirmation of a request to power off. Returns true if the request still exists,
    /// so that the machine must power off. Must not block.
    fn confirm_power_off(&self, _agent_id: &str, _boot: &str, _request_id: &str) -> bool {
        false
    }

    /// Takes the first message of an agent after a boot. Must not block.
    fn hello(&self, hello: Hello, peer: Option<SocketAddr>);

    /// Checks that the caller may make this call as agent `agent_id`. The server calls this method
    /// before all others; for [`Workflows::actions`], before it sends the list. Must not block.
    fn authenticate(&self, agent_id: &str, caller: &Credentials<'_>) -> Result<(), Refusal>;
}

/// Credentials and origin of a call. No `Debug`, because the token is a secret.
#[derive(Clone, Copy, Default)]
pub struct Credentials<'a> {
    /// Bearer token of the metadata `authorization`; `None` if missing.
    pub token: Option<&'a str>,
    /// Boot id of the agent's machine; `None` from a stock agent.
    pub boot: Option<&'a str>,
    /// Address of the client; `None` if unknown.
    pub peer: Option<SocketAddr>,
    /// Kind of the call.
    pub call: Call<'a>,
}

/// Kind of a call, for the authentication.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Call<'a> {
    /// Request for the next action.
    #[default]
    Next,
    /// First message of an agent, with its boot id.
    Hello(&'a str),
    /// Message about the workflow `namespace/name`.
    Workflow(&'a str),
}
