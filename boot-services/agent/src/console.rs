//! Log lines for a person at a serial console, and for the machine's log on the box.

use std::fmt::{self, Write as _};
use std::io::Write as _;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::log_sender::LogSender;

/// Target of the output of actions' programs. This output is not sent to the box by syslog: it may
/// contain secrets, and the progress of the action already has it, encrypted.
const OUTPUT: &str = "imaging::programs::output";

/// Subscriber that writes `tinbox-agent: message key=value` to standard error, one write per line.
/// No spans and no filter except the level, because the agent's binary must stay small.
#[derive(Debug)]
pub struct Console {
    sender: Option<LogSender>,
}

impl Console {
    /// Installs the subscriber for the process. With `sender`, it also sends the lines to the box.
    /// A second call has no effect.
    pub fn install(sender: Option<LogSender>) {
        let _ = tracing::subscriber::set_global_default(Self { sender });
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
        let level = *event.metadata().level();
        let prefix = match level {
            Level::ERROR => "error: ",
            Level::WARN => "warning: ",
            _ => "",
        };
        let text = line.message + &line.fields;
        let shown = format!("tinbox-agent: {prefix}{text}\n");
        let _ = std::io::stderr().lock().write_all(shown.as_bytes());
        if let Some(sender) = self.sender.as_ref().filter(|_| event.metadata().target() != OUTPUT) {
            sender.push(level, &text);
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[cfg(test)]
mod tests {
    use imaging::Meter;
    use imaging::output::{LastLines, log_lines};

    use super::Console;
    use crate::log_sender::queue;

    #[tokio::test]
    async fn log_lines_go_to_the_box_and_output_of_programs_does_not() {
        let (sender, mut lines) = queue();
        let console = tracing::subscriber::set_default(Console { sender: Some(sender) });
        let (meter, last) = (Meter::default(), LastLines::default());
        log_lines(Some(&b"password\n"[..]), "program", &meter, &last).await;
        tracing::warn!(disk = "sda", "not found");
        drop(console);
        assert_eq!(last.joined(), "password");
        let first = lines.receive().await.unwrap();
        assert_eq!(first, "<28>1 - - tinbox-agent - - - not found disk=sda");
    }
}
