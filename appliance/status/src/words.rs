//! States as words, each with a tone. A face chooses the colour or shape of a tone.

use api::tinkerbell::{ActionState, State};
use serde::{Deserialize, Serialize};

/// What a word asks of the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Tone {
    /// Nothing happens and nothing has to.
    Quiet,
    /// Something is under way.
    Busy,
    /// Something else comes first, or somebody is waited for.
    Waiting,
    /// It ended well.
    Good,
    /// Somebody should look.
    Bad,
}

/// A state in one or two words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Word {
    /// For people.
    pub text: &'static str,
    /// What it asks of the reader.
    pub tone: Tone,
}

/// What stands beside a word, so that no state is told by its colour alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Shape {
    /// Seen, and not known.
    DottedRing,
    /// Could begin at once.
    FilledDot,
    /// Something else comes first.
    HalfDot,
    /// On its way.
    Triangle,
    /// Part of the way is done.
    Arc,
    /// Done.
    Tick,
    /// Failed.
    Cross,
    /// Took too long.
    CrossClock,
    /// Nobody knows.
    Question,
    /// Off, or not in use.
    Ring,
    /// Stopped by a person.
    Bars,
    /// On its way out.
    Minus,
}

const fn word(text: &'static str, tone: Tone) -> Word {
    Word { text, tone }
}

/// A workflow's state.
pub fn workflow(state: State) -> Word {
    match state {
        State::New => word("new", Tone::Quiet),
        State::Preparing => word("booting its machine", Tone::Busy),
        State::Pending => word("waiting for the agent", Tone::Busy),
        State::Running => word("running", Tone::Busy),
        State::Post => word("finishing", Tone::Busy),
        State::Success => word("succeeded", Tone::Good),
        State::Failed => word("failed", Tone::Bad),
        State::Timeout => word("timed out", Tone::Bad),
    }
}

/// A workflow's word and shape; `held`: a person keeps it from going on.
pub fn work(state: State, held: bool) -> (Word, Shape) {
    if held && !state.ended() {
        return (word("held", Tone::Quiet), Shape::Bars);
    }
    let shape = match state {
        State::New => Shape::Ring,
        State::Preparing => Shape::Triangle,
        State::Pending => Shape::HalfDot,
        State::Running | State::Post => Shape::Arc,
        State::Success => Shape::Tick,
        State::Failed => Shape::Cross,
        State::Timeout => Shape::CrossClock,
    };
    (workflow(state), shape)
}

/// An action's state.
pub fn action(state: ActionState) -> Word {
    match state {
        ActionState::Pending => word("waiting", Tone::Quiet),
        ActionState::Running => word("running", Tone::Busy),
        ActionState::Success => word("succeeded", Tone::Good),
        ActionState::Failed => word("failed", Tone::Bad),
        ActionState::Timeout => word("timed out", Tone::Bad),
    }
}

/// A power state as a bmc Machine has it: `on`, `off`, anything else.
pub fn power(state: Option<&str>) -> Word {
    match state {
        Some("on") => word("on", Tone::Good),
        Some("off") => word("off", Tone::Quiet),
        _ => word("unknown", Tone::Bad),
    }
}

#[cfg(test)]
mod tests {
    use super::{Tone, action, power, workflow};
    use api::state::workflow::STATES;
    use api::tinkerbell::{ActionState, State};

    #[test]
    fn no_two_states_share_a_word() {
        let mut words: Vec<_> = STATES.into_iter().map(|state| workflow(state).text).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), STATES.len());
    }

    #[test]
    fn an_ended_workflow_is_good_or_bad() {
        for state in STATES {
            let tone = workflow(state).tone;
            assert_eq!(state.ended(), matches!(tone, Tone::Good | Tone::Bad), "{state:?}");
            assert_eq!(state == State::Success, tone == Tone::Good, "{state:?}");
        }
        assert_eq!(action(ActionState::Timeout).tone, Tone::Bad);
    }

    #[test]
    fn power_is_never_guessed() {
        assert_eq!(power(Some("on")).text, "on");
        assert_eq!(power(Some("off")).text, "off");
        assert_eq!(power(Some("ON?")).text, "unknown");
        assert_eq!(power(None).text, "unknown");
    }
}
