//! Authentication of agents: each call needs a token that the box issued for a workflow.
//!
//! A token is valid for one workflow and expires [`REPORT_GRACE`] after its end, so that an agent
//! can repeat a lost last report. A token is valid only in the boot that used it first. An agent
//! that sends its boot ID with every call keeps its token until its boot ends, also for the next
//! workflow of the machine.

use std::sync::Arc;
use std::time::Duration;

use agent_rpc::{Call, Credentials, Refusal};
use api::meta::ObjectKey;
use jiff::Timestamp;
use status::boot_event::BootEvent;

use crate::Service;
use crate::backend::TokenUse;
use crate::boots::Binding;
use crate::runs::Run;

/// Time after the end of a workflow during which its token is valid: an agent repeats a report
/// whose response was lost.
const REPORT_GRACE: Duration = Duration::from_secs(600);

/// Reason why a call is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Denial {
    /// The agent has no open workflow, with this token or another.
    NoWork,
    /// The token does not belong to a workflow of the machine.
    Foreign,
    /// The workflow of the token has ended, or the call is about another workflow.
    Over,
    /// The token is bound to another boot.
    OtherBoot,
    /// The call comes from a NIC that is not in the Hardware of the machine.
    OtherNic,
}

impl Denial {
    /// Returns a sentence for people and the agent.
    fn sentence(self) -> &'static str {
        match self {
            Self::NoWork => "there is no workflow for this agent",
            Self::Foreign => "the agent's token does not belong to a workflow of this machine",
            Self::Over => {
                "the agent's token belongs to another workflow, or to a workflow that has ended: \
                 restart the machine"
            }
            Self::OtherBoot => {
                "the agent's token is in use by another boot of the machine: restart the machine"
            }
            Self::OtherNic => {
                "the agent's token was sent by a NIC that is not in the Hardware of the machine: \
                 add the MAC of this NIC to the Hardware"
            }
        }
    }
}

/// Workflow of the agent, with the inputs of the token check.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    /// True if the token belongs to the workflow.
    is_of_token: bool,
    /// True if the workflow has not ended.
    is_open: bool,
    /// True if the workflow ended longer ago than [`REPORT_GRACE`].
    is_over: bool,
    /// True if the call is about the workflow.
    is_called: bool,
    /// True if the workflow is first in the queue, so that the agent receives its actions.
    is_first: bool,
}

/// Decides if a call with a token is allowed, and returns the reason of a refusal.
fn decide(candidates: &[Candidate], call: Call<'_>, binding: Binding) -> Result<(), Denial> {
    let own = || candidates.iter().filter(|it| it.is_of_token);
    if own().next().is_none() {
        return Err(Denial::Foreign);
    }
    match binding {
        Binding::Other => return Err(Denial::OtherBoot),
        Binding::Proven => return Ok(()),
        Binding::Unbound | Binding::Bound => {}
    }
    let has_work = candidates.iter().any(|it| it.is_open);
    let may = match call {
        Call::Hello(_) => own().any(|it| !it.is_over),
        Call::Workflow(_) => own().any(|it| it.is_called && !it.is_over),
        Call::Next => own().any(|it| it.is_open && it.is_first),
    };
    match (may, call) {
        (true, _) => Ok(()),
        (false, Call::Next | Call::Hello(_)) if !has_work => Err(Denial::NoWork),
        (false, _) => Err(Denial::Over),
    }
}

/// Returns true if a workflow ended longer ago than [`REPORT_GRACE`].
fn is_over(run: &Run, now: Timestamp) -> bool {
    if !run.state.ended() {
        return false;
    }
    match (run.ended, run.stopped) {
        (Some(seen), _) => seen.elapsed() > REPORT_GRACE,
        (None, Some(stopped)) => {
            Duration::try_from(now.duration_since(stopped)).unwrap_or_default() > REPORT_GRACE
        }
        (None, None) => true,
    }
}

impl Service {
    /// Decides if the caller may make a call as the agent `agent_id`.
    pub(crate) fn admit(&self, agent_id: &str, shown: &Credentials<'_>) -> Result<(), Refusal> {
        let runs = self.runs.all_of_agent(agent_id);
        if runs.is_empty() && self.backend.may_introduce_itself(agent_id) {
            if self.backend.is_sender(agent_id, shown.peer) {
                return Ok(());
            }
            let why = "its MAC differs from the MAC of the sending NIC";
            return Err(Refusal::Unauthenticated(format!("agent {agent_id} is unknown: {why}")));
        }
        if shown.token.is_none() && self.settings.permissive {
            return Ok(());
        }
        if runs.is_empty() {
            // This response reveals nothing. An agent whose workflow was deleted continues to
            // request work, instead of repeating a report that cannot be stored.
            return Err(Refusal::NotFound(format!("no workflow for agent {agent_id}")));
        }
        // The machine booted before the workflow existed, so its token is of no workflow.
        let is_early = |token| self.backend.verify(token, agent_id, "").is_some();
        if self.settings.enrollment
            && shown.token.is_none_or(is_early)
            && self.runs.are_enrolled(agent_id)
            && self.backend.is_sender(agent_id, shown.peer)
        {
            return Ok(());
        }
        let Some(token) = shown.token else {
            return Err(Refusal::Unauthenticated("the agent sent no token".into()));
        };
        let (kind, candidates) = self.candidates(agent_id, token, shown.call, &runs);
        let named = match shown.call {
            Call::Hello(boot) => Some(boot),
            Call::Next | Call::Workflow(_) => None,
        };
        let binding = match kind {
            TokenUse::OneBoot => self.boots.binding(token, shown.boot, named),
            TokenUse::EveryBoot => Binding::Unbound,
        };
        let is_sender =
            !self.backend.knows(agent_id) || self.backend.is_sender(agent_id, shown.peer);
        let denial = match decide(&candidates, shown.call, binding) {
            Ok(()) if !is_sender => Denial::OtherNic,
            Ok(()) => {
                if (kind, binding) == (TokenUse::OneBoot, Binding::Unbound) {
                    self.boots.bind(token, shown.boot, named, self.clock.steady());
                }
                return Ok(());
            }
            Err(denial) => denial,
        };
        let why = denial.sentence();
        if denial == Denial::NoWork {
            return Err(Refusal::NotFound(format!("no workflow for agent {agent_id}")));
        }
        self.backend.record_event(
            agent_id,
            &BootEvent::Refused { what: "work".to_owned(), why: why.to_owned() },
        );
        Err(Refusal::Unauthenticated(why.to_owned()))
    }

    /// Returns the use of a token, and the agent's workflows with the inputs of the token check.
    fn candidates(
        &self,
        agent_id: &str,
        token: &str,
        call: Call<'_>,
        runs: &[(ObjectKey, Arc<Run>)],
    ) -> (TokenUse, Vec<Candidate>) {
        let now = self.clock.now();
        let first = self.runs.of_agent(agent_id).into_iter().find(|(_, run)| !run.idle);
        let (mut kind, mut candidates) = (TokenUse::EveryBoot, Vec::new());
        for (key, run) in runs {
            let found = self.backend.verify(token, agent_id, &run.uid);
            kind = found.unwrap_or(kind);
            candidates.push(Candidate {
                is_of_token: found.is_some(),
                is_open: !run.state.ended(),
                is_over: is_over(run, now),
                is_called: call == Call::Workflow(&key.to_string()),
                is_first: first.as_ref().is_none_or(|(_, first)| first.uid == run.uid),
            });
        }
        (kind, candidates)
    }
}

#[cfg(test)]
mod tests;
