//! Serial console: the facts of the screens as plain lines. Only changed facts are written, so a
//! capture of the console is a log. Plain ASCII without colors, for every terminal.

use std::collections::BTreeSet;

use status::view::{StatusView, headline, problems};

use crate::draw::text::glyphs;

/// Maximum number of lines of one update, so that a failing rack does not flood the console.
const LINES_MAX: usize = 40;

/// State of the console: the facts and problems that were printed last.
#[derive(Debug, Default)]
pub struct Serial {
    facts: Vec<String>,
    problems: BTreeSet<String>,
}

impl Serial {
    /// Returns the lines to write now: changed facts, new problems, and ended problems.
    pub fn lines(&mut self, view: &StatusView) -> Vec<String> {
        let facts = facts(view);
        let mut lines: Vec<String> =
            facts.iter().filter(|fact| !self.facts.contains(fact)).cloned().collect();
        let problems = problems(view);
        for problem in problems.iter().filter(|it| !self.problems.contains(&it.key)) {
            let code = &problem.trouble.code;
            let code = if code.is_empty() { String::new() } else { format!(" ({code})") };
            lines.push(format!("problem: {}{code}", problem.trouble.sentence()));
        }
        let there: BTreeSet<String> = problems.into_iter().map(|problem| problem.key).collect();
        lines.extend(self.problems.difference(&there).map(|key| format!("over: {key}")));
        (self.facts, self.problems) = (facts, there);
        let more = lines.len().saturating_sub(LINES_MAX);
        lines.truncate(LINES_MAX);
        lines.extend((more > 0).then(|| format!("and {more} more")));
        let stamp = view.time_of_day(view.now);
        lines.into_iter().map(|line| format!("{stamp} {}", ascii(&line))).collect()
    }
}

fn facts(view: &StatusView) -> Vec<String> {
    let slot = if view.slot.is_empty() { String::new() } else { format!(" slot {}", view.slot) };
    let mut facts = vec![format!("{} {}{slot}", view.name, view.version)];
    match view.starting() {
        Some(_) => return [facts, vec![headline(view).sentence()]].concat(),
        None => facts.push(format!("certificate pin {}", view.pin)),
    }
    for nic in &view.nics {
        let address = nic.address().unwrap_or("has no address");
        facts.push(format!("{} {address}, {}, {}", nic.name, nic.link(), nic.role.word()));
    }
    if let Some(claim) = &view.claim {
        let link = claim.link().unwrap_or_else(|| "its address, once it has one".to_owned());
        facts.push(format!("claim this box at {link} with code {}", claim.code));
    }
    facts
}

fn ascii(line: &str) -> String {
    glyphs(line).chars().map(|char| if char.is_ascii() { char } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::Serial;
    use status::view::{StatusView, example};

    #[test]
    fn only_what_changed_is_said() {
        let mut serial = Serial::default();
        let unclaimed = example::unclaimed();
        let expected = [
            "14:02 box-7f3a 1.4.0 slot A",
            "14:02 certificate pin F3A9-1C20-8BQK-77TM",
            "14:02 eth0 10.20.30.40, 1 Gb/s, management",
            "14:02 eth1 10.99.0.1, 2.5 Gb/s, provisioning",
            "14:02 claim this box at HTTPS://10.20.30.40/S/7KQ4M2 with code 7KQ4M2",
        ];
        assert_eq!(serial.lines(&unclaimed), expected);
        assert_eq!(serial.lines(&unclaimed), [""; 0]);
        let failed = "14:02 problem: image2disk failed on nuc-07: checksum does not match. Compare \
            the image's sum with the Template's, then retry. (ChecksumMismatch)";
        assert_eq!(serial.lines(&example::working()), [failed]);
        assert_eq!(serial.lines(&example::calm()), ["14:02 over: machine/nuc-07/Failed"]);
        let guest = StatusView { slot: "".into(), ..unclaimed };
        assert_eq!(Serial::default().lines(&guest)[0], "14:02 box-7f3a 1.4.0");
    }

    #[test]
    fn a_rack_that_fails_does_not_flood_the_line() {
        let mut view = example::calm();
        let mut failed = example::working().machines.remove(6);
        view.machines = (0..500)
            .map(|number| {
                failed.name = format!("é\u{1b}[2J{number}").into();
                failed.clone()
            })
            .collect();
        let lines = Serial::default().lines(&view);
        assert_eq!(lines.len(), super::LINES_MAX + 1);
        assert!(lines.iter().all(|line| line.bytes().all(|byte| (b' '..=b'~').contains(&byte))));
    }
}
