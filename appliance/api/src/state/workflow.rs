//! The states of a Workflow as one table (upstream: tink's `internal/workflow`).
//! A pair that is not in the table changes nothing: late news never revives a workflow that has
//! ended.

use crate::tinkerbell::State;

/// Something that happened to a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// Its template was rendered and its machine must first be booted or permitted to boot.
    RenderedForBoot,
    /// Its template was rendered and its agent may ask at once.
    RenderedForAgent,
    /// Network boot is permitted and every boot job has completed.
    BootPrepared,
    /// A boot job failed for good.
    BootFailed,
    /// The agent began an action.
    ActionStarted,
    /// An action failed.
    ActionFailed,
    /// An action took too long.
    ActionTimedOut,
    /// The last action of the last task succeeded.
    LastActionSucceeded,
    /// The whole took too long.
    TimeRanOut,
    /// The steps after the last action are done.
    PostDone,
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
pub const EVENTS: [Event; 10] = [
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
];

/// The state after `event`, or `None` where the event changes nothing.
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
        _ => return None,
    })
}

impl State {
    /// Nothing moves it any more.
    pub fn ended(self) -> bool {
        matches!(self, State::Success | State::Failed | State::Timeout)
    }

    /// Its agent may be served.
    pub fn serves(self) -> bool {
        matches!(self, State::Pending | State::Running)
    }

    /// As on the wire.
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

/// The table as a Mermaid state diagram, for the documents.
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
        assert_eq!(moves.len(), 17);
        for (from, _, to) in moves {
            assert!(!from.ended(), "{from:?} is final and must not move");
            assert_ne!(from, to);
        }
    }

    #[test]
    fn late_news_never_revives() {
        for state in [State::Success, State::Failed, State::Timeout] {
            for event in EVENTS {
                assert_eq!(next(state, event), None, "{state:?} {event:?}");
            }
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
