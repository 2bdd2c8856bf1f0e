//! `machine log`: syslog lines of a machine.

use std::time::Duration;

use api::tinkerbell::HARDWARE;
use box_client::Path;
use status::log::LogLine;
use status::plain;
use status::words::Tone;

use super::super::{Context, name_of};
use crate::error::Error;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Name, id, MAC or IP address of the machine
    #[arg(value_name = "NAME|ID|MAC|IP")]
    machine: String,

    /// Number of lines; the box keeps only the latest in memory
    #[arg(short, long, value_name = "COUNT", default_value_t = 200)]
    lines: usize,

    /// Print new lines as they arrive, until Ctrl-C
    #[arg(short, long)]
    follow: bool,
}

/// Interval between two requests of `--follow`.
const FOLLOW_EVERY: Duration = Duration::from_millis(500);
/// Number of lines that one request of `--follow` reads.
const FOLLOW_LINES: usize = 1000;

/// Prints the latest lines, oldest first.
pub async fn run(context: &Context, arguments: Arguments) -> Result<(), Error> {
    let name = name_of(&context.find(HARDWARE, &arguments.machine).await?);
    let lines = read(context, &name, arguments.lines).await?;
    if !arguments.follow
        && let Some(printed) = context.printer.values(&lines)
    {
        return printed;
    }
    if lines.is_empty() {
        context.printer.note(&format!("no syslog lines from {name}"));
    }
    print(context, &lines)?;
    let mut last = lines.last().cloned();
    if !arguments.follow {
        return Ok(());
    }
    loop {
        tokio::time::sleep(FOLLOW_EVERY).await;
        let lines = match read(context, &name, FOLLOW_LINES).await {
            Ok(lines) => lines,
            Err(error) if error.is_passing() => continue,
            Err(error) => return Err(error),
        };
        let new = after(&lines, last.as_ref());
        print(context, new)?;
        last = new.last().cloned().or(last);
    }
}

async fn read(context: &Context, name: &str, count: usize) -> Result<Vec<LogLine>, Error> {
    let answer = context.client.get(&Path::log(&context.namespace, name, count)).await?;
    Ok(serde_json::from_value(answer).unwrap_or_default())
}

fn print(context: &Context, lines: &[LogLine]) -> Result<(), Error> {
    lines.iter().try_for_each(|line| context.printer.line(&shown(context, line)))
}

/// Returns the lines after the last printed one. All lines are new if the box has dropped that one,
/// such as after its restart.
fn after<'a>(lines: &'a [LogLine], last: Option<&LogLine>) -> &'a [LogLine] {
    let known = lines.iter().rposition(|line| Some(line) == last);
    &lines[known.map_or(0, |at| at + 1)..]
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

#[cfg(test)]
mod tests {
    use status::log::LogLine;

    use super::after;

    #[test]
    fn each_line_is_followed_once() {
        let line = |text: &str| LogLine { text: text.to_owned(), ..LogLine::default() };
        let lines = ["a", "b", "c"].map(line);
        assert_eq!(after(&lines, None), lines);
        assert_eq!(after(&lines, Some(&lines[1])), &lines[2..]);
        assert_eq!(after(&lines, Some(&lines[2])), &[]);
        assert_eq!(after(&lines, Some(&line("dropped"))), lines);
    }
}
