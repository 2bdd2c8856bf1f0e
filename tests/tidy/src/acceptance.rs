//! Acceptance rows: each test that a row names exists, in the crate and the module of its name.

use toml::{Table, Value};

use crate::Violation;
use crate::manifest::{self, Member};
use crate::tree::Tree;

/// The rows and the names of their tests.
const ROWS: &str = "tests/report/rows.toml";

/// Each test that a row names exists.
pub fn rows(tree: &Tree) -> Vec<Violation> {
    let Some(file) = tree.file(ROWS) else { return Vec::new() };
    let Ok(table) = toml::from_str::<Table>(&file.text) else {
        return vec![Violation::of(ROWS, "the file is not valid TOML")];
    };
    let members = manifest::members(tree).0;
    let mut violations = Vec::new();
    for row in tables(table.get("section")).flat_map(|section| tables(section.get("row"))) {
        let id = row.get("id").and_then(Value::as_str).unwrap_or_default();
        let tests = row.get("tests").and_then(Value::as_array).into_iter().flatten();
        for test in tests.filter_map(Value::as_str) {
            if !exists(tree, &members, test) {
                let line = file.text.lines().position(|line| line.contains(test));
                let what = format!("{id}: there is no test {test}");
                violations.push(Violation::at(ROWS, line.map_or(0, |index| index + 1), what));
            }
        }
    }
    violations
}

fn tables(value: Option<&Value>) -> impl Iterator<Item = &Table> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_table)
}

/// Looks for a test by the name that cargo-nextest prints, with a slash before its path: `dhcp/…`
/// is in the crate's own sources, `dhcp::dhcp/…` in `tests/dhcp`.
fn exists(tree: &Tree, members: &[Member], name: &str) -> bool {
    let Some((suite, path)) = name.split_once('/') else { return false };
    let (package, target) = suite.split_once("::").unwrap_or((suite, ""));
    let Some(member) = members.iter().find(|it| it.name() == package) else { return false };
    let folder = match target {
        "" => format!("{}/src", member.folder),
        target => format!("{}/tests/{target}", member.folder),
    };
    tree.rust().any(|file| {
        let inside = file.path.strip_prefix(&folder).and_then(|path| path.strip_suffix(".rs"));
        inside.and_then(|inside| rest_of(path, inside)).is_some_and(|rest| {
            let (modules, function) = rest.split_at(rest.len() - 1);
            let is_there = |name: &&str| file.text.contains(&format!("mod {name} {{"));
            modules.iter().all(is_there) && has_test(&file.text, function[0], modules.len())
        })
    })
}

/// Parts of a test's path that are below its file's module; `None` if the path leads elsewhere.
fn rest_of<'a>(path: &'a str, file: &str) -> Option<Vec<&'a str>> {
    let mut parts = path.split("::");
    for module in file.split('/').filter(|name| !matches!(*name, "" | "lib" | "main")) {
        parts.next().filter(|part| *part == module)?;
    }
    let rest: Vec<&str> = parts.collect();
    (!rest.is_empty()).then_some(rest)
}

/// Returns true if the text has a function of this name under an attribute of tests, in this depth
/// of modules.
fn has_test(text: &str, function: &str, depth: usize) -> bool {
    let indent = " ".repeat(4 * depth);
    let mut is_test = false;
    text.lines().filter_map(|line| line.strip_prefix(&indent)).any(|line| {
        let line = line.strip_prefix("async ").unwrap_or(line);
        let name = line.strip_prefix("fn ").and_then(|rest| rest.strip_prefix(function));
        let found = is_test && name.is_some_and(|rest| rest.starts_with('('));
        is_test = ["#[test]", "#[tokio::test"].iter().any(|start| line.starts_with(start))
            || (is_test && line.starts_with("#["));
        found
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(test: &str) -> usize {
        let text = format!("[[section]]\n[[section.row]]\nid = \"A01\"\ntests = [\"{test}\"]\n");
        let files = [
            (ROWS, &*text),
            ("Cargo.toml", "[workspace]\nmembers = [\"services/*\"]\n"),
            ("services/dhcp/Cargo.toml", "[package]\nname = \"dhcp\"\n"),
            ("services/dhcp/src/lib.rs", "#[test]\n#[expect(x)]\nfn root() {}\nfn none() {}\n"),
            ("services/dhcp/src/v4.rs", "mod tests {\n    #[test]\n    fn lease() {}\n}\n"),
            ("services/dhcp/src/v4/pool.rs", "#[tokio::test]\nasync fn full() {}\n"),
            ("services/dhcp/tests/wire/main.rs", "#[test]\nfn whole() {}\n"),
            ("services/dhcp/tests/wire/relay.rs", "#[test]\nfn far() {}\n"),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
        rows(&Tree::of(files.to_vec())).len()
    }

    #[test]
    fn a_named_test_exists_in_its_crate_and_module() {
        let good = "dhcp/root dhcp/v4::tests::lease dhcp/v4::pool::full dhcp::wire/whole \
                    dhcp::wire/relay::far";
        let bad = "root dhcp/none dhcp/lease dhcp/v4::lease dhcp/v4::pool::tests::full dhcp/far \
                   dhcp::wire/far dhcp::air/whole netboot/root";
        for (tests, violations) in [(good, 0), (bad, 1)] {
            for test in tests.split(' ') {
                assert_eq!(found(test), violations, "{test}");
            }
        }
    }
}
