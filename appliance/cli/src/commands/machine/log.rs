//! `machine log`: syslog lines of a machine.

use api::tinkerbell::HARDWARE;
use status::log::LogLine;
use status::plain;
use status::words::Tone;

use super::super::{Context, name_of};
use crate::client::Path;
use crate::error::Error;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Name, id, MAC or IP address of the machine
    #[arg(value_name = "NAME|ID|MAC|IP")]
    machine: String,

    /// Number of lines; the box keeps only the latest in memory
    #[arg(short, long, value_name = "COUNT", default_value_t = 200)]
    lines: usize,
}

/// Prints the latest lines, oldest first.
pub async fn run(context: &Context, arguments: Arguments) -> Result<(), Error> {
    let name = name_of(&context.find(HARDWARE, &arguments.machine).await?);
    let answer = context.client.get(&Path::log(&context.namespace, &name, arguments.lines)).await?;
    let lines: Vec<LogLine> = serde_json::from_value(answer).unwrap_or_default();
    match context.printer.values(&lines) {
        Some(printed) => printed,
        None if lines.is_empty() => {
            context.printer.note(&format!("no syslog lines from {name}"));
            Ok(())
        }
        None => lines.iter().try_for_each(|line| context.printer.line(&shown(context, line))),
    }
}

fn shown(context: &Context, line: &LogLine) -> String {
    let at = line.received.strftime("%H:%M:%S");
    let text = match line.program.as_str() {
        "" => plain(&line.text),
        program => format!("{}: {}", plain(program), plain(&line.text)),
    };
    let text = if line.warning() { context.printer.toned(&text, Tone::Bad) } else { text };
    format!("{at}  {text}")
}
