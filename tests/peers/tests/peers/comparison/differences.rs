//! The list of differences and their reasons: a table in a Markdown file.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::script::Said;

/// Maximum number of lines of a difference that the list shows.
const MAX_LINES: usize = 12;
/// Maximum number of characters in a cell.
const MAX_CELL: usize = 900;

/// Outputs of one step with the two servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Name of the script.
    pub script: String,
    /// Command of the step.
    pub step: String,
    /// Versions of kubectl, as the list writes them.
    pub versions: Vec<String>,
    /// Output with the real server.
    pub real: String,
    /// Output with the box.
    pub ours: String,
    /// Reason, written by hand.
    pub why: String,
}

/// Adds the difference of one version of kubectl. If another version has an equal difference, only
/// adds the version to that entry.
pub fn add(
    found: &mut Vec<Difference>,
    script: &str,
    step: &str,
    version: &str,
    real: &Said,
    ours: &Said,
) {
    let (real, ours) = apart(&lines(real), &lines(ours));
    let step = cell(step);
    let same = |one: &&mut Difference| {
        (&*one.script, &one.step, &one.real, &one.ours) == (script, &step, &real, &ours)
    };
    match found.iter_mut().find(same) {
        Some(one) => one.versions.push(version.to_owned()),
        None => found.push(Difference {
            script: script.to_owned(),
            step,
            versions: vec![version.to_owned()],
            real,
            ours,
            why: String::new(),
        }),
    }
}

/// Output of a step as lines.
fn lines(said: &Said) -> Vec<String> {
    let out = said.out.lines().map(str::to_owned);
    let err = said.err.lines().map(|line| format!("err: {line}"));
    let status = (!said.success).then(|| "(fails)".to_owned());
    out.chain(err).chain(status).collect()
}

/// Returns the lines from the first to the last that differ, as cells of a table.
fn apart(real: &[String], ours: &[String]) -> (String, String) {
    let same = |pair: &(&String, &String)| pair.0 == pair.1;
    let head = real.iter().zip(ours).take_while(same).count();
    let tail = real[head..].iter().rev().zip(ours[head..].iter().rev()).take_while(same).count();
    let between = |lines: &[String]| {
        let lines = &lines[head..lines.len() - tail];
        let shown = &lines[..lines.len().min(MAX_LINES)];
        let more = lines.len() - shown.len();
        let rest = (more > 0).then(|| format!("({more} more lines)"));
        cell(&shown.iter().cloned().chain(rest).collect::<Vec<_>>().join("\n"))
    };
    (between(real), between(ours))
}

/// A text as one cell of a table.
fn cell(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('|', "\\|").replace('\n', " ⏎ ");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.chars().take(MAX_CELL).collect()
}

/// The list in a file.
pub struct List<'a> {
    /// Path of the Markdown file.
    pub file: PathBuf,
    /// Every version of kubectl that rows may name, in order.
    pub versions: &'a [&'a str],
}

impl List<'_> {
    /// Compares the differences of some versions with the rows for these versions. With `UPDATE`,
    /// rewrites the list instead.
    ///
    /// # Panics
    /// A difference is not listed or has no reason, or a listed difference no longer exists.
    pub fn settle(
        &self,
        found: &[Difference],
        versions: &[&str],
        expected: impl Fn(&Difference) -> bool,
    ) {
        let text = fs::read_to_string(&self.file).unwrap();
        let (head, rows) = read(&text, self.versions);
        let mut found = found.to_vec();
        for one in &mut found {
            let same = |row: &&Difference| (&row.script, &row.step) == (&one.script, &one.step);
            if let Some(row) = rows.iter().find(same) {
                one.why.clone_from(&row.why);
            }
        }
        if golden::updates() {
            let others = rows.iter().filter(|row| !expected(row)).cloned();
            let mut all: Vec<Difference> = others.chain(found).collect();
            all.sort_by(|a, b| a.script.cmp(&b.script));
            fs::write(&self.file, write(head, &all, self.versions)).unwrap();
            return;
        }
        let rows = rows.into_iter().filter(expected).filter_map(|row| row.of(versions));
        let problems = problems(&found, rows, versions);
        let count = problems.len();
        assert!(problems.is_empty(), "{count} differences:\n{}", problems.join("\n"));
    }
}

impl Difference {
    /// The part of a row that applies to `versions`.
    fn of(mut self, versions: &[&str]) -> Option<Self> {
        self.versions.retain(|one| versions.contains(&one.as_str()));
        (!self.versions.is_empty()).then_some(self)
    }
}

/// Errors of the rows, compared with the differences of the same versions.
fn problems(
    found: &[Difference],
    rows: impl Iterator<Item = Difference>,
    versions: &[&str],
) -> Vec<String> {
    let line = |one: &Difference| row(one, versions);
    let found_by_row: BTreeMap<String, &Difference> =
        found.iter().map(|one| (line(one), one)).collect();
    let listed: Vec<String> = rows.map(|one| line(&one)).collect();
    let mut problems = Vec::new();
    for (row, one) in &found_by_row {
        if !listed.contains(row) {
            problems.push(format!("not listed: {row}"));
        } else if one.why.is_empty() {
            problems.push(format!("listed without a reason: {row}"));
        }
    }
    let gone = listed.iter().filter(|row| !found_by_row.contains_key(*row));
    problems.extend(gone.map(|row| format!("listed, but gone: {row}")));
    problems
}

const COLUMNS: &str =
    "| script | kubectl | step | real | ours | why |\n|---|---|---|---|---|---|\n";

fn read<'a>(text: &'a str, every_version: &[&str]) -> (&'a str, Vec<Difference>) {
    let (head, table) = text.split_once(COLUMNS).expect("the list has its table");
    let rows = table.lines().map(|line| {
        let cells: Vec<String> = line.split(" | ").map(str::to_owned).collect();
        let [script, versions, step, real, ours, why] = &cells[..] else {
            panic!("a row of the list has not six cells: {line}");
        };
        let versions = match versions.as_str() {
            "all" => every_version.iter().map(|one| (*one).to_owned()).collect(),
            some => some.split(", ").map(str::to_owned).collect(),
        };
        Difference {
            script: script.trim_start_matches("| ").to_owned(),
            step: step.clone(),
            versions,
            real: real.clone(),
            ours: ours.clone(),
            why: why.trim_end_matches('|').trim_end().to_owned(),
        }
    });
    (head, rows.collect())
}

fn write(head: &str, all: &[Difference], every_version: &[&str]) -> String {
    let rows: String = all.iter().map(|one| row(one, every_version) + "\n").collect();
    format!("{head}{COLUMNS}{rows}")
}

fn row(one: &Difference, every_version: &[&str]) -> String {
    let Difference { script, step, versions, real, ours, why } = one;
    let all = every_version.iter().all(|version| versions.iter().any(|one| one == version));
    let versions = if all { "all".to_owned() } else { versions.join(", ") };
    format!("| {script} | {versions} | {step} | {real} | {ours} | {why} |")
}
