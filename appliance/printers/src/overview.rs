//! Summary of a box for a terminal: state, problems with their remedy, progress, new machines.

use status::view::problem::Urgency;
use status::view::{Machine, MachineState, Problem, StatusView, headline, moment, problems};
use status::words::Tone;

use crate::table::{Cell, Table, paint};

/// Space before the text of a problem.
const INDENT: &str = "  ";
/// Minimum width in characters for which text is wrapped.
const WIDTH_MIN: usize = 40;

/// Appearance of the summary.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// Width of the terminal in characters; texts are wrapped.
    pub width: usize,
    /// True for colors of a terminal.
    pub color: bool,
}

/// Formats the summary of a box. `command` returns the command line that helps with a problem.
pub fn overview(
    view: &StatusView,
    style: Style,
    command: impl Fn(&Problem) -> Option<String>,
) -> String {
    let mut text = head(view, style);
    let problems = problems(view);
    if !problems.is_empty() {
        // Delays that are not urgent need no person yet, as the headline and the exit code say.
        let heading = if headline(view).needs.is_some() { "NEEDS YOU" } else { "DELAYED" };
        text.push_str(&format!("\n{heading}\n"));
        for problem in &problems {
            text.push_str(&block(problem, view, style));
            text.extend(command(problem).map(|line| format!("{INDENT}$ {line}\n")));
        }
    }
    if view.machines.is_empty() {
        text.push_str(&format!("\n{}\n", first_step(view)));
    }
    let mut tables = [progress(view), new(view)].into_iter().flatten();
    tables.try_for_each(|mut table| {
        table.fit(style.width.max(WIDTH_MIN));
        text.push('\n');
        text.push_str(&table.render(style.color));
        Some(())
    });
    text.extend(counts(view).map(|line| format!("\n{line}\n")));
    text
}

fn head(view: &StatusView, style: Style) -> String {
    let headline = headline(view);
    let tone = if headline.needs.is_some() { Tone::Bad } else { Tone::Good };
    let serving: Vec<&str> =
        view.nics.iter().filter(|nic| nic.armed()).map(|nic| nic.name.as_str()).collect();
    let serves = match serving.as_slice() {
        [] => "serves no network".to_owned(),
        names => format!("serves {}", names.join(", ")),
    };
    let up = moment::uptime(view.uptime_seconds);
    let sentence = paint(&headline.sentence(), Some(tone), style.color);
    format!("{sentence}\n{} {}, up {up}, {serves}\n", view.name, view.version)
}

/// Returns what a person does next on a box without machines.
fn first_step(view: &StatusView) -> String {
    if view.claim.is_some() {
        return "Claim the box: tinbox box claim ADDRESS --pin PIN, with the pin of its screen or \
                log"
        .to_owned();
    }
    match view.nics.iter().find(|nic| nic.armed()) {
        Some(nic) => format!(
            "Connect a machine to {} and let it boot from the network: it appears here.",
            nic.name
        ),
        None => "Choose the network of the machines: tinbox network mode NAME MODE".to_owned(),
    }
}

/// Formats a problem: title with its age, then the text with cause and remedy.
fn block(problem: &Problem, view: &StatusView, style: Style) -> String {
    let tone = if problem.urgency == Urgency::Notice { Tone::Waiting } else { Tone::Bad };
    let mut title = paint(&problem.title, Some(tone), style.color);
    title.extend(problem.since.map(|at| format!(", {}", view.ago(at))));
    let options = textwrap::Options::new(style.width.max(WIDTH_MIN))
        .initial_indent(INDENT)
        .subsequent_indent(INDENT);
    format!("{title}\n{}\n", textwrap::fill(&problem.trouble.sentence(), options))
}

/// Returns the machines in progress; `None` if there are none.
fn progress(view: &StatusView) -> Option<Table> {
    let mut table = Table::new(&["IN PROGRESS", "STATE", "STEP", "RATE", "LEFT"]);
    let mut moving = view.machines.iter().filter(|machine| machine.under_way()).peekable();
    moving.peek()?;
    for machine in moving {
        let rate = machine.bytes_per_second.map(|rate| format!("{}/s", stdx::bytes(rate)));
        table.row([
            machine.name.as_str().into(),
            Cell::toned(machine.status(), machine.tone()),
            machine.step.as_str().into(),
            rate.unwrap_or_default().into(),
            machine.millis_left.map(stdx::seconds).unwrap_or_default().into(),
        ]);
    }
    Some(table)
}

/// Returns the machines without Hardware; `None` if there are none.
fn new(view: &StatusView) -> Option<Table> {
    let is_new = |machine: &&Machine| machine.state == MachineState::New;
    let mut table = Table::new(&["NEW", "MODEL", "TO INSTALL IT"]);
    let mut machines = view.machines.iter().filter(is_new).peekable();
    machines.peek()?;
    for machine in machines {
        table.row([
            machine.name.as_str().into(),
            machine.model.as_str().into(),
            format!("tinbox machine install {}", machine.name).into(),
        ]);
    }
    Some(table)
}

/// Counts the machines of each state, most frequent first; `None` without machines.
fn counts(view: &StatusView) -> Option<String> {
    let mut counts: Vec<(usize, &str)> = status::view::machine::STATES
        .into_iter()
        .map(|state| (view.count(&[state]), state.word().text))
        .filter(|(count, _)| *count > 0)
        .collect();
    counts.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let words: Vec<String> =
        counts.iter().map(|(count, word)| format!("{count} {}", word.to_lowercase())).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

#[cfg(test)]
mod tests {
    use status::view::{Machine, MachineState, StatusView, example};

    use super::{Style, overview};

    fn shown(view: &StatusView) -> String {
        let style = Style { width: 80, color: false };
        overview(view, style, |problem| {
            problem.machine.as_ref().map(|name| format!("tinbox machine retry {name}"))
        })
    }

    #[test]
    fn a_box_is_summarized_in_80_columns() {
        let mut working = example::working();
        let (name, model) = ("88:ae:dd:01:02:03".into(), "Intel NUC13ANHi5".into());
        working.machines.push(Machine {
            name,
            model,
            state: MachineState::New,
            ..Machine::default()
        });
        for (file, view) in [
            ("overview.txt", working),
            ("overview-calm.txt", example::calm()),
            ("overview-stopped.txt", example::dhcp_stopped()),
            ("overview-empty.txt", StatusView { machines: Vec::new(), ..example::calm() }),
        ] {
            let text = shown(&view);
            golden::check(file, &text);
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        }
    }
}
