//! Agents that wait: a question is held until there is something to do, so that an agent begins at
//! once with what appears, and asks little while nothing does.

use std::time::Duration;

use tokio::time::Instant;
use workflow_rpc::{Assignment, Refusal};

use crate::Service;

/// The longest that a question is held, whatever its agent says.
const HOLD_MAX: Duration = Duration::from_secs(30);
/// How often one with a workflow looks again by itself: some waits end by the clock alone.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl Service {
    /// The action an agent must run, waited for at most so long.
    pub(crate) async fn awaited(
        &self,
        agent_id: &str,
        patience: Duration,
    ) -> Result<Assignment, Refusal> {
        let until = Instant::now() + patience.min(HOLD_MAX);
        let waiter = if patience.is_zero() { None } else { self.runs.waiter(agent_id) };
        let Some(waiter) = waiter else { return self.assignment(agent_id).await };
        loop {
            let changed = waiter.changed();
            let look_again = match self.assignment(agent_id).await {
                Err(Refusal::NotFound(_)) if Instant::now() < until => until,
                Err(Refusal::Precondition(_)) if Instant::now() < until => {
                    until.min(Instant::now() + LOOK_AGAIN)
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
            self.hear(agent_id);
        }
    }
}

#[cfg(test)]
mod tests;
