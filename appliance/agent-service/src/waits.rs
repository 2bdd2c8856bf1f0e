//! Reasons why actions wait, written to the Workflows so that every client can read them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_rpc::{Progress, WAITING};
use api::state::report;

use crate::Service;
use crate::agents::eviction_limit;
use crate::wire::workflow_key;

/// Minimum time between two writes of a wait message to one Workflow.
const WRITE_EVERY: Duration = Duration::from_secs(15);
/// Maximum number of stored waits. For a further wait, the oldest quarter is dropped.
const WAITS_MAX: usize = 16_384;
/// Maximum length of a stored reason, in bytes.
const REASON_MAX: usize = 400;
/// Message of an action whose wait is over; agents send the same message at the start of an action.
const RUNNING: &str = "running action";

/// Last written wait of each workflow.
#[derive(Default)]
pub(crate) struct Waits(Mutex<HashMap<String, Wait>>);

struct Wait {
    action: String,
    message: String,
    written: Duration,
}

impl Waits {
    fn waits(&self) -> MutexGuard<'_, HashMap<String, Wait>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the message to write because of a progress report; `None` if nothing changed, or the
    /// last write is too recent.
    fn news(&self, progress: &Progress, now: Duration) -> Option<String> {
        let mut waits = self.waits();
        let (workflow, action) = (&progress.workflow_id, &progress.action_id);
        let waits_now = progress.message.starts_with(WAITING);
        let message = &progress.message;
        let message = &message[..message.floor_char_boundary(REASON_MAX)];
        // The wait of another action is over.
        let agents = waits.get(workflow).filter(|it| it.action == *action);
        let is_early = agents.is_some_and(|it| now.saturating_sub(it.written) < WRITE_EVERY);
        match agents {
            None if !waits_now => None,
            _ if is_early => None,
            Some(wait) if waits_now && wait.message == message => None,
            Some(_) if !waits_now => {
                waits.remove(workflow);
                Some(RUNNING.to_owned())
            }
            _ => {
                if let Some(limit) = eviction_limit(WAITS_MAX, waits.values().map(|it| it.written))
                {
                    waits.retain(|_, it| it.written > limit);
                }
                let (action, message) = (action.clone(), message.to_owned());
                waits.insert(
                    workflow.clone(),
                    Wait { action, message: message.clone(), written: now },
                );
                Some(message)
            }
        }
    }

    /// Removes the wait of a workflow, because an action began or ended.
    pub(crate) fn forget(&self, workflow_id: &str) {
        self.waits().remove(workflow_id);
    }
}

impl Service {
    /// Writes the reason of a wait, or the end of the wait, to the Workflow.
    pub(crate) async fn note_wait(&self, progress: &Progress) {
        if !self.runs.runs_for(&progress.workflow_id, &progress.agent_id) {
            return;
        }
        let Some(message) = self.waits.news(progress, self.clock.steady()) else { return };
        let Ok(key) = workflow_key(&progress.workflow_id) else { return };
        let (agent, action) = (&progress.agent_id, &progress.action_id);
        let written = self
            .change(&key, |workflow| Ok(report::say(&workflow.status, agent, action, &message)));
        if let Err(error) = written.await {
            tracing::debug!(workflow = %key, ?error, "cannot store the reason of a wait");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use agent_rpc::Progress;

    use super::{WAITS_MAX, Waits};

    #[test]
    fn a_wait_is_written_once_and_so_is_its_end() {
        let waits = Waits::default();
        let news = |message: &str, seconds: u64| {
            let progress = Progress {
                workflow_id: "default/w".to_owned(),
                action_id: "a".to_owned(),
                message: message.to_owned(),
                ..Progress::default()
            };
            waits.news(&progress, Duration::from_secs(seconds))
        };
        assert_eq!(news("writing", 0), None);
        assert_eq!(news("waiting: no registry", 1).as_deref(), Some("waiting: no registry"));
        assert_eq!(news("waiting: no registry", 100), None, "it is known");
        assert_eq!(news("waiting: 503", 101).as_deref(), Some("waiting: 503"));
        assert_eq!(news("writing", 102), None, "too early for another write");
        assert_eq!(news("writing", 120).as_deref(), Some("running action"));
        assert_eq!(news("writing", 200), None);
        let long = format!("waiting: {}", "é".repeat(1000));
        assert!(news(&long, 300).is_some_and(|message| message.len() <= 400));
        waits.forget("default/w");
        assert_eq!(news("writing", 400), None);
    }
    #[test]
    fn waits_that_were_written_first_make_room() {
        let waits = Waits::default();
        for number in 0..=WAITS_MAX {
            let progress = Progress {
                workflow_id: format!("default/w{number}"),
                message: "waiting: 503".to_owned(),
                ..Progress::default()
            };
            let news = waits.news(&progress, Duration::from_secs(number as u64));
            assert_eq!(news.as_deref(), Some("waiting: 503"), "{number}");
        }
        assert!(waits.waits().len() < WAITS_MAX);
    }
}
