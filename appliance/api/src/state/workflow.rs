//! State table of a Workflow (upstream: tink's `internal/workflow`). A pair of state and event that
//! is not in the table changes nothing, so a late report never restarts an ended workflow. Only a
//! retry does, and never after success.

use crate::tinkerbell::State;

/// Event that may change the state of a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// The template was rendered, and the machine must first boot or get permission to boot.
    RenderedForBoot,
    /// The template was rendered, and the agent may request work at once.
    RenderedForAgent,
    /// Network boot is permitted and every boot job has completed.
    BootPrepared,
    /// A BMC job that boots the machine failed, and the box gives up.
    BootFailed,
    /// The agent began an action.
    ActionStarted,
    /// An action of the workflow failed.
    ActionFailed,
    /// An action exceeded its time limit.
    ActionTimedOut,
    /// The last action of the last task succeeded.
    LastActionSucceeded,
    /// The workflow exceeded its time limit.
    TimeRanOut,
    /// The steps after the last action are done.
    PostDone,
    /// A user requested the end of the workflow.
    Cancelled,
    /// A further attempt begins, and the machine must first boot or get permission to boot.
    RetriedForBoot,
    /// A further attempt begins, and the agent may request work at once.
    RetriedForAgent,
    /// A further attempt begins, and the template must be rendered first.
    RetriedUnrendered,
    /// A user paused the workflow: no new action starts, and the state stays.
    Paused,
    /// A user resumed the paused workflow.
    Resumed,
}

/// Every state, for tables and diagrams.
pub const STATES: [State; 8] = [
    State::New,
    State::Preparing,
    State::Pending,
    State::Running,
    State::Post,
    State::Success,
    State::Failed,
    State::Timeout,
];

/// Every event, for tables and diagrams.
pub const EVENTS: [Event; 16] = [
    Event::RenderedForBoot,
    Event::RenderedForAgent,
    Event::BootPrepared,
    Event::BootFailed,
    Event::ActionStarted,
    Event::ActionFailed,
    Event::ActionTimedOut,
    Event::LastActionSucceeded,
    Event::TimeRanOut,
    Event::PostDone,
    Event::Cancelled,
    Event::RetriedForBoot,
    Event::RetriedForAgent,
    Event::RetriedUnrendered,
    Event::Paused,
    Event::Resumed,
];

/// Returns the state after `event`; `None` if the event changes nothing.
pub fn next(state: State, event: Event) -> Option<State> {
    use Event as E;
    use State as S;
    Some(match (state, event) {
        (S::New, E::RenderedForBoot) => S::Preparing,
        (S::New, E::RenderedForAgent) => S::Pending,
        (S::Preparing, E::BootPrepared) => S::Pending,
        (S::Preparing | S::Pending | S::Running, E::BootFailed) => S::Failed,
        (S::Pending, E::ActionStarted) => S::Running,
        (S::Pending | S::Running, E::ActionFailed) => S::Failed,
        (S::Pending | S::Running, E::ActionTimedOut) => S::Timeout,
        (S::Pending | S::Running, E::LastActionSucceeded) => S::Post,
        (S::Preparing | S::Pending | S::Running, E::TimeRanOut) => S::Timeout,
        (S::Post, E::PostDone) => S::Success,
        // In Post every action is done: nothing is left to cancel.
        (S::New | S::Preparing | S::Pending | S::Running, E::Cancelled) => S::Failed,
        (S::Failed | S::Timeout, E::RetriedForBoot) => S::Preparing,
        (S::Failed | S::Timeout, E::RetriedForAgent) => S::Pending,
        (S::Failed | S::Timeout, E::RetriedUnrendered) => S::New,
        _ => return None,
    })
}

impl State {
    /// Returns true for success, failure and timeout. A retry can change failure and timeout only.
    pub fn ended(self) -> bool {
        matches!(self, State::Success | State::Failed | State::Timeout)
    }

    /// Returns true if the agent may receive actions.
    pub fn serves(self) -> bool {
        matches!(self, State::Pending | State::Running)
    }

    /// Returns the state name as in JSON; the empty string for `New`.
    pub fn as_str(self) -> &'static str {
        match self {
            State::New => "",
            State::Preparing => "PREPARING",
            State::Pending => "PENDING",
            State::Running => "RUNNING",
            State::Post => "POST",
            State::Success => "SUCCESS",
            State::Failed => "FAILED",
            State::Timeout => "TIMEOUT",
        }
    }
}

/// Formats the state table as a Mermaid diagram.
pub fn diagram() -> String {
    let name = |state: State| match state {
        State::New => "[*]",
        other => other.as_str(),
    };
    let mut text = String::from("stateDiagram-v2\n");
    for state in STATES {
        for event in EVENTS {
            if let Some(to) = next(state, event) {
                text.push_str(&format!("    {} --> {}: {event:?}\n", name(state), name(to)));
            }
        }
        if state.ended() {
            text.push_str(&format!("    {} --> [*]\n", name(state)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{EVENTS, Event, STATES, diagram, next};
    use crate::tinkerbell::State;

    #[test]
    fn every_pair_is_decided() {
        let moves: Vec<_> = STATES
            .into_iter()
            .flat_map(|state| EVENTS.into_iter().map(move |event| (state, event)))
            .filter_map(|(state, event)| next(state, event).map(|to| (state, event, to)))
            .collect();
        assert_eq!(moves.len(), 27);
        for (from, event, to) in moves {
            assert!(!from.ended() || RETRIES.contains(&event), "{from:?} is left by {event:?}");
            assert_ne!(from, to);
        }
    }

    const RETRIES: [Event; 3] =
        [Event::RetriedForBoot, Event::RetriedForAgent, Event::RetriedUnrendered];

    #[test]
    fn late_news_never_revives() {
        for state in [State::Success, State::Failed, State::Timeout] {
            let news = EVENTS.into_iter().filter(|event| !RETRIES.contains(event));
            for event in news {
                assert_eq!(next(state, event), None, "{state:?} {event:?}");
            }
        }
        for event in EVENTS {
            assert_eq!(next(State::Success, event), None, "{event:?}");
        }
    }

    #[test]
    fn only_what_did_not_succeed_is_tried_again() {
        for state in STATES {
            let again = matches!(state, State::Failed | State::Timeout);
            for event in RETRIES {
                assert_eq!(next(state, event).is_some(), again, "{state:?} {event:?}");
            }
        }
    }

    #[test]
    fn a_pause_moves_nothing_and_a_cancel_all_that_may_still_touch_the_machine() {
        for state in STATES {
            assert_eq!(next(state, Event::Paused), None, "{state:?}");
            assert_eq!(next(state, Event::Resumed), None, "{state:?}");
            let want = (!state.ended() && state != State::Post).then_some(State::Failed);
            assert_eq!(next(state, Event::Cancelled), want, "{state:?}");
        }
    }

    #[test]
    fn the_common_walk() {
        let walk = [
            Event::RenderedForBoot,
            Event::BootPrepared,
            Event::ActionStarted,
            Event::LastActionSucceeded,
            Event::PostDone,
        ];
        let end = walk.into_iter().try_fold(State::New, next);
        assert_eq!(end, Some(State::Success));
    }

    #[test]
    fn the_diagram_shows_every_state() {
        let text = diagram();
        for state in STATES.into_iter().skip(1) {
            assert!(text.contains(state.as_str()), "{text}");
        }
    }
}
