//! Decides which happenings become Events. A repetition within the minute is counted, many
//! different messages of one reason share one Event, and each machine has a token bucket, so that
//! no machine wears the disk. Algorithm and first numbers are those of client-go's
//! `EventCorrelator` (`tools/record/events_cache.go`).

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::{Duration, Instant};

use api::core::Happening;
use jiff::Timestamp;

/// Time in which an Event counts its repetitions.
pub const WINDOW: Duration = Duration::from_secs(60);
/// Subjects that are remembered (client-go's `maxLruCacheEntries`).
const SUBJECTS_MAX: usize = 4096;
/// Different messages of one reason in a window; more share one Event (client-go's
/// `defaultAggregateMaxEvents`).
const MESSAGES_MAX: usize = 10;
/// The same for all unknown machines together: a rack that is switched on for the first time.
const UNKNOWN_MESSAGES_MAX: usize = 64;
/// Prefix of a message that stands for several, as client-go has it.
const COMBINED: &str = "(combined from similar events): ";

/// Events about one subject: so many at once, then one in `every`.
#[derive(Debug, Clone, Copy)]
struct Rate {
    burst: u32,
    every: Duration,
}

/// Warnings (client-go's `defaultSpamBurst` and `defaultSpamQPS`).
const WARNINGS: Rate = Rate { burst: 25, every: Duration::from_secs(5 * 60) };
/// All else: an installation has some 20 Events, and a machine may be installed again at once.
const NEWS: Rate = Rate { burst: 120, every: Duration::from_secs(10) };
/// Warnings and all else about unknown machines together.
const UNKNOWN: Rate = Rate { burst: 128, every: Duration::from_secs(30) };

/// The subject whose limits an Event falls under.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Subject {
    /// An object of the store.
    Object {
        /// Its kind.
        kind: &'static str,
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// All machines that no Hardware describes: a MAC address costs nothing.
    UnknownMachines,
}

/// A new Event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// Suffix of its name.
    pub suffix: String,
    /// Number of happenings, including those left out before.
    pub count: u64,
    /// Its message.
    pub message: String,
}

/// A new count of an Event that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recount {
    /// Namespace of the Event.
    pub namespace: String,
    /// Name of the Event.
    pub name: String,
    /// Number of happenings.
    pub count: u64,
    /// Time of the last one.
    pub last: Timestamp,
}

/// Memory of recent happenings. The caller brings the time, of a steady clock.
#[derive(Debug, Default)]
pub struct Correlator {
    subjects: HashMap<Subject, History>,
    /// Windows by their ends: each is as long as the others.
    windows: VecDeque<(Instant, Subject, String)>,
    /// Counts of windows that were ended before their time.
    ended: Vec<Recount>,
}

#[derive(Debug)]
struct History {
    touched: Instant,
    warnings: Bucket,
    news: Bucket,
    /// By reason.
    series: HashMap<String, Series>,
}

#[derive(Debug, Default)]
struct Series {
    until: Option<Instant>,
    events: Vec<Stored>,
    /// Happenings since the last Event for which the bucket had no token.
    left_out: u64,
}

#[derive(Debug)]
struct Stored {
    /// Hash of its message; `None` for the Event that stands for several.
    message: Option<u64>,
    namespace: String,
    name: String,
    count: u64,
    stored: u64,
    last: Timestamp,
}

/// A token bucket, as the time at which it will be full.
#[derive(Debug)]
struct Bucket {
    rate: Rate,
    full: Option<Instant>,
}

impl Bucket {
    fn new(rate: Rate) -> Self {
        Self { rate, full: None }
    }

    fn take(&mut self, now: Instant) -> bool {
        let full = self.full.map_or(now, |full| full.max(now));
        if full.duration_since(now) > self.rate.every * (self.rate.burst - 1) {
            return false;
        }
        self.full = Some(full + self.rate.every);
        true
    }

    fn is_full(&self, now: Instant) -> bool {
        self.full.is_none_or(|full| full <= now)
    }
}

impl History {
    fn new(subject: &Subject, now: Instant) -> Self {
        let (warnings, news) = match subject {
            Subject::Object { .. } => (WARNINGS, NEWS),
            Subject::UnknownMachines => (UNKNOWN, UNKNOWN),
        };
        let (warnings, news) = (Bucket::new(warnings), Bucket::new(news));
        Self { touched: now, warnings, news, series: HashMap::new() }
    }

    fn is_idle(&self, now: Instant) -> bool {
        let is_over = |series: &Series| series.events.is_empty();
        self.warnings.is_full(now) && self.news.is_full(now) && self.series.values().all(is_over)
    }
}

impl Series {
    /// Ends the window: what was counted since it was stored.
    fn end(&mut self) -> impl Iterator<Item = Recount> + use<> {
        self.until = None;
        let events = std::mem::take(&mut self.events).into_iter();
        events.filter(|event| event.count > event.stored).map(|event| Recount {
            namespace: event.namespace,
            name: event.name,
            count: event.count,
            last: event.last,
        })
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

impl Correlator {
    /// Takes a happening in. The Event to create, named with `suffix`, if it is to be one.
    pub fn note(
        &mut self,
        subject: &Subject,
        happening: &Happening,
        now: Instant,
        suffix: impl FnOnce() -> String,
    ) -> Option<NewEvent> {
        self.make_room(subject, now);
        let history = self.subjects.entry(subject.clone());
        let history = history.or_insert_with(|| History::new(subject, now));
        history.touched = now;
        let series = history.series.entry(happening.reason.clone()).or_default();
        if series.until.is_some_and(|until| until <= now) {
            self.ended.extend(series.end());
        }
        let message = hash(&happening.message);
        let limit = match subject {
            Subject::Object { .. } => MESSAGES_MAX,
            Subject::UnknownMachines => UNKNOWN_MESSAGES_MAX,
        };
        let is_combined = series.events.len() >= limit;
        let known =
            |event: &&mut Stored| event.message.map_or(is_combined, |known| known == message);
        if let Some(event) = series.events.iter_mut().find(known) {
            event.count += 1;
            event.last = happening.at;
            return None;
        }
        let bucket = if happening.warning { &mut history.warnings } else { &mut history.news };
        if !bucket.take(now) {
            series.left_out += 1;
            return None;
        }
        if series.until.is_none() {
            let until = now + WINDOW;
            series.until = Some(until);
            self.windows.push_back((until, subject.clone(), happening.reason.clone()));
        }
        let (count, suffix) = (1 + std::mem::take(&mut series.left_out), suffix());
        series.events.push(Stored {
            message: (!is_combined).then_some(message),
            namespace: happening.namespace.clone(),
            name: happening.event_name(&suffix),
            count,
            stored: count,
            last: happening.at,
        });
        let prefix = if is_combined || count > 1 { COMBINED } else { "" };
        Some(NewEvent { suffix, count, message: format!("{prefix}{}", happening.message) })
    }

    /// Ends the windows of a subject, but those of reasons that `keep`: what comes next is news.
    pub fn begin_anew(&mut self, subject: &Subject, keep: impl Fn(&str) -> bool) {
        let Some(history) = self.subjects.get_mut(subject) else { return };
        for (_, series) in history.series.iter_mut().filter(|(reason, _)| !keep(reason)) {
            self.ended.extend(series.end());
        }
    }

    /// The counts to store now: those of windows that are over.
    pub fn due(&mut self, now: Instant) -> Vec<Recount> {
        let mut due = std::mem::take(&mut self.ended);
        while self.windows.front().is_some_and(|(until, ..)| *until <= now) {
            let Some((_, subject, reason)) = self.windows.pop_front() else { break };
            let Some(history) = self.subjects.get_mut(&subject) else { continue };
            if let Some(series) = history.series.get_mut(&reason)
                && series.until.is_some_and(|until| until <= now)
            {
                due.extend(series.end());
            }
        }
        due
    }

    /// All counts that are not stored yet.
    pub fn last(&mut self) -> Vec<Recount> {
        let mut last = std::mem::take(&mut self.ended);
        let all = self.subjects.values_mut().flat_map(|history| history.series.values_mut());
        last.extend(all.flat_map(Series::end));
        last
    }

    /// Time of the next end of a window.
    pub fn next_due(&self) -> Option<Instant> {
        self.windows.front().map(|(until, ..)| *until)
    }

    /// Forgets what says nothing any more, then who was silent for longest.
    fn make_room(&mut self, subject: &Subject, now: Instant) {
        if self.subjects.len() < SUBJECTS_MAX || self.subjects.contains_key(subject) {
            return;
        }
        self.subjects.retain(|_, history| !history.is_idle(now));
        if self.subjects.len() >= SUBJECTS_MAX {
            let oldest = self.subjects.iter().min_by_key(|(_, history)| history.touched);
            if let Some(oldest) = oldest.map(|(subject, _)| subject.clone())
                && let Some(mut history) = self.subjects.remove(&oldest)
            {
                self.ended.extend(history.series.values_mut().flat_map(Series::end));
            }
        }
    }
}

#[cfg(test)]
mod tests;
