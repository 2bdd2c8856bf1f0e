//! Exact counts in tests of real networks and machines. A datagram is sent again and a machine may
//! start twice, so an exact count needs the reason why nothing is repeated.

use crate::Violation;
use crate::source::{Source, expressions};
use crate::tree::Tree;

/// Folders whose tests use real networks and emulated machines.
const REAL: [&str; 7] = [
    "tests/scenarios/",
    "tests/firmware/",
    "tests/peers/",
    "tests/qemu/",
    "boot-services/dhcp/tests/",
    "boot-services/netboot/tests/",
    "tests/wire/",
];
/// Words for things that a slow machine may repeat.
const REPEATED: [&str; 8] =
    ["switched_on(", "datagram", "packet", "requests", "boots", "starts", "resets", "log."];
/// Code that counts such things.
const COUNTS: [&str; 4] = ["switched_on(", ".len()", ".count()", ".count("];

/// An exact count of datagrams, lines of a log or starts of a machine has a message, or a comment
/// above, that says why there is no repeat.
pub fn counts(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in tree.rust().filter(|file| REAL.iter().any(|at| file.path.starts_with(at))) {
        let source = Source::new(file);
        for at in source.in_tests("assert_eq!(") {
            let arguments = expressions::arguments(&source.code, at + "assert_eq!".len());
            let [left, right, ..] = arguments.as_slice() else { continue };
            // String contents are blanked in the code, so the message is searched in the text.
            let end = source.code[right.end..].find(';').map_or(right.end, |end| right.end + end);
            let has_message = file.text[right.end..end].contains('"');
            let [left, right] = [left, right].map(|range| source.code[range.clone()].trim());
            let is_count = |text: &str| {
                let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
                has(&REPEATED) && has(&COUNTS)
            };
            let is_number = |text: &str| text.starts_with(|char: char| char.is_ascii_digit());
            let is_exact = is_count(left) && is_number(right) || is_number(left) && is_count(right);
            let line = source.line(at);
            if is_exact && !has_message && !has_comment_above(&file.text, line) {
                let what = "an exact count of what may be repeated: say why it is not";
                violations.push(Violation::at(&file.path, line, what));
            }
        }
    }
    violations
}

fn has_comment_above(text: &str, line: usize) -> bool {
    let above = line.checked_sub(2).and_then(|index| text.lines().nth(index));
    above.is_some_and(|above| above.trim_start().starts_with("//"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, line: &str) -> usize {
        let text = format!("fn a() {{\n{line}\n}}\n");
        counts(&Tree::of(vec![(path.to_owned(), text)])).len()
    }

    #[test]
    fn an_exact_count_has_its_reason() {
        let path = "tests/peers/tests/peers/a.rs";
        for line in [
            "assert_eq!(switched_on(&lab), 1);",
            "assert_eq!(12, bmc.datagrams().len());",
            "assert_eq!(log.matches(\"up\").count(), 2);",
        ] {
            assert_eq!(found(path, line), 1, "{line}");
            assert_eq!(found(path, &format!("// Once.\n{line}")), 0, "{line}");
            assert_eq!(found("appliance/api/src/a/tests.rs", line), 0, "{line}");
        }
        for line in [
            "assert_eq!(switched_on(&lab), 1, \"the agent is patient\");",
            "assert_eq!(names.len(), 2);",
            "assert_eq!(datagrams.len(), before.len());",
            "assert!(switched_on(&lab) >= 1);",
        ] {
            assert_eq!(found(path, line), 0, "{line}");
        }
    }
}
