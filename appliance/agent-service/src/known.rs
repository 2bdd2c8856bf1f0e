//! What is remembered of agents, in memory: after a restart of the box each is given fresh time.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_rpc::Progress;
use jiff::Timestamp;

/// Agents that are remembered, and workflows whose progress is: more than a box has machines. For
/// one more, the quarter that was silent for longest is forgotten.
const AGENTS_MAX: usize = 16_384;

/// How far an action has come, as an agent last said.
#[derive(Debug, Clone)]
pub struct Latest {
    /// What it said.
    pub progress: Progress,
    /// When the action's first progress came.
    pub since: Timestamp,
    /// When this came.
    pub at: Timestamp,
}

/// The last message of each agent, its boot, and the progress of its action.
#[derive(Default)]
pub struct Known(Mutex<Tables>);

#[derive(Default)]
struct Tables {
    agents: HashMap<String, Agent>,
    /// Newest message of all agents that were forgotten.
    forgotten: Duration,
    /// Newest message of all.
    any_heard: Duration,
    progress: HashMap<String, Latest>,
}

struct Agent {
    /// Moment of the steady clock of its last message.
    heard: Duration,
    /// The boot of its machine, of agents that send it; these beat.
    boot: Option<String>,
}

/// The record of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Moment of the steady clock of its last message; `None` without a record.
    pub heard: Option<Duration>,
    /// The agent sends heartbeats.
    pub beats: bool,
    /// An agent without a record was not heard after this moment.
    pub forgotten: Duration,
    /// Moment of the last message of any agent.
    pub any_heard: Duration,
}

impl Known {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a message of an agent at the moment `now` of the steady clock.
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

    /// The record of an agent.
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

    /// Records the boot of an agent's machine; true when it is another boot than before.
    pub fn boots(&self, agent_id: &str, boot_id: &str) -> bool {
        let mut known = self.tables();
        let Some(agent) = known.agents.get_mut(agent_id) else { return true };
        let is_news = agent.boot.as_deref() != Some(boot_id);
        agent.boot = Some(boot_id.to_owned());
        is_news
    }

    /// The boot of its machine that an agent is in; empty where it never said.
    pub fn boot_of(&self, agent_id: &str) -> String {
        let known = self.tables();
        known.agents.get(agent_id).and_then(|agent| agent.boot.clone()).unwrap_or_default()
    }

    /// Remember how far an action has come.
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

    /// The last progress of a workflow (`namespace/name`).
    pub fn latest(&self, workflow_id: &str) -> Option<Latest> {
        self.tables().progress.get(workflow_id).cloned()
    }

    /// An action of a workflow began or ended: how far the one before was says nothing any more.
    pub fn forget_progress(&self, workflow_id: &str) {
        self.tables().progress.remove(workflow_id);
    }
}

/// The time up to which entries of a table with `limit` entries are to go: that of its oldest
/// quarter.
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
        // An agent without a record may have been heard until then.
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
