//! Event history for the status view, read from the stored Events. The store is read only after a
//! change, and at most every two seconds.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use api::core::EVENT;
use api::tinkerbell::Hardware;
use jiff::Timestamp;
use resources::{Engine, ListOptions};
use status::boot_event::unknown_machine;
use status::history::{EventRecord, Line, booting, history, silence};
use status::source::{Filling, StatusSource};
use status::view::machine::Sentence;
use status::view::{Event, Machine, MachineState, StatusView, Trouble};
use tokio::sync::Mutex;

use crate::index::Index;
use crate::objects::id;

/// Minimum time between two reads of the store.
const EVERY: Duration = Duration::from_secs(2);
/// Maximum number of events in the view; older events are left out.
const EVENTS_MAX: usize = 50;
/// Maximum number of sentences in the history of a machine.
const STORY_MAX: usize = 100;
/// Silence after which a machine counts as overdue, in milliseconds. Slow firmware needs less.
const SILENT_MAX_MILLIS: u64 = 10 * 60 * 1000;

/// Status source that reads the stored Events.
pub struct EventHistory {
    engine: Engine,
    index: Index,
    kept: Mutex<Option<HistoryCache>>,
}

struct HistoryCache {
    at: Instant,
    revision: u64,
    records: Arc<Vec<EventRecord>>,
}

impl StatusSource for EventHistory {
    fn fill<'a>(&'a self, view: &'a mut StatusView) -> Filling<'a> {
        Box::pin(async move {
            view.revision = self.engine.revision();
            let records = self.read(view.revision).await;
            let newest = records.iter().rev().take(EVENTS_MAX);
            view.events = newest.map(event).collect();
            let mut stories: HashMap<(&str, &str), Vec<EventRecord>> = HashMap::new();
            for record in records.iter() {
                let about = (record.kind.as_str(), record.name.as_str());
                stories.entry(about).or_default().push(record.clone());
            }
            let controllers = self.controllers();
            for machine in &mut view.machines {
                let bmc = controllers.get(machine.name.as_str()).map_or("", String::as_str);
                let unknown_machine = machine.mac.map(unknown_machine).unwrap_or_default();
                let subjects = [
                    ("Hardware", machine.name.as_str()),
                    ("Hardware", unknown_machine.as_str()),
                    ("Workflow", &machine.workflow),
                    ("Machine", bmc),
                ];
                let own = subjects.iter().filter_map(|about| stories.get(about)).flatten().cloned();
                fill_history(machine, history(own.collect()), view.now);
            }
        })
    }
}

impl EventHistory {
    /// Creates a status source for the Events in `engine` about the machines of `index`.
    pub fn new(engine: Engine, index: Index) -> Self {
        Self { engine, index, kept: Mutex::default() }
    }

    /// Returns the name of the bmc Machine for each Hardware name.
    fn controllers(&self) -> HashMap<String, String> {
        let machines = self.index.machines().into_iter();
        let bmc = |it: Arc<Hardware>| {
            Some((it.metadata.name.clone(), it.spec.bmc_ref.as_ref()?.name.clone()))
        };
        machines.filter_map(bmc).collect()
    }

    /// Returns the stored Events, oldest first. `revision` is the current revision of the store.
    async fn read(&self, revision: u64) -> Arc<Vec<EventRecord>> {
        let mut kept = self.kept.lock().await;
        if let Some(kept) = kept.as_ref()
            && (kept.revision == revision || kept.at.elapsed() < EVERY)
        {
            return Arc::clone(&kept.records);
        }
        let listed = self.engine.list(&id(EVENT), None, ListOptions::default()).await;
        let items = listed.map(|list| list.items).unwrap_or_default();
        let mut records: Vec<EventRecord> =
            items.iter().filter_map(EventRecord::from_event).collect();
        records.sort_by_key(|record| (record.at, record.revision));
        let records = Arc::new(records);
        *kept = Some(HistoryCache { at: Instant::now(), revision, records: Arc::clone(&records) });
        records
    }
}

/// Adds the history to a machine. The state of a machine that waits for its workflow changes to
/// booting or silent, according to its latest events.
fn fill_history(machine: &mut Machine, lines: Vec<Line>, now: Timestamp) {
    machine.last_seen = machine.last_seen.max(lines.last().map(|line| line.at));
    if machine.state == MachineState::Waiting
        && let Some(since) = machine.since
        && let Some(step) = booting(&lines, since)
    {
        (machine.state, machine.step) = (MachineState::Booting, step.into());
        if let Some(silence) = silence(&lines, now) {
            machine.state = MachineState::Silent;
            machine.overdue = silence.millis >= SILENT_MAX_MILLIS;
            machine.trouble = Some(Trouble {
                what: format!("No request for {}", stdx::seconds(silence.millis)).into(),
                on: machine.name.clone(),
                why: silence.causes.first().copied().unwrap_or_default().into(),
                now: "See its screen, or switch it off and on".into(),
                code: "Silent".into(),
            });
        }
    }
    let first = lines.len().saturating_sub(STORY_MAX);
    let sentences = lines.into_iter().skip(first).map(|line| Sentence {
        at: line.at,
        text: line.sentence.into(),
        warning: line.warning,
    });
    machine.story = sentences.collect();
}

fn event(record: &EventRecord) -> Event {
    Event {
        at: record.at,
        subject: record.name.as_str().into(),
        sentence: record.message.as_str().into(),
        warning: record.warning,
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use status::history::{EventRecord, history};
    use status::view::{Machine, MachineState};

    use super::fill_history;

    fn at(second: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second)
    }

    fn record(second: i64, reason: &str, message: &str) -> EventRecord {
        let (kind, name) = ("Hardware".to_owned(), "nuc1".to_owned());
        let (reason, message) = (reason.to_owned(), message.to_owned());
        EventRecord { at: at(second), revision: 1, kind, name, reason, message, warning: false }
    }

    #[test]
    fn a_story_makes_a_waiting_machine_boot_and_fall_silent() {
        let state = |state, now: i64| {
            let since = Some(at(10));
            let mut machine = Machine { state, since, ..Machine::default() };
            let lines = history(vec![
                record(8, "PoweredOn", "is on, says its BMC"),
                record(20, "FetchedScript", "fetched the script that boots the agent"),
            ]);
            fill_history(&mut machine, lines, at(now));
            (machine.state, machine.step.to_string(), machine.overdue)
        };
        use MachineState::{Booting, InService, Silent, Waiting};
        let loads = || "loads the agent".to_owned();
        assert_eq!(state(Waiting, 30), (Booting, loads(), false));
        assert_eq!(state(Waiting, 60), (Silent, loads(), false));
        assert_eq!(state(Waiting, 1_000), (Silent, loads(), true));
        assert_eq!(state(InService, 1_000), (InService, String::new(), false));
    }
}
