//! Requests to power machines off through their agents. Only an agent of the box waits for such
//! requests; an agent of another project never does.
//!
//! A request is for the boot of the last wait, exists only while the caller waits, and is offered
//! to waits of this boot only. The agent confirms it before it acts. So a machine that starts again
//! is not powered off by an old request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_rpc::Refusal;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use crate::Service;

/// Maximum time from a request to the confirmation. A waiting agent confirms at once, and after a
/// lost connection within 20 s.
const CONFIRM_LIMIT: Duration = Duration::from_secs(30);
/// Maximum time since the last wait of an agent that can get a request. A wait lasts 20 s at most.
const FRESH: Duration = Duration::from_secs(30);
/// Maximum wait of a call, also if the agent requests more.
const HOLD_MAX: Duration = Duration::from_secs(30);
/// Maximum number of agents. For a further agent, the one with the oldest wait is removed.
const AGENTS_MAX: usize = 16_384;
/// Length of the random ID of a request, in bytes.
const REQUEST_BYTES: usize = 16;

/// Reason why an agent did not confirm a request to power its machine off.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PowerOffError {
    /// The agent does not wait for requests: it is not connected, or not an agent of the box.
    #[error(
        "the agent of the machine does not wait for requests to power off; only the agent of the \
         box that runs as the machine's system does"
    )]
    Unable,
    /// An earlier request to the same agent still waits.
    #[error("another request to power off waits for the agent of the machine")]
    Busy,
    /// The connection was lost, or the machine has started again since the request.
    #[error("the agent of the machine did not confirm the request within 30 s")]
    NotConfirmed,
}

/// Last waits of agents, and the requests that exist.
#[derive(Debug, Default)]
pub struct PowerRequests(Mutex<HashMap<String, AgentWait>>);

/// Last wait of one agent.
#[derive(Debug)]
struct AgentWait {
    /// Boot ID of the machine; empty if the agent sends none.
    boot: String,
    last: Instant,
    request: Option<Request>,
    /// Wakes the waiting call of the agent.
    changed: Arc<Notify>,
}

#[derive(Debug)]
struct Request {
    id: String,
    /// Sender of the confirmation; `None` after the confirmation.
    confirmed: Option<oneshot::Sender<()>>,
}

impl PowerRequests {
    fn waits(&self) -> MutexGuard<'_, HashMap<String, AgentWait>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_able(&self, agent_id: &str) -> bool {
        self.waits().get(agent_id).is_some_and(|wait| wait.last.elapsed() <= FRESH)
    }

    /// Publishes a request, and waits for its confirmation. The request ends with this future.
    async fn power_off(&self, agent_id: &str) -> Result<(), PowerOffError> {
        let (waiting, confirmed) = self.publish(agent_id)?;
        let confirmed = tokio::time::timeout(CONFIRM_LIMIT, confirmed).await;
        drop(waiting);
        confirmed.ok().and_then(Result::ok).ok_or(PowerOffError::NotConfirmed)
    }

    fn publish(
        &self,
        agent_id: &str,
    ) -> Result<(PublishedRequest<'_>, oneshot::Receiver<()>), PowerOffError> {
        let mut waits = self.waits();
        let wait = waits.get_mut(agent_id).filter(|wait| wait.last.elapsed() <= FRESH);
        let wait = wait.ok_or(PowerOffError::Unable)?;
        if wait.request.is_some() {
            return Err(PowerOffError::Busy);
        }
        let (id, (sender, receiver)) = (stdx::random_hex(REQUEST_BYTES), oneshot::channel());
        wait.request = Some(Request { id: id.clone(), confirmed: Some(sender) });
        wait.changed.notify_waiters();
        let request = PublishedRequest { requests: self, agent_id: agent_id.to_owned(), id };
        Ok((request, receiver))
    }

    /// Records a wait. Returns the ID of the request for this boot, if any, and the signal of a
    /// later one.
    fn look(&self, agent_id: &str, boot: &str) -> (Option<String>, Arc<Notify>) {
        let (mut waits, now) = (self.waits(), Instant::now());
        if waits.len() >= AGENTS_MAX && !waits.contains_key(agent_id) {
            let eldest = waits.iter().min_by_key(|(_, wait)| wait.last).map(|(id, _)| id.clone());
            eldest.map(|eldest| waits.remove(&eldest));
        }
        let wait = waits.entry(agent_id.to_owned()).or_insert_with(|| AgentWait {
            boot: boot.to_owned(),
            last: now,
            request: None,
            changed: Arc::default(),
        });
        if wait.boot != boot {
            // A request for the boot before ends without a confirmation.
            (wait.boot, wait.request) = (boot.to_owned(), None);
        }
        wait.last = now;
        let request = wait.request.as_ref().filter(|request| request.confirmed.is_some());
        (request.map(|request| request.id.clone()), Arc::clone(&wait.changed))
    }

    /// Waits for a request at most `max_wait`.
    async fn next(&self, agent_id: &str, boot: &str, max_wait: Duration) -> Option<String> {
        let until = Instant::now() + max_wait.min(HOLD_MAX);
        loop {
            let (_, changed) = self.look(agent_id, boot);
            let signal = changed.notified();
            tokio::pin!(signal);
            // A request that is published from here on is not missed.
            signal.as_mut().enable();
            let (request, _) = self.look(agent_id, boot);
            if request.is_some() || tokio::time::timeout_at(until, signal).await.is_err() {
                return request.or_else(|| self.look(agent_id, boot).0);
            }
        }
    }

    /// Takes a confirmation. Returns true if the request exists, so that the machine must power
    /// off.
    fn confirm(&self, agent_id: &str, boot: &str, id: &str) -> bool {
        let mut waits = self.waits();
        let wait = waits.get_mut(agent_id).filter(|wait| wait.boot == boot);
        let request = wait.and_then(|wait| wait.request.as_mut()).filter(|it| it.id == id);
        let confirmed = request.and_then(|request| request.confirmed.take());
        confirmed.is_some_and(|confirmed| confirmed.send(()).is_ok())
    }
}

/// Published request, which ends when dropped.
struct PublishedRequest<'a> {
    requests: &'a PowerRequests,
    agent_id: String,
    id: String,
}

impl Drop for PublishedRequest<'_> {
    fn drop(&mut self) {
        if let Some(wait) = self.requests.waits().get_mut(&self.agent_id) {
            wait.request.take_if(|request| request.id == self.id);
        }
    }
}

impl Service {
    /// Returns true if the agent waits for requests to power its machine off.
    pub fn can_power_off(&self, agent_id: &str) -> bool {
        self.power.is_able(agent_id)
    }

    /// Requests that the machine of the agent powers off, and waits until the agent confirms.
    ///
    /// # Errors
    /// The agent cannot power its machine off, another request waits, or no confirmation arrives
    /// within 30 s.
    pub async fn power_off(&self, agent_id: &str) -> Result<(), PowerOffError> {
        self.power.power_off(agent_id).await
    }

    pub(crate) async fn awaited_power_off(
        &self,
        agent_id: &str,
        boot: &str,
        max_wait: Duration,
    ) -> Result<Option<String>, Refusal> {
        // Invented ids must not displace the waits of real agents.
        if !self.backend.knows(agent_id) && !self.runs.know(agent_id) {
            return Err(Refusal::NotFound(format!("agent {agent_id} is unknown")));
        }
        self.record_message(agent_id);
        tokio::select! {
            request = self.power.next(agent_id, boot, max_wait) => Ok(request),
            () = self.closing.cancelled() => {
                Err(Refusal::Unavailable("the box is stopping".to_owned()))
            }
        }
    }

    pub(crate) fn takes_confirmation(&self, agent_id: &str, boot: &str, id: &str) -> bool {
        self.record_message(agent_id);
        let granted = self.power.confirm(agent_id, boot, id);
        tracing::info!(agent_id, granted, "the agent confirms a request to power off");
        granted
    }
}

#[cfg(test)]
mod tests;
