//! State of agents in memory. After a restart of the box, all timeouts start again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_rpc::Progress;
use jiff::Timestamp;

/// Maximum number of agents, and of workflows with progress: more than the machines of a box. For a
/// further entry, the quarter with the oldest messages is dropped.
const AGENTS_MAX: usize = 16_384;

/// Last progress report of an action.
#[derive(Debug, Clone)]
pub struct Latest {
    /// Content of the last progress report.
    pub progress: Progress,
    /// Time of the first progress report of the action.
    pub since: Timestamp,
    /// Time of the last progress report.
    pub at: Timestamp,
}

/// Last message, boot and heartbeat capability of each agent, and the progress of each workflow.
#[derive(Default)]
pub struct AgentRecords(Mutex<Tables>);

#[derive(Default)]
struct Tables {
    agents: HashMap<String, Agent>,
    /// Time of the newest message of all dropped records.
    forgotten: Duration,
    /// Time of the newest message of any agent.
    any_message: Duration,
    progress: HashMap<String, Latest>,
}

struct Agent {
    /// Time of the last message, by the monotonic clock.
    last_message: Duration,
    /// Boot ID of the machine; `None` for an agent that sends neither boot ID nor heartbeats.
    boot: Option<String>,
}

/// Stored times of an agent's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Time of the last message, by the monotonic clock; `None` without a record.
    pub last_message: Option<Duration>,
    /// True if the agent sends heartbeats.
    pub beats: bool,
    /// Time until which an agent without a record may have sent messages.
    pub forgotten: Duration,
    /// Time of the last message of any agent.
    pub any_message: Duration,
}

impl AgentRecords {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a message of an agent at the monotonic time `now`.
    pub fn record_message(&self, agent_id: &str, now: Duration) {
        let mut tables = self.tables();
        tables.any_message = tables.any_message.max(now);
        if let Some(agent) = tables.agents.get_mut(agent_id) {
            agent.last_message = now;
            return;
        }
        if let Some(limit) =
            eviction_limit(AGENTS_MAX, tables.agents.values().map(|agent| agent.last_message))
        {
            tables.agents.retain(|_, agent| agent.last_message > limit);
            tables.forgotten = tables.forgotten.max(limit);
        }
        tables.agents.insert(agent_id.to_owned(), Agent { last_message: now, boot: None });
    }

    /// Returns the times of an agent's messages.
    pub fn record(&self, agent_id: &str) -> Record {
        let tables = self.tables();
        let agent = tables.agents.get(agent_id);
        Record {
            last_message: agent.map(|agent| agent.last_message),
            beats: agent.is_some_and(|agent| agent.boot.is_some()),
            forgotten: tables.forgotten,
            any_message: tables.any_message,
        }
    }

    /// Records the boot ID of an agent's machine. Returns true if the boot ID is new.
    pub fn boots(&self, agent_id: &str, boot_id: &str) -> bool {
        let mut tables = self.tables();
        let Some(agent) = tables.agents.get_mut(agent_id) else { return true };
        let is_news = agent.boot.as_deref() != Some(boot_id);
        agent.boot = Some(boot_id.to_owned());
        is_news
    }

    /// Returns the boot ID of an agent's machine; empty if the agent sent none.
    pub fn boot_of(&self, agent_id: &str) -> String {
        let tables = self.tables();
        tables.agents.get(agent_id).and_then(|agent| agent.boot.clone()).unwrap_or_default()
    }

    /// Records a progress report of an action.
    pub fn note(&self, progress: Progress, at: Timestamp) {
        let mut tables = self.tables();
        let before = tables.progress.get(&progress.workflow_id);
        let since = match before {
            Some(latest) if latest.progress.action_id == progress.action_id => latest.since,
            _ => at,
        };
        if before.is_none()
            && let Some(limit) =
                eviction_limit(AGENTS_MAX, tables.progress.values().map(|latest| latest.at))
        {
            tables.progress.retain(|_, latest| latest.at > limit);
        }
        let latest = Latest { since, at, progress };
        tables.progress.insert(latest.progress.workflow_id.clone(), latest);
    }

    /// Returns the last progress of the workflow `namespace/name`; `None` without a report.
    pub fn latest(&self, workflow_id: &str) -> Option<Latest> {
        self.tables().progress.get(workflow_id).cloned()
    }

    /// Removes the progress of a workflow, because one of its actions began or ended.
    pub fn forget_progress(&self, workflow_id: &str) {
        self.tables().progress.remove(workflow_id);
    }
}

/// Returns the time up to which entries must be removed from a table with `limit` or more entries,
/// so that the oldest quarter goes. Returns `None` below the limit.
pub fn eviction_limit<T: Ord + Copy>(
    limit: usize,
    times: impl ExactSizeIterator<Item = T>,
) -> Option<T> {
    if times.len() < limit {
        return None;
    }
    let mut times: Vec<T> = times.collect();
    let quarter = times.len() / 4;
    Some(*times.select_nth_unstable(quarter).1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{AGENTS_MAX, AgentRecords};

    fn seconds(seconds: usize) -> Duration {
        Duration::from_secs(seconds as u64)
    }

    #[test]
    fn one_agent_too_many_forgets_the_longest_silent_ones() {
        let agents = AgentRecords::default();
        for number in 0..AGENTS_MAX {
            agents.record_message(&number.to_string(), seconds(number));
        }
        agents.record_message("0", seconds(AGENTS_MAX));
        assert_eq!(agents.record("one more").forgotten, Duration::ZERO);
        agents.record_message("one more", seconds(AGENTS_MAX + 1));
        assert_eq!(agents.record("one more").last_message, Some(seconds(AGENTS_MAX + 1)));
        assert_eq!(agents.record("0").last_message, Some(seconds(AGENTS_MAX)), "it spoke again");
        let lost = agents.record("1");
        assert_eq!(lost.last_message, None);
        // An agent without a record may have sent messages until this time.
        assert!(lost.forgotten >= seconds(1) && lost.forgotten < seconds(AGENTS_MAX / 2));
        let last = (AGENTS_MAX - 1).to_string();
        assert_eq!(agents.record(&last).last_message, Some(seconds(AGENTS_MAX - 1)));
    }

    #[test]
    fn however_many_agents_speak_none_counts_as_silent() {
        let agents = AgentRecords::default();
        let count = AGENTS_MAX * 3 / 2;
        for round in 1..4 {
            for number in 0..count {
                agents.record_message(&number.to_string(), seconds(round * 100));
            }
        }
        for number in 0..count {
            let record = agents.record(&number.to_string());
            let silent_since = record.last_message.unwrap_or_default().max(record.forgotten);
            assert!(silent_since >= seconds(200), "{number}: {record:?}");
        }
    }
}
