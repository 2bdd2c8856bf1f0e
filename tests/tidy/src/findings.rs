//! Findings of reviews: each names a test, and the test exists.

use std::collections::BTreeSet;

use crate::Violation;
use crate::tree::Tree;

/// The table of findings.
const FINDINGS: &str = "docs/reviews.md";
/// Each finding names tests, and each test that is named exists.
pub fn findings(tree: &Tree) -> Vec<Violation> {
    let Some(file) = tree.file(FINDINGS) else { return Vec::new() };
    let tests: BTreeSet<&str> = tree.rust().flat_map(|file| functions(&file.text)).collect();
    let mut violations = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, line) in file.text.lines().enumerate() {
        let Some(row) = Row::read(line) else { continue };
        let mut add = |what: String| violations.push(Violation::at(FINDINGS, index + 1, what));
        if !seen.insert(row.id) {
            add(format!("{}: the finding has two rows", row.id));
        }
        if row.tests.is_empty() {
            add(format!("{}: the finding has no test", row.id));
        }
        for test in row.tests.iter().filter(|test| !tests.contains(*test)) {
            add(format!("{}: there is no test {test}", row.id));
        }
    }
    violations
}

/// A row of a table: a finding and its tests.
struct Row<'a> {
    id: &'a str,
    tests: Vec<&'a str>,
}

impl<'a> Row<'a> {
    /// `None` for a heading, a rule and text outside of tables.
    fn read(line: &'a str) -> Option<Self> {
        let cells = line.strip_prefix("| ")?.strip_suffix('|')?;
        let (id, rest) = cells.split_once(" |")?;
        if matches!(id, "id" | "case") {
            return None;
        }
        let last = rest.rsplit_once('|').map_or(rest, |(_, last)| last);
        let tests = last.split('`').skip(1).step_by(2).filter(|text| is_test(text));
        Some(Self { id, tests: tests.collect() })
    }
}

/// A test's name is a sentence; other code in a cell is not.
fn is_test(text: &str) -> bool {
    text.matches('_').count() >= 2
        && text
            .chars()
            .all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_')
}

fn functions(text: &str) -> impl Iterator<Item = &str> {
    let names = text.lines().filter_map(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("async ").unwrap_or(line);
        line.strip_prefix("fn ")
    });
    names.filter_map(|rest| rest.split(['(', '<']).next())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(table: &str) -> usize {
        let code =
            "#[tokio::test]\nasync fn a_test_that_is_there() {}\nfn another_one_is_there() {}";
        let files = [("docs/reviews.md", table), ("a/src/b.rs", code)];
        let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
        findings(&Tree::of(files.to_vec())).len()
    }

    #[test]
    fn a_finding_has_a_test_that_exists() {
        let head = "| id | finding | test |\n|---|---|---|\n";
        let row = |cells: &str| format!("{head}| {cells} |\n");
        let good = row("D1 | x | `a_test_that_is_there`, `another_one_is_there`: `make it`");
        assert_eq!(found(&good), 0);
        assert_eq!(found(&row("D1 | x |")), 1);
        assert_eq!(found(&row("D1 | x | `a_test_that_is_gone`")), 1);
        assert_eq!(found(&row("D1 | `a_test_that_is_there` | `make it`")), 1);
        assert_eq!(found(&format!("{good}{}", &good[head.len()..])), 1, "two rows");
        assert_eq!(found("| case | test |\n| a-case | `another_one_is_there` |\n"), 0);
    }
}
