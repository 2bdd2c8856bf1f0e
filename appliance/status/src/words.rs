//! States as words, each with a tone. Each interface chooses the color or shape of a tone.

use api::tinkerbell::{ActionState, State, WorkflowStatus};
use serde::{Deserialize, Serialize};

/// Kind of a state, from which an interface chooses a color.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Tone {
    /// Idle: no work is in progress, and no action is necessary.
    Quiet,
    /// Work is in progress.
    Busy,
    /// Waiting for an event or for a person.
    Waiting,
    /// Success, or a healthy state.
    Good,
    /// A problem that needs attention.
    Bad,
}

/// State in a few words, with its tone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Word {
    /// Text of the word, for people.
    pub text: &'static str,
    /// Tone of the word.
    pub tone: Tone,
}

/// Shape beside a word, so that no state is shown by color alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Shape {
    /// Dotted ring: an unknown machine.
    DottedRing,
    /// Filled dot: ready for work.
    FilledDot,
    /// Half-filled dot: waiting for something.
    HalfDot,
    /// Triangle: booting or starting.
    Triangle,
    /// Open arc: work in progress.
    Arc,
    /// Tick: work that succeeded.
    Tick,
    /// Cross: work that failed.
    Cross,
    /// Slashed ring: work that a person canceled.
    SlashedRing,
    /// Cross with a clock: work that exceeded its time limit.
    CrossClock,
    /// Question mark: no report in time.
    Question,
    /// Ring: off, or not in use.
    Ring,
    /// Two bars: paused by a person.
    Bars,
    /// Minus sign: being removed.
    Minus,
}

const fn word(text: &'static str, tone: Tone) -> Word {
    Word { text, tone }
}

/// Returns the word for a workflow's state.
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

/// Word of a workflow that a person canceled.
const CANCELED: Word = word("canceled", Tone::Quiet);

/// Returns true if the workflow ended because a person canceled it.
pub fn is_canceled(status: &WorkflowStatus) -> bool {
    status.ended.as_ref().is_some_and(|ended| ended.reason == "Cancelled")
}

/// Returns text and tone of a workflow's state. A queued workflow names the workflow ahead of it.
pub fn progress(status: &WorkflowStatus) -> (String, Tone) {
    if is_canceled(status) {
        return (CANCELED.text.to_owned(), CANCELED.tone);
    }
    let word = workflow(status.state);
    match status.queued() {
        Some(queued) => (crate::plain(queued), Tone::Waiting),
        None => (word.text.to_owned(), word.tone),
    }
}

/// Returns text, tone and shape of a workflow. `held` and `canceled` are true if a person paused or
/// canceled the workflow; `queued` is its place in the queue, empty for the first.
pub fn work(state: State, held: bool, canceled: bool, queued: &str) -> (&str, Tone, Shape) {
    if canceled {
        return (CANCELED.text, CANCELED.tone, Shape::SlashedRing);
    }
    if held && !state.ended() {
        return ("paused", Tone::Quiet, Shape::Bars);
    }
    if !queued.is_empty() {
        return (queued, Tone::Waiting, Shape::HalfDot);
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
    let word = workflow(state);
    (word.text, word.tone, shape)
}

/// Returns the shape beside the word of an action's state.
pub fn action_shape(state: ActionState) -> Shape {
    match state {
        ActionState::Pending => Shape::Ring,
        ActionState::Running => Shape::Arc,
        ActionState::Success => Shape::Tick,
        ActionState::Failed => Shape::Cross,
        ActionState::Timeout => Shape::CrossClock,
    }
}

/// Returns the word for an action's state.
pub fn action(state: ActionState) -> Word {
    match state {
        ActionState::Pending => word("waiting", Tone::Quiet),
        ActionState::Running => word("running", Tone::Busy),
        ActionState::Success => word("succeeded", Tone::Good),
        ActionState::Failed => word("failed", Tone::Bad),
        ActionState::Timeout => word("timed out", Tone::Bad),
    }
}

/// Returns the word for a bmc Machine's power state: `on`, `off`, else `unknown`.
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
