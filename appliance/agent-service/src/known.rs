//! State of agents in memory. After a restart of the box, the timeouts of every agent start again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_rpc::Progress;
use jiff::Timestamp;

/// Maximum number of agents, and of workflows with progress: more than a box has machines. For one
/// more, the quarter with the oldest messages is forgotten.
const AGENTS_MAX: usize = 16_384;

/// Last progress of an action, as its agent reported it.
#[derive(Debug, Clone)]
pub struct Latest {
    /// Progress as the agent reported it.
    pub progress: Progress,
    /// Time of the action's first progress.
    pub since: Timestamp,
    /// Time of this progress.
    pub at: Timestamp,
}

/// Last message of each agent, its boot, and the progress of its action.
#[derive(Default)]
pub struct Known(Mutex<Tables>);

#[derive(Default)]
struct Tables {
    agents: HashMap<String, Agent>,
    /// Newest message of all forgotten agents.
    forgotten: Duration,
    /// Newest message of any agent.
    any_heard: Duration,
    progress: HashMap<String, Latest>,
}

struct Agent {
    /// Time of its last message, by the steady clock.
    heard: Duration,
    /// Boot of its machine; only agents that send it also send heartbeats.
    boot: Option<String>,
}

/// Record of an agent's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Time of its last message, by the steady clock; `None` without a record.
    pub heard: Option<Duration>,
    /// True if the agent sends heartbeats.
    pub beats: bool,
    /// Latest possible time of the last message of an agent without a record.
    pub forgotten: Duration,
    /// Time of the last message of any agent.
    pub any_heard: Duration,
}

impl Known {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a message of an agent at the time `now` of the steady clock.
    pub fn hear(&self, agent_id: &str, now: Duration) {
        let mut known = self.tables();
        known.any_heard = known.any_heard.max(now);
        if let Some(agent) = known.agents.get_mut(agent_id) {
            agent.heard = now;
            return;
        }
        if let Some(limit) = room_from(AGENTS_MAX, known.agents.values().map(|agent| agent.heard)) {
            known.agents.retain(|_, agent| agent.heard > limit);
            known.forgotten = known.forgotten.max(limit);
        }
        known.agents.insert(agent_id.to_owned(), Agent { heard: now, boot: None });
    }

    /// Returns the record of an agent.
    pub fn record(&self, agent_id: &str) -> Record {
        let known = self.tables();
        let agent = known.agents.get(agent_id);
        Record {
            heard: agent.map(|agent| agent.heard),
            beats: agent.is_some_and(|agent| agent.boot.is_some()),
            forgotten: known.forgotten,
            any_heard: known.any_heard,
        }
    }

    /// Records the boot of an agent's machine; returns true when the boot is new.
    pub fn boots(&self, agent_id: &str, boot_id: &str) -> bool {
        let mut known = self.tables();
        let Some(agent) = known.agents.get_mut(agent_id) else { return true };
        let is_news = agent.boot.as_deref() != Some(boot_id);
        agent.boot = Some(boot_id.to_owned());
        is_news
    }

    /// Boot of an agent's machine; empty if the agent did not send it.
    pub fn boot_of(&self, agent_id: &str) -> String {
        let known = self.tables();
        known.agents.get(agent_id).and_then(|agent| agent.boot.clone()).unwrap_or_default()
    }

    /// Records the progress of an action.
    pub fn note(&self, progress: Progress, at: Timestamp) {
        let mut known = self.tables();
        let before = known.progress.get(&progress.workflow_id);
        let since = match before {
            Some(latest) if latest.progress.action_id == progress.action_id => latest.since,
            _ => at,
        };
        if before.is_none()
            && let Some(limit) =
                room_from(AGENTS_MAX, known.progress.values().map(|latest| latest.at))
        {
            known.progress.retain(|_, latest| latest.at > limit);
        }
        let latest = Latest { since, at, progress };
        known.progress.insert(latest.progress.workflow_id.clone(), latest);
    }

    /// Last progress of a workflow (`namespace/name`).
    pub fn latest(&self, workflow_id: &str) -> Option<Latest> {
        self.tables().progress.get(workflow_id).cloned()
    }

    /// Forgets the progress of a workflow, because one of its actions began or ended.
    pub fn forget_progress(&self, workflow_id: &str) {
        self.tables().progress.remove(workflow_id);
    }
}

/// Time up to which entries must be removed from a table that has reached `limit` entries: the time
/// of its oldest quarter. `None` below the limit.
pub fn room_from<T: Ord + Copy>(
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

    use super::{AGENTS_MAX, Known};

    fn seconds(seconds: usize) -> Duration {
        Duration::from_secs(seconds as u64)
    }

    #[test]
    fn one_agent_too_many_forgets_the_longest_silent_ones() {
        let known = Known::default();
        for number in 0..AGENTS_MAX {
            known.hear(&number.to_string(), seconds(number));
        }
        known.hear("0", seconds(AGENTS_MAX));
        assert_eq!(known.record("one more").forgotten, Duration::ZERO);
        known.hear("one more", seconds(AGENTS_MAX + 1));
        assert_eq!(known.record("one more").heard, Some(seconds(AGENTS_MAX + 1)));
        assert_eq!(known.record("0").heard, Some(seconds(AGENTS_MAX)), "it spoke again");
        let lost = known.record("1");
        assert_eq!(lost.heard, None);
        // An agent without a record may have sent messages until this time.
        assert!(lost.forgotten >= seconds(1) && lost.forgotten < seconds(AGENTS_MAX / 2));
        let last = (AGENTS_MAX - 1).to_string();
        assert_eq!(known.record(&last).heard, Some(seconds(AGENTS_MAX - 1)));
    }

    #[test]
    fn however_many_agents_speak_none_counts_as_silent() {
        let known = Known::default();
        let agents = AGENTS_MAX * 3 / 2;
        for round in 1..4 {
            for number in 0..agents {
                known.hear(&number.to_string(), seconds(round * 100));
            }
        }
        for number in 0..agents {
            let record = known.record(&number.to_string());
            let silent_since = record.heard.unwrap_or_default().max(record.forgotten);
            assert!(silent_since >= seconds(200), "{number}: {record:?}");
        }
    }
}
