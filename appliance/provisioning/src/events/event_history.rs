//! Event history for the status view, read from the stored Events. The store is read only after a
//! change, and at most every two seconds.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use api::core::EVENT;
use api::tinkerbell::Hardware;
use resources::{Engine, ListOptions};
use status::boot_event::unknown_machine;
use status::history::EventRecord;
use status::source::{Filling, StatusSource};
use status::view::{Event, StatusView};
use tokio::sync::Mutex;

use crate::index::Index;
use crate::objects::id;

/// Minimum time between two reads of the store.
const EVERY: Duration = Duration::from_secs(2);
/// Maximum number of events in the view; older events are left out.
const EVENTS_MAX: usize = 50;

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
                machine.fill_history(own.collect(), view.now);
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

fn event(record: &EventRecord) -> Event {
    Event {
        at: record.at,
        subject: record.name.as_str().into(),
        sentence: record.message.as_str().into(),
        warning: record.warning,
    }
}
