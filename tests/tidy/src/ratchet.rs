//! Ratchets: figures of the tree that may fall and never rise.
//!
//! `ratchets.toml` beside this crate holds a table for each figure, and in it the crates that are
//! above the figure's limit. A crate without an entry keeps the limit.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::Violation;
use crate::language::RULES;
use crate::manifest;
use crate::rooms::{self, CRATE_LINES_MAX, FOLDER_ENTRIES_MAX};
use crate::source::Source;
use crate::tree::Tree;

/// Path of the file with the figures, from the root of the tree.
pub const FILE: &str = "tests/tidy/ratchets.toml";
/// Percentage by which a figure may be below its entry before the entry must be lowered.
const SLACK_PERCENT: usize = 10;
/// Maximum number of listed places of a breach.
const LISTED: usize = 20;

/// Figures by name, then by crate.
pub type Figures = BTreeMap<String, BTreeMap<String, usize>>;

/// One figure of one crate.
struct Measure {
    figure: &'static str,
    krate: String,
    value: usize,
    limit: usize,
    cure: String,
}

fn measures(tree: &Tree) -> Vec<Measure> {
    let mut found = Vec::new();
    for size in rooms::sizes(tree) {
        let mut add = |figure, value, limit, cure: &str| {
            let (krate, cure) = (size.name.clone(), cure.to_owned());
            found.push(Measure { figure, krate, value, limit, cure });
        };
        add("crate-lines", size.lines, CRATE_LINES_MAX, "split the crate");
        add("folder-entries", size.entries, FOLDER_ENTRIES_MAX, "give the folder folders");
        add("circle", size.circle, 0, "let its first-level modules import one way");
    }
    for member in &manifest::members(tree).0 {
        let folder = format!("{}/", member.folder);
        let files = tree.rust().filter(|file| file.path.starts_with(&folder));
        let sources: Vec<Source<'_>> = files.map(Source::new).collect();
        for rule in RULES {
            let lines = |source: &Source<'_>| {
                let path = source.file.path.clone();
                rule.lines(source).into_iter().map(move |line| format!("{path}:{line}"))
            };
            let places: Vec<String> = sources.iter().flat_map(lines).collect();
            let listed = places.iter().take(LISTED).cloned().collect::<Vec<_>>().join("\n    ");
            found.push(Measure {
                figure: rule.name,
                krate: member.name().to_owned(),
                value: places.len(),
                limit: 0,
                cure: format!("{}; the first places:\n    {listed}", rule.cure),
            });
        }
    }
    found
}

/// The entries that the tree needs today: figures above their limits.
pub fn measured(tree: &Tree) -> Figures {
    let mut figures = Figures::new();
    for measure in measures(tree).into_iter().filter(|measure| measure.value > measure.limit) {
        figures.entry(measure.figure.to_owned()).or_default().insert(measure.krate, measure.value);
    }
    figures
}

/// No figure is above its entry, and no entry is far above its figure.
pub fn ratchets(tree: &Tree) -> Vec<Violation> {
    let recorded = match recorded(tree) {
        Ok(recorded) => recorded,
        Err(error) => return vec![Violation::of(FILE, error)],
    };
    let mut violations = Vec::new();
    let mut stale = recorded.clone();
    for Measure { figure, krate, value, limit, cure } in measures(tree) {
        let entry = recorded.get(figure).and_then(|crates| crates.get(&krate)).copied();
        if let Some(crates) = stale.get_mut(figure) {
            crates.remove(&krate);
        }
        let allowed = entry.unwrap_or(limit);
        if value > allowed {
            let what = format!("{figure} of {krate} is {value}, more than {allowed}: {cure}");
            violations.push(Violation::of(FILE, what));
        } else if entry
            .is_some_and(|entry| value <= limit || value * 100 < entry * (100 - SLACK_PERCENT))
        {
            let what = format!(
                "{figure} of {krate} fell from {allowed} to {value}: lower its entry (LOWER=1)"
            );
            violations.push(Violation::of(FILE, what));
        }
    }
    for (figure, crates) in stale {
        for krate in crates.into_keys() {
            violations.push(Violation::of(FILE, format!("{figure} of {krate} is not measured")));
        }
    }
    violations
}

/// The entries of the file.
///
/// # Errors
/// The file is not TOML, or an entry is not a number.
pub fn recorded(tree: &Tree) -> Result<Figures, String> {
    let text = tree.file(FILE).map(|file| file.text.as_str()).unwrap_or_default();
    let table: toml::Table = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut figures = Figures::new();
    for (figure, crates) in table {
        let crates = crates.as_table().ok_or_else(|| format!("{figure} is not a table"))?;
        for (krate, value) in crates {
            let value = value.as_integer().and_then(|value| usize::try_from(value).ok());
            let value = value.ok_or_else(|| format!("{figure}.{krate} is not a count"))?;
            figures.entry(figure.clone()).or_default().insert(krate.clone(), value);
        }
    }
    Ok(figures)
}

/// The file's text with each entry lowered to its figure, but never raised. A crate without an
/// entry gets none.
pub fn lowered(recorded: &Figures, measured: &Figures) -> String {
    let mut text = String::from("# Figures that may only fall: see src/ratchet.rs.\n");
    for (figure, crates) in recorded {
        let now = measured.get(figure);
        let now = |krate: &String| now.and_then(|crates| crates.get(krate)).copied();
        let kept: Vec<(&String, usize)> = crates
            .iter()
            .filter_map(|(krate, entry)| Some((krate, now(krate)?.min(*entry))))
            .collect();
        if !kept.is_empty() {
            let total: usize = kept.iter().map(|(_, value)| value).sum();
            let _ = writeln!(text, "\n# All: {total}.\n[{figure}]");
        }
        for (krate, value) in kept {
            let _ = writeln!(text, "{krate} = {value}");
        }
    }
    text
}

#[cfg(test)]
mod tests;
