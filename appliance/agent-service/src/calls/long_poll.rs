//! Long polling of agents: a request waits until there is an action. An agent can thus start an
//! action at once, and sends few requests while idle.

use std::time::Duration;

use agent_rpc::{Assignment, Refusal};
use stdx::Backoff;
use tokio::time::Instant;

use crate::Service;

/// Maximum wait of a request, also if the agent requests more.
const HOLD_MAX: Duration = Duration::from_secs(30);
/// First and maximum interval between two checks for an agent with a workflow. A retry wait ends
/// without a signal, and a rack of waiting agents must not load the box.
const LOOK_FIRST: Duration = Duration::from_secs(1);
const LOOK_MAX: Duration = Duration::from_secs(8);

impl Service {
    /// Waits at most `max_wait` for an action of the agent, and returns the action.
    pub(crate) async fn awaited(
        &self,
        agent_id: &str,
        max_wait: Duration,
    ) -> Result<Assignment, Refusal> {
        let until = Instant::now() + max_wait.min(HOLD_MAX);
        let waiter = if max_wait.is_zero() { None } else { self.runs.waiter(agent_id) };
        let Some(waiter) = waiter else { return self.assignment(agent_id).await };
        let mut looks = Backoff::new(LOOK_FIRST, LOOK_MAX);
        loop {
            let changed = waiter.changed();
            let look_again = match self.assignment(agent_id).await {
                Err(Refusal::NotFound(_)) if Instant::now() < until => until,
                Err(Refusal::Precondition(_)) if Instant::now() < until => {
                    until.min(Instant::now() + looks.next_wait())
                }
                answer => return answer,
            };
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep_until(look_again) => {}
                () = self.closing.cancelled() => {
                    return Err(Refusal::Unavailable("the box is stopping".to_owned()));
                }
            }
            self.record_message(agent_id);
        }
    }
}

#[cfg(test)]
mod tests;
