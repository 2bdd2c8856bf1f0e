//! Agents that wait for their first action.

use std::time::{Duration, Instant};

use agent_rpc::client::Client;
use anyhow::Result;
use tokio::task::JoinSet;

use crate::machines::Machine;

/// Interval of requests after an answer without an action.
const ASK: Duration = Duration::from_millis(20);
/// Maximum time until another agent has its action. CAPT can give one Hardware to two machines at
/// once, and then an agent waits forever.
const LIMIT: Duration = Duration::from_secs(60);

/// Agents that request work.
pub struct Agents(JoinSet<(Machine, Instant)>);

impl Agents {
    /// Starts an agent for each machine, which connects to the server `authority`.
    ///
    /// # Errors
    /// The authority is invalid.
    pub fn start(machines: &[(Machine, String)]) -> Result<Self> {
        let mut waiting = JoinSet::new();
        for (machine, authority) in machines {
            let machine = *machine;
            let client = Client::connect(authority, &machine.mac(), None, None)?;
            waiting.spawn(async move {
                loop {
                    if client.next(None).await.is_ok() {
                        return (machine, Instant::now());
                    }
                    tokio::time::sleep(ASK).await;
                }
            });
        }
        Ok(Self(waiting))
    }

    /// Waits until every agent has its action, or until no more get one. Returns the times.
    ///
    /// # Errors
    /// An agent ended early.
    pub async fn offered(mut self) -> Result<Vec<(Machine, Instant)>> {
        let mut offered = Vec::new();
        while let Ok(Some(one)) = tokio::time::timeout(LIMIT, self.0.join_next()).await {
            offered.push(one?);
        }
        Ok(offered)
    }
}
