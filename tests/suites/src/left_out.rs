//! Tests of a suite that cannot pass, with reasons: a table in a Markdown file. A reason that
//! begins with `a race:` means that the result is undefined, because two threads of the test itself
//! race.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use crate::Outcome;

/// The rows of a `left-out.md`.
pub struct LeftOut {
    rows: Vec<Row>,
}

/// One row of the table.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    package: String,
    /// Name of the test; for a race, the end of the name.
    test: String,
    races: bool,
}

impl Row {
    fn is_of(&self, test: &str) -> bool {
        if self.races { test.ends_with(&self.test) } else { test == self.test }
    }
}

impl LeftOut {
    /// Reads `left-out.md` of the suite in `folder` below `tests/suites`: columns package, test,
    /// why.
    ///
    /// # Errors
    /// The file cannot be read, or a row has no reason.
    pub fn read(folder: &str) -> Result<Self> {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join("left-out.md");
        let text = std::fs::read_to_string(&file);
        Self::parse(&text.with_context(|| format!("cannot read {}", file.display()))?)
    }

    fn parse(text: &str) -> Result<Self> {
        let mut rows = Vec::new();
        for line in text.lines().filter(|line| line.starts_with('|')).skip(2) {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            ensure!(cells.len() == 3 && !cells[2].is_empty(), "not package, test and why: {line}");
            let races = cells[2].starts_with("a race:");
            rows.push(Row { package: cells[0].to_owned(), test: cells[1].to_owned(), races });
        }
        Ok(Self { rows })
    }

    /// Problems of an outcome: a test that fails and is not listed, or is listed and does not fail.
    /// A listed race may end either way.
    pub fn problems(&self, package: &str, outcome: &Outcome) -> Vec<String> {
        let rows: Vec<&Row> = self.rows.iter().filter(|row| row.package == package).collect();
        let is_listed = |name: &str| rows.iter().any(|row| row.is_of(name));
        let unlisted = outcome.failed.iter().filter(|(name, _)| !is_listed(name));
        let unlisted = unlisted.map(|(name, said)| format!("{name} fails: {said}"));
        let sure = rows.iter().filter(|row| !row.races).map(|row| &row.test);
        let mended = sure.filter(|test| !outcome.failed.contains_key(*test));
        let mended = mended.map(|test| format!("{test} is left out and does not fail"));
        unlisted.chain(mended).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::LeftOut;
    use crate::Outcome;

    const TEXT: &str = "# Left out\n\n| package | test | why |\n|---|---|---|\n\
        | a | [It] one | no pods |\n| a | [It] two | no pods |\n| b | [It] three | no pods |\n";

    #[test]
    fn only_what_is_listed_fails_and_all_of_it() {
        let list = LeftOut::parse(TEXT).unwrap();
        let mut outcome = Outcome::default();
        let mut fails = |name: &str| outcome.failed.insert(name.to_owned(), "x".to_owned());
        fails("[It] one");
        fails("[It] new");
        let expected = ["[It] new fails: x", "[It] two is left out and does not fail"];
        assert_eq!(list.problems("a", &outcome), expected);
    }

    #[test]
    fn a_race_may_end_either_way() {
        let list = LeftOut::parse(&TEXT.replace("three | no pods", "three | a race: of two"));
        let list = list.unwrap();
        let mut outcome = Outcome::default();
        assert!(list.problems("b", &outcome).is_empty());
        outcome.failed.insert("[It] three".to_owned(), "x".to_owned());
        assert!(list.problems("b", &outcome).is_empty());
        outcome.failed.insert("[It] three more".to_owned(), "x".to_owned());
        assert_eq!(list.problems("b", &outcome), ["[It] three more fails: x"]);
    }

    #[test]
    fn a_row_says_why() {
        assert!(LeftOut::parse(&TEXT.replace("| no pods |", "| |")).is_err());
    }
}
