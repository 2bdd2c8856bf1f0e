//! State of a machine that boots for its workflow, from its events.

use jiff::Timestamp;

use super::{Machine, MachineState, Sentence};
use crate::history::{EventRecord, Line, booting, history, power_ons, silence};
use crate::view::{Text, Trouble};

/// Maximum number of sentences in the history of a machine.
const STORY_MAX: usize = 100;
/// Silence after which a machine counts as overdue, in milliseconds. Slow firmware needs less.
const SILENT_MAX_MILLIS: u64 = 10 * 60 * 1000;
/// Number of boots without an agent after which a machine counts as overdue.
const BOOTS_MAX: usize = 2;

impl Machine {
    /// Adds the history to a machine. The state of a machine that waits for its workflow changes to
    /// booting or silent, according to its latest events. A boot in vain stays a trouble while the
    /// box boots the machine again.
    pub fn fill_history(&mut self, records: Vec<EventRecord>, now: Timestamp) {
        let boots = self.since.map_or(0, |since| power_ons(&records, since));
        let seen = records.iter().filter(|it| it.is_of_machine()).map(|it| it.at).max();
        self.last_seen = self.last_seen.max(seen);
        let lines = history(records);
        if self.state == MachineState::Waiting
            && let Some(since) = self.since
            && let Some(step) = booting(&lines, since)
        {
            (self.state, self.step) = (MachineState::Booting, step.into());
            self.judge_boot(&lines, boots, now);
        }
        let first = lines.len().saturating_sub(STORY_MAX);
        let sentences = lines.into_iter().skip(first).map(|line| Sentence {
            at: line.at,
            text: line.sentence.into(),
            warning: line.warning,
        });
        self.story = sentences.collect();
    }

    /// Sets the trouble of a boot that takes too long, or that followed boots in vain.
    fn judge_boot(&mut self, lines: &[Line], boots: usize, now: Timestamp) {
        let silence = silence(lines, now);
        let in_vain = boots.saturating_sub(usize::from(silence.is_none()));
        let what = match &silence {
            Some(silence) => format!("No request for {}", stdx::seconds(silence.millis)),
            None if in_vain == 1 => "No agent after 1 boot".to_owned(),
            None if in_vain > 1 => format!("No agent after {in_vain} boots"),
            None => return,
        };
        let causes = silence.as_ref().map_or(&[][..], |silence| silence.causes);
        let millis = silence.as_ref().map_or(0, |silence| silence.millis);
        self.overdue = in_vain >= BOOTS_MAX || millis >= SILENT_MAX_MILLIS;
        if silence.is_some() || self.overdue {
            self.state = MachineState::Silent;
        }
        self.trouble = Some(Trouble {
            what: what.into(),
            on: self.name.clone(),
            causes: causes.iter().map(|cause| Text::from(*cause)).collect(),
            now: "See its screen, or switch it off and on".into(),
            code: "Silent".into(),
            ..Trouble::default()
        });
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use crate::history::EventRecord;
    use crate::view::{Machine, MachineState};

    fn at(second: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second)
    }

    fn record(second: i64, reason: &str, message: &str) -> EventRecord {
        let (kind, name) = ("Hardware".to_owned(), "nuc1".to_owned());
        let (reason, message) = (reason.to_owned(), message.to_owned());
        EventRecord { at: at(second), revision: 1, kind, name, reason, message, warning: false }
    }

    fn filled(state: MachineState, records: Vec<EventRecord>, now: i64) -> Machine {
        let mut machine = Machine { state, since: Some(at(10)), ..Machine::default() };
        machine.fill_history(records, at(now));
        machine
    }

    #[test]
    fn a_history_makes_a_waiting_machine_boot_and_fall_silent() {
        let state = |state, now: i64| {
            let records = vec![
                record(8, "PoweredOn", "is on, according to its BMC"),
                record(20, "FetchedScript", "fetched the script that boots the agent"),
            ];
            let machine = filled(state, records, now);
            (machine.state, machine.step.to_string(), machine.overdue)
        };
        use MachineState::{Booting, InService, Silent, Waiting};
        let loads = || "loads the agent".to_owned();
        assert_eq!(state(Waiting, 30), (Booting, loads(), false));
        assert_eq!(state(Waiting, 60), (Silent, loads(), false));
        assert_eq!(state(Waiting, 1_000), (Silent, loads(), true));
        assert_eq!(state(InService, 1_000), (InService, String::new(), false));
    }

    #[test]
    fn a_machine_is_seen_by_what_it_does_itself() {
        let by_box = record(30, "PoweredOn", "is on, according to its BMC");
        let seen = |records| filled(MachineState::Waiting, records, 40).last_seen;
        assert_eq!(seen(vec![by_box.clone()]), None);
        let asked = record(20, "AskedForAddress", "asked for an address");
        assert_eq!(seen(vec![asked, by_box]), Some(at(20)));
    }

    #[test]
    fn a_silence_names_all_its_usual_causes() {
        let on = || vec![record(12, "PoweredOn", "is on, according to its BMC")];
        assert_eq!(filled(MachineState::Waiting, on(), 70).trouble, None, "60 s are usual");
        let trouble = filled(MachineState::Waiting, on(), 75).trouble.unwrap();
        assert!(trouble.what.starts_with("No request for 63 s"), "{trouble:?}");
        assert_eq!(trouble.causes.len(), 3, "{trouble:?}");
        let sentence = trouble.sentence();
        assert!(sentence.contains("; usual causes: the network is not in its boot order, or"));
    }

    #[test]
    fn boots_in_vain_stay_a_trouble_until_an_agent_runs() {
        let on = |second| record(second, "PoweredOn", "is on, according to its BMC");
        let first = filled(MachineState::Waiting, vec![on(12), on(200)], 210);
        assert_eq!((first.state, first.overdue), (MachineState::Booting, false));
        assert_eq!(first.trouble.unwrap().what, "No agent after 1 boot".into());
        let silent = filled(MachineState::Waiting, vec![on(12), on(200)], 290);
        assert_eq!((silent.state, silent.overdue), (MachineState::Silent, true));
        let third = filled(MachineState::Waiting, vec![on(12), on(200), on(400)], 410);
        assert_eq!((third.state, third.overdue), (MachineState::Silent, true));
        assert_eq!(third.trouble.unwrap().what, "No agent after 2 boots".into());
        let runs = record(300, "AgentStarted", "runs agent 0.1.0");
        let back = filled(MachineState::Waiting, vec![on(12), on(200), runs, on(400)], 410);
        assert_eq!((back.state, back.trouble), (MachineState::Booting, None));
    }
}
