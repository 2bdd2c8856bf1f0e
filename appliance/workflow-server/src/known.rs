//! What is remembered of agents, in memory: after a restart of the box each is given fresh time.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use workflow_rpc::Progress;

/// How many agents are remembered.
const AGENTS_MAX: usize = 4096;

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

/// Who was heard when, in which boot, and how far it is.
#[derive(Default)]
pub struct Known(Mutex<Tables>);

#[derive(Default)]
struct Tables {
    heard: HashMap<String, Timestamp>,
    beating: HashSet<String>,
    /// The boot each is in, of those that say so.
    boots: HashMap<String, String>,
    progress: HashMap<String, Latest>,
}

impl Known {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An agent was heard.
    pub fn hear(&self, agent_id: &str, now: Timestamp) {
        let mut known = self.tables();
        if known.heard.len() < AGENTS_MAX || known.heard.contains_key(agent_id) {
            known.heard.insert(agent_id.to_owned(), now);
        }
    }

    /// When an agent was last heard, and whether it is one that beats.
    pub fn heard(&self, agent_id: &str) -> (Option<Timestamp>, bool) {
        let known = self.tables();
        (known.heard.get(agent_id).copied(), known.beating.contains(agent_id))
    }

    /// An agent that was heard is in this boot; whether that is news.
    pub fn boots(&self, agent_id: &str, boot_id: &str) -> bool {
        let mut known = self.tables();
        let is_news = known.boots.get(agent_id).is_none_or(|boot| boot != boot_id);
        if known.beating.len() < AGENTS_MAX && known.heard.contains_key(agent_id) {
            known.beating.insert(agent_id.to_owned());
            known.boots.insert(agent_id.to_owned(), boot_id.to_owned());
        }
        is_news
    }

    /// The boot of its machine that an agent is in; empty where it never said.
    pub fn boot_of(&self, agent_id: &str) -> String {
        self.tables().boots.get(agent_id).cloned().unwrap_or_default()
    }

    /// Remember how far an action has come.
    pub fn note(&self, progress: Progress, at: Timestamp) {
        let mut known = self.tables();
        let before = known.progress.get(&progress.workflow_id);
        let since = match before {
            Some(latest) if latest.progress.action_id == progress.action_id => latest.since,
            _ => at,
        };
        if known.progress.len() < AGENTS_MAX || before.is_some() {
            let latest = Latest { since, at, progress };
            known.progress.insert(latest.progress.workflow_id.clone(), latest);
        }
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
