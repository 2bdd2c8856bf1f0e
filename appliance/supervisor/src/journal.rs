//! Recent lines of the box's own log, in memory, for its pages and screens. A process has one log,
//! and therefore one journal.

use std::collections::VecDeque;
use std::fmt::{Debug, Write as _};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use status::log::LogLine;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Maximum number of stored lines.
const LINES_MAX: usize = 200;
/// Maximum length of a line in bytes.
const TEXT_BYTES_MAX: usize = 400;

/// Journal of this process's log.
pub static JOURNAL: Journal = Journal(Mutex::new(VecDeque::new()));

/// Recent lines of a log.
pub struct Journal(Mutex<VecDeque<LogLine>>);

impl Journal {
    /// Returns the lines, oldest first.
    pub fn lines(&self) -> Vec<LogLine> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().cloned().collect()
    }

    fn push(&self, line: LogLine) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

/// Layer of `tracing` that adds the events of levels error, warning and info to a journal.
pub struct JournalLayer(pub &'static Journal);

impl<S: Subscriber> Layer<S> for JournalLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        let severity = match *metadata.level() {
            Level::ERROR => "err",
            Level::WARN => "warning",
            Level::INFO => "info",
            _ => return,
        };
        let mut log_text = LogText::default();
        event.record(&mut log_text);
        let program = metadata.target().split("::").next().unwrap_or_default();
        self.0.push(LogLine {
            received: Timestamp::now(),
            severity: severity.to_owned(),
            program: program.to_owned(),
            text: log_text.line(),
        });
    }
}

/// Text of an event: the message and the fields.
#[derive(Default)]
struct LogText {
    sentence: String,
    values: String,
}

impl LogText {
    fn line(self) -> String {
        let mut line = self.sentence + &self.values;
        let mut end = TEXT_BYTES_MAX.min(line.len());
        while !line.is_char_boundary(end) {
            end -= 1;
        }
        line.truncate(end);
        line
    }
}

impl Visit for LogText {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.sentence, "{value:?}"),
            name => write!(self.values, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::{Journal, JournalLayer, LINES_MAX, TEXT_BYTES_MAX};

    static TOLD: Journal = Journal(Mutex::new(VecDeque::new()));

    #[test]
    fn the_last_lines_are_kept_as_they_were_said() {
        let subscriber = tracing_subscriber::registry().with(JournalLayer(&TOLD));
        tracing::subscriber::with_default(subscriber, || {
            for number in 0..LINES_MAX {
                tracing::info!(number, "a line");
            }
            tracing::debug!("not for people");
            tracing::warn!(reason = %"no cable", "the link is gone");
            tracing::error!("{}", "ä".repeat(TEXT_BYTES_MAX));
        });
        let lines = TOLD.lines();
        assert_eq!(lines.len(), LINES_MAX);
        assert_eq!(lines[0].text, "a line number=2");
        let [.., warned, long] = lines.as_slice() else { unreachable!() };
        assert_eq!(warned.text, "the link is gone reason=no cable");
        assert!(warned.warning() && !lines[0].warning());
        assert_eq!((long.severity.as_str(), long.text.len()), ("err", TEXT_BYTES_MAX));
    }
}
