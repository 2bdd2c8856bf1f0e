//! Table of the acceptance rows: the requirements of `rows.toml`, and the result that a run shows
//! for each.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::{Run, Verdict};

/// First lines of the page.
const HEAD: &str = "# Acceptance

Written by `make test` from `tests/report/rows.toml` and the results of the named tests; do not
edit. A row fails if one of its tests failed. A row passes if its tests ran and passed and its last
cell is empty. Every other row is not yet shown; its tests, if any, show a part.
";

/// All rows, by section.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Acceptance {
    /// The sections in the order of the page.
    #[serde(rename = "section")]
    pub sections: Vec<Section>,
}

/// Rows of one area.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Section {
    /// Heading on the page.
    pub title: String,
    /// The rows in the order of the page.
    #[serde(rename = "row")]
    pub rows: Vec<Row>,
}

/// A requirement and the tests that show it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Letter of the section and number: `A01`.
    pub id: String,
    /// One sentence, shown on the page.
    pub requirement: String,
    /// Names of the tests that show the requirement or a part of it, as [`crate::Case::id`] forms
    /// them.
    #[serde(default)]
    pub tests: Vec<String>,
    /// The parts that the tests do not show; empty if they show everything.
    #[serde(default)]
    pub missing: String,
}

/// Result of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All tests ran and passed, and no part is missing.
    Pass,
    /// A test failed at each of its attempts.
    Fail,
    /// A part is missing, a test did not run, or no test is named.
    NotYet,
}

impl Outcome {
    fn text(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::NotYet => "not yet",
        }
    }
}

impl Acceptance {
    /// Reads `rows.toml`.
    ///
    /// # Errors
    /// The text does not have the form of [`Acceptance`], two rows have the same id, or a row
    /// without tests lists missing parts.
    pub fn read(text: &str) -> Result<Self> {
        let read: Self = toml::from_str(text).context("the rows cannot be read")?;
        let mut ids = BTreeSet::new();
        for row in read.rows() {
            let id = &row.id;
            ensure!(ids.insert(id), "{id} has two rows");
            let is_shown = !row.tests.is_empty() || row.missing.is_empty();
            ensure!(is_shown, "{id} has no test: leave out `missing`");
        }
        Ok(read)
    }

    /// The rows of all sections.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.sections.iter().flat_map(|section| &section.rows)
    }

    /// Named tests that did not run, each with its row's id.
    pub fn absent(&self, run: &Run) -> Vec<(&str, &str)> {
        let verdicts = verdicts(run);
        let named = self.rows().flat_map(|row| row.tests.iter().map(|it| (&*row.id, &**it)));
        named.filter(|(_, test)| !verdicts.contains_key(*test)).collect()
    }

    /// The page with the result of each row.
    pub fn page(&self, run: &Run) -> String {
        let verdicts = verdicts(run);
        let count = |outcome| self.rows().filter(|row| row.outcome(&verdicts) == outcome).count();
        let counts = [Outcome::Pass, Outcome::Fail, Outcome::NotYet]
            .map(|it| format!("{} {}", count(it), it.text()));
        let mut page = format!("{HEAD}\n{} rows: {}.\n", self.rows().count(), counts.join(", "));
        for section in &self.sections {
            let head =
                "| row | requirement | result | tests | not shown |\n|---|---|---|---|---|\n";
            let _ = write!(page, "\n## {}\n\n{head}", section.title);
            page.extend(section.rows.iter().map(|row| row.line(&verdicts)));
        }
        page
    }
}

impl Row {
    fn outcome(&self, verdicts: &BTreeMap<String, &Verdict>) -> Outcome {
        let ends: Vec<_> = self.tests.iter().map(|test| verdicts.get(test).copied()).collect();
        if ends.contains(&Some(&Verdict::Failed)) {
            Outcome::Fail
        } else if ends.is_empty() || ends.contains(&None) || !self.missing.is_empty() {
            Outcome::NotYet
        } else {
            Outcome::Pass
        }
    }

    fn line(&self, verdicts: &BTreeMap<String, &Verdict>) -> String {
        let tests: Vec<String> = self.tests.iter().map(|test| format!("`{test}`")).collect();
        let cells = [
            &self.id,
            &self.requirement,
            self.outcome(verdicts).text(),
            &tests.join(", "),
            &self.missing,
        ];
        cells.iter().fold(String::new(), |line, it| line + "| " + &it.replace('|', "\\|") + " ")
            + "|\n"
    }
}

fn verdicts(run: &Run) -> BTreeMap<String, &Verdict> {
    run.cases.iter().map(|case| (case.id(), &case.verdict)).collect()
}

#[cfg(test)]
mod tests;
