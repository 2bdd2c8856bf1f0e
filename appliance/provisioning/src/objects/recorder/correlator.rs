//! Correlator that decides which events become stored Events. A repetition within a minute is only
//! counted. Many different messages with one reason share one Event. Each machine has a token
//! bucket, so that no machine can wear out the disk. Algorithm and default limits are those of
//! client-go's `EventCorrelator` (`tools/record/events_cache.go`).

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::{Duration, Instant};

use api::core::ObjectEvent;
use jiff::Timestamp;

/// Length of the window in which an Event counts its repetitions.
pub const WINDOW: Duration = Duration::from_secs(60);
/// Maximum number of subjects in memory (client-go's `maxLruCacheEntries`).
const SUBJECTS_MAX: usize = 4096;
/// Maximum number of different messages with one reason in a window. Further messages share one
/// Event (client-go's `defaultAggregateMaxEvents`).
const MESSAGES_MAX: usize = 10;
/// Maximum number of different messages in a window for all unknown machines together. A rack that
/// is powered on for the first time has many unknown machines.
const UNKNOWN_MESSAGES_MAX: usize = 64;
/// Prefix of the message of an Event that represents several messages, as in client-go.
const COMBINED: &str = "(combined from similar events): ";

/// Rate limit of Events about one subject: `burst` Events at once, then one Event per `every`.
#[derive(Debug, Clone, Copy)]
struct Rate {
    burst: u32,
    every: Duration,
}

/// Rate limit of warnings (client-go's `defaultSpamBurst` and `defaultSpamQPS`).
const WARNINGS: Rate = Rate { burst: 25, every: Duration::from_secs(5 * 60) };
/// Rate limit of other Events. An installation has about 20 Events, and a machine may be installed
/// again immediately.
const NEWS: Rate = Rate { burst: 120, every: Duration::from_secs(10) };
/// Rate limit of all Events about unknown machines together.
const UNKNOWN: Rate = Rate { burst: 128, every: Duration::from_secs(30) };

/// Subject of an event, with its own rate limits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Subject {
    /// Object in the store, such as a Hardware.
    Object {
        /// Kind of the object.
        kind: &'static str,
        /// Namespace of the object, empty for cluster scope.
        namespace: String,
        /// Name of the object within its namespace.
        name: String,
    },
    /// All machines without a Hardware together, because a sender can invent any number of MAC
    /// addresses.
    UnknownMachines,
}

/// Event for the caller to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// Suffix of the Event's name.
    pub suffix: String,
    /// Number of events, including events that the rate limit suppressed before.
    pub count: u64,
    /// Message of the Event, with a prefix if the Event represents several messages.
    pub message: String,
}

/// New count to write to a stored Event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recount {
    /// Namespace of the Event.
    pub namespace: String,
    /// Name of the Event.
    pub name: String,
    /// Total number of events that the Event represents.
    pub count: u64,
    /// Time of the last of these events.
    pub last: Timestamp,
}

/// Memory of recent events. The caller passes the time of a monotonic clock.
#[derive(Debug, Default)]
pub struct Correlator {
    subjects: HashMap<Subject, History>,
    /// Open windows, sorted by end; all windows have the same length.
    windows: VecDeque<(Instant, Subject, String)>,
    /// Counts of windows that were ended early, still to be written.
    ended: Vec<Recount>,
}

#[derive(Debug)]
struct History {
    touched: Instant,
    warnings: TokenBucket,
    news: TokenBucket,
    /// Events about the subject, by reason.
    series: HashMap<String, EventSeries>,
}

#[derive(Debug, Default)]
struct EventSeries {
    until: Option<Instant>,
    events: Vec<StoredEvent>,
    /// Number of events that the rate limit suppressed since the last stored Event.
    left_out: u64,
}

#[derive(Debug)]
struct StoredEvent {
    /// Hash of the message; `None` for the Event that represents several messages.
    message: Option<u64>,
    namespace: String,
    name: String,
    count: u64,
    stored: u64,
    last: Timestamp,
}

/// Token bucket, stored as the time at which the bucket will be full.
#[derive(Debug)]
struct TokenBucket {
    rate: Rate,
    full: Option<Instant>,
}

impl TokenBucket {
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
        let (warnings, news) = (TokenBucket::new(warnings), TokenBucket::new(news));
        Self { touched: now, warnings, news, series: HashMap::new() }
    }

    fn is_idle(&self, now: Instant) -> bool {
        let is_over = |series: &EventSeries| series.events.is_empty();
        self.warnings.is_full(now) && self.news.is_full(now) && self.series.values().all(is_over)
    }
}

impl EventSeries {
    /// Ends the window, and returns the counts that are not written yet.
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
    /// Records an event. Returns the Event to create, named with `suffix`; `None` if the event is
    /// only counted.
    pub fn note(
        &mut self,
        subject: &Subject,
        object_event: &ObjectEvent,
        now: Instant,
        suffix: impl FnOnce() -> String,
    ) -> Option<NewEvent> {
        self.make_room(subject, now);
        let history = self.subjects.entry(subject.clone());
        let history = history.or_insert_with(|| History::new(subject, now));
        history.touched = now;
        let series = history.series.entry(object_event.reason.clone()).or_default();
        if series.until.is_some_and(|until| until <= now) {
            self.ended.extend(series.end());
        }
        let message = hash(&object_event.message);
        let limit = match subject {
            Subject::Object { .. } => MESSAGES_MAX,
            Subject::UnknownMachines => UNKNOWN_MESSAGES_MAX,
        };
        let is_combined = series.events.len() >= limit;
        let known =
            |event: &&mut StoredEvent| event.message.map_or(is_combined, |known| known == message);
        if let Some(event) = series.events.iter_mut().find(known) {
            event.count += 1;
            event.last = object_event.at;
            return None;
        }
        let bucket = if object_event.warning { &mut history.warnings } else { &mut history.news };
        if !bucket.take(now) {
            series.left_out += 1;
            return None;
        }
        if series.until.is_none() {
            let until = now + WINDOW;
            series.until = Some(until);
            self.windows.push_back((until, subject.clone(), object_event.reason.clone()));
        }
        let (count, suffix) = (1 + std::mem::take(&mut series.left_out), suffix());
        series.events.push(StoredEvent {
            message: (!is_combined).then_some(message),
            namespace: object_event.namespace.clone(),
            name: object_event.event_name(&suffix),
            count,
            stored: count,
            last: object_event.at,
        });
        let prefix = if is_combined || count > 1 { COMBINED } else { "" };
        Some(NewEvent { suffix, count, message: format!("{prefix}{}", object_event.message) })
    }

    /// Ends the windows of a subject, except for reasons that `keep` selects. The next event then
    /// creates a new Event.
    pub fn begin_anew(&mut self, subject: &Subject, keep: impl Fn(&str) -> bool) {
        let Some(history) = self.subjects.get_mut(subject) else { return };
        for (_, series) in history.series.iter_mut().filter(|(reason, _)| !keep(reason)) {
            self.ended.extend(series.end());
        }
    }

    /// Returns the counts to write now: the counts of ended windows.
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

    /// Ends all windows, and returns all counts that are not written yet.
    pub fn last(&mut self) -> Vec<Recount> {
        let mut last = std::mem::take(&mut self.ended);
        let all = self.subjects.values_mut().flat_map(|history| history.series.values_mut());
        last.extend(all.flat_map(EventSeries::end));
        last
    }

    /// Returns the end of the oldest window; `None` if no window is open.
    pub fn next_due(&self) -> Option<Instant> {
        self.windows.front().map(|(until, ..)| *until)
    }

    /// Makes space for a new subject if the memory is full: removes idle subjects, else the subject
    /// with the oldest last event.
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
                self.ended.extend(history.series.values_mut().flat_map(EventSeries::end));
            }
        }
    }
}

#[cfg(test)]
mod tests;
