//! Interface of the service, which the box implements.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use crate::Attributes;
use crate::message::{Assignment, DiskChoice, Hello, Progress, Refusal, Report};
use crate::worker::{ActionList, NamedReport, Turn};

/// A boxed future: [`Workflows`] is used behind `dyn`.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The box's handlers of agent calls. Every value is checked and bounded before it arrives.
pub trait Workflows: Send + Sync + 'static {
    /// Action that this agent must run now, or as soon as there is one within `max_wait`, which is
    /// zero for a stock agent: it asks again within two seconds.
    fn next<'a>(
        &'a self,
        agent_id: &'a str,
        attributes: Option<Attributes>,
        max_wait: Duration,
    ) -> Pending<'a, Result<Assignment, Refusal>>;

    /// Record a report; `Ok` only once it is durable.
    fn report(&self, report: Report) -> Pending<'_, Result<(), Refusal>>;

    /// Note how far an action has come; the answer is why it must be stopped, if it must.
    fn progress(&self, progress: Progress) -> Pending<'_, Option<String>>;

    /// Action that an older worker must run now in its workflow; `None` for none. The default of
    /// these three methods has nothing for older workers.
    fn turn<'a>(&'a self, _worker_id: &'a str) -> Pending<'a, Result<Option<Turn>, Refusal>> {
        Box::pin(async { Ok(None) })
    }

    /// All actions of a workflow, with their workers. The request does not name its sender: the
    /// list is returned only to a sender that may act for that worker.
    fn actions<'a>(&'a self, _workflow_id: &'a str) -> Pending<'a, Result<ActionList, Refusal>> {
        Box::pin(async { Err(Refusal::NotFound("older workers are not supported".to_owned())) })
    }

    /// Record a report of an older worker; `Ok` only once it is durable.
    fn named_report(&self, _report: NamedReport) -> Pending<'_, Result<(), Refusal>> {
        Box::pin(async { Err(Refusal::NotFound("older workers are not supported".to_owned())) })
    }

    /// Record which disk a hint chose; `Ok` only once it is durable. [`Refusal::Precondition`] when
    /// the workflow chose another disk by this hint before. A service without this records nothing.
    fn choose_disk(&self, _choice: DiskChoice) -> Pending<'_, Result<(), Refusal>> {
        Box::pin(async { Ok(()) })
    }

    /// Note that an agent has booted. Must not block.
    fn hello(&self, hello: Hello, peer: Option<SocketAddr>);

    /// Decides whether this caller may make this call for this agent; called before every other but
    /// [`Workflows::actions`], and before that is answered. Must not block.
    fn authenticate(&self, agent_id: &str, caller: &Credentials<'_>) -> Result<(), Refusal>;
}

/// Proof of a call's sender. Without `Debug`, for the token is a secret.
#[derive(Clone, Copy, Default)]
pub struct Credentials<'a> {
    /// Token of the `authorization: Bearer` metadata.
    pub token: Option<&'a str>,
    /// Boot of the machine, which agents of this release show with every call.
    pub boot: Option<&'a str>,
    /// Address of the sender.
    pub peer: Option<SocketAddr>,
    /// Agent call with its metadata.
    pub call: Call<'a>,
}

/// A call, as far as it matters to who may make it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Call<'a> {
    /// A request for the next action.
    #[default]
    Next,
    /// The first message of an agent, which names its boot.
    Hello(&'a str),
    /// A message about the workflow `namespace/name`.
    Workflow(&'a str),
}
