//! What happened lately, as people read it: the stored Events, read anew only when something was
//! written, and not more often than pages want them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use api::core::EVENT;
use apiserver::{Engine, ListOptions};
use status::timeline::{Told, timeline};
use status::view::machine::Sentence;
use status::view::{Event, StatusView};
use tokio::sync::Mutex;

use crate::objects::id;

/// Between two readings.
const EVERY: Duration = Duration::from_secs(2);
/// Events of a view, the newest first.
const EVENTS_MAX: usize = 50;
/// Sentences of a machine's story.
const STORY_MAX: usize = 100;

/// The Events of the store.
pub struct Chronicle {
    engine: Engine,
    kept: Mutex<Option<Kept>>,
}

struct Kept {
    at: Instant,
    revision: u64,
    told: Arc<Vec<Told>>,
}

impl Chronicle {
    /// Those of `engine`.
    pub fn new(engine: Engine) -> Self {
        Self { engine, kept: Mutex::default() }
    }

    /// Tells `view` what happened. `controllers` are the machines' BMC Machines, by their name.
    pub async fn tell(&self, view: &mut StatusView, controllers: &HashMap<String, String>) {
        view.revision = self.engine.revision();
        let told = self.read(view.revision).await;
        let newest = told.iter().rev().take(EVENTS_MAX);
        view.events = newest.map(event).collect();
        let mut stories: HashMap<(&str, &str), Vec<Told>> = HashMap::new();
        for told in told.iter() {
            let about = (told.kind.as_str(), told.name.as_str());
            stories.entry(about).or_default().push(told.clone());
        }
        for machine in &mut view.machines {
            let bmc = controllers.get(machine.name.as_str()).map_or("", String::as_str);
            let subjects = [
                ("Hardware", machine.name.as_str()),
                ("Workflow", &machine.workflow),
                ("Machine", bmc),
            ];
            let own = subjects.iter().filter_map(|about| stories.get(about)).flatten().cloned();
            let lines = timeline(own.collect());
            let first = lines.len().saturating_sub(STORY_MAX);
            machine.last_seen = lines.last().map(|line| line.at);
            let sentences = lines.into_iter().skip(first).map(|line| Sentence {
                at: line.at,
                text: line.sentence.into(),
                warning: line.warning,
            });
            machine.story = sentences.collect();
        }
    }

    /// The oldest first.
    async fn read(&self, revision: u64) -> Arc<Vec<Told>> {
        let mut kept = self.kept.lock().await;
        if let Some(kept) = kept.as_ref()
            && (kept.revision == revision || kept.at.elapsed() < EVERY)
        {
            return Arc::clone(&kept.told);
        }
        let listed = self.engine.list(&id(EVENT), None, ListOptions::default()).await;
        let items = listed.map(|list| list.items).unwrap_or_default();
        let mut told: Vec<Told> = items.iter().filter_map(Told::from_event).collect();
        told.sort_by_key(|told| (told.at, told.revision));
        let told = Arc::new(told);
        *kept = Some(Kept { at: Instant::now(), revision, told: Arc::clone(&told) });
        told
    }
}

fn event(told: &Told) -> Event {
    Event {
        at: told.at,
        subject: told.name.as_str().into(),
        sentence: told.message.as_str().into(),
        warning: told.warning,
    }
}
