//! The table of crates in the architecture page, against the floors that `tests/tidy` enforces.

use std::collections::BTreeMap;

use regex::Regex;

use crate::page::root;

/// Path of the source file with the table of floors.
const FLOORS: &str = "tests/tidy/src/floors/table.rs";
/// Number of the highest floor of the product, which the table calls `TOP`.
const TOP: &str = "5";
/// Path of the page with the table of crates.
const PAGE: &str = "docs/explanation/architecture.md";

/// Differences between the page and the floors: crates that one of them lacks or has elsewhere.
///
/// # Panics
/// A file cannot be read.
pub fn mistakes() -> Vec<String> {
    let text = |path| std::fs::read_to_string(root().join(path)).expect("the tree is complete");
    differences(&floors(&text(FLOORS)), &map(&text(PAGE)))
}

/// Crate and floor of each `place("name", floor, …)`.
fn floors(source: &str) -> BTreeMap<String, String> {
    let place = Regex::new(r#"place\(\s*"([a-z-]+)",\s*(\w+)"#).expect("a regular expression");
    let found = place.captures_iter(source).map(|found| {
        let floor = if &found[2] == "TOP" { TOP } else { &found[2] };
        (found[1].to_owned(), floor.to_owned())
    });
    found.collect()
}

/// Crate and floor of each row `| floor | crates | purpose |`.
fn map(page: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for line in page.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [floor, crates, _] = cells.as_slice() else { continue };
        if floor.parse::<u8>().is_ok() {
            let names = crates.split('`').skip(1).step_by(2);
            found.extend(names.map(|name| (name.to_owned(), (*floor).to_owned())));
        }
    }
    found
}

fn differences(floors: &BTreeMap<String, String>, map: &BTreeMap<String, String>) -> Vec<String> {
    let there = floors.iter().filter_map(|(name, floor)| match map.get(name) {
        None => Some(format!("{PAGE} lacks the crate {name} (floor {floor})")),
        Some(shown) if shown != floor => {
            Some(format!("{PAGE} shows {name} on floor {shown}; it is on {floor}"))
        }
        Some(_) => None,
    });
    let gone = map.keys().filter(|name| !floors.contains_key(*name));
    there.chain(gone.map(|name| format!("{PAGE} shows {name}, which is not a crate"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_that_moved_is_a_mistake() {
        let source = "place(\"a\", 1, &[]),\nplace(\n    \"b\",\n    TOP,\n)";
        let shown = |page: &str| differences(&floors(source), &map(page));
        assert_eq!(shown("| 1 | `a` | x |\n| 5 | `b` | y |"), [""; 0]);
        let mistakes = shown("| Floor | Crate | Purpose |\n| 2 | `a`, `c` | x |");
        assert_eq!(mistakes.len(), 3, "{mistakes:?}");
    }
}
