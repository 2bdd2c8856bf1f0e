//! Agents that wait: a question is held until there is something to do, so that an agent begins at
//! once with what appears, and asks little while nothing does.

use std::time::Duration;

use agent_rpc::{Assignment, Refusal};
use stdx::Backoff;
use tokio::time::Instant;

use crate::Service;

/// The longest that a question is held, whatever its agent says.
const HOLD_MAX: Duration = Duration::from_secs(30);
/// Waits between looks of an agent with a workflow, from the first to the longest. Some end by the
/// clock alone, and a rack of agents that wait must not keep the box busy.
const LOOK_FIRST: Duration = Duration::from_secs(1);
const LOOK_MAX: Duration = Duration::from_secs(8);

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
            self.hear(agent_id);
        }
    }
}

#[cfg(test)]
mod tests;
