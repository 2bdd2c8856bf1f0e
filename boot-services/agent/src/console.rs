//! Log lines for a person at a serial console.

use std::fmt::{self, Write as _};
use std::io::Write as _;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Subscriber that writes `tinbox-agent: message key=value` to standard error, one write per line.
/// No spans and no filter except the level, because the agent's binary must stay small.
pub struct Console;

impl Console {
    /// Installs the subscriber for the process. A second call has no effect.
    pub fn install() {
        let _ = tracing::subscriber::set_global_default(Self);
    }
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = if field.name() == "message" {
            write!(self.message, "{value:?}")
        } else {
            write!(self.fields, " {}={value:?}", field.name())
        };
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let _ = if field.name() == "message" {
            write!(self.message, "{value}")
        } else if value.contains(' ') {
            write!(self.fields, " {}={value:?}", field.name())
        } else {
            write!(self.fields, " {}={value}", field.name())
        };
    }
}

impl Subscriber for Console {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let ours = ["agent", "agent_rpc", "imaging", "inventory", "tinbox_agent"]
            .iter()
            .any(|name| metadata.target().starts_with(name));
        metadata.is_event() && *metadata.level() <= if ours { Level::INFO } else { Level::WARN }
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let level = match *event.metadata().level() {
            Level::ERROR => "error: ",
            Level::WARN => "warning: ",
            _ => "",
        };
        let text = format!("tinbox-agent: {level}{}{}\n", line.message, line.fields);
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}
