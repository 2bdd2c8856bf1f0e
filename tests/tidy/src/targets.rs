//! Targets of a member: one binary of tests, and documentation tests only where comments have
//! examples.

use toml::Value;

use crate::Violation;
use crate::exceptions::{Exception, Exceptions};
use crate::manifest::{self, Member};
use crate::tree::{File, Tree};

/// Binaries of tests beside a member's first: manifest, binary, reason.
const FURTHER: [Exception; 2] = [
    ("tests/firmware/Cargo.toml", "contained", "needs no emulated machine, so no limit of them"),
    (
        "tests/scenarios/Cargo.toml",
        "boot_matrix",
        "racks that run beside each other under a limit of their own",
    ),
];

/// Languages of a code block that rustdoc compiles.
const COMPILED: [&str; 9] = [
    "rust",
    "should_panic",
    "no_run",
    "compile_fail",
    "edition2015",
    "edition2018",
    "edition2021",
    "edition2024",
    "standalone_crate",
];

/// A member has one test binary: each further one is linked with all dependencies of the member.
pub fn test_binaries(tree: &Tree) -> Vec<Violation> {
    test_binaries_except(tree, &FURTHER)
}

fn test_binaries_except(tree: &Tree, further: &[Exception]) -> Vec<Violation> {
    let mut exceptions = Exceptions::new(further);
    let mut violations = Vec::new();
    for member in manifest::members(tree).0 {
        let path = member.path();
        let mut binaries = binaries(tree, &member);
        binaries.retain(|name| !exceptions.excuse(&path, name));
        if binaries.len() > 1 {
            let what = format!(
                "{} binaries of tests ({}): make them modules of one",
                binaries.len(),
                binaries.join(", ")
            );
            violations.push(Violation::of(&path, what));
        }
    }
    violations.extend(exceptions.unused("the law of one binary"));
    violations
}

/// Names of a member's test binaries.
fn binaries(tree: &Tree, member: &Member) -> Vec<String> {
    let package = member.manifest.get("package");
    let finds = package.and_then(|package| package.get("autotests")).and_then(Value::as_bool);
    let mut names = Vec::new();
    if finds != Some(false) {
        let folder = format!("{}/tests/", member.folder);
        let found = tree.rust().filter_map(|file| {
            let name = file.path.strip_prefix(&folder)?;
            let name = name.strip_suffix("/main.rs").or_else(|| name.strip_suffix(".rs"))?;
            (!name.contains('/')).then(|| name.to_owned())
        });
        names.extend(found);
    }
    let declared = member.manifest.get("test").and_then(Value::as_array).into_iter().flatten();
    names.extend(declared.filter_map(|test| test.get("name")?.as_str().map(str::to_owned)));
    names.sort();
    names.dedup();
    names
}

/// A library sets `doctest = false` exactly when none of its comments has an example to compile.
pub fn doc_tests(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for member in manifest::members(tree).0 {
        let root = format!("{}/src/lib.rs", member.folder);
        if tree.file(&root).is_none() {
            continue;
        }
        let library = member.manifest.get("lib");
        let flag = library.and_then(|library| library.get("doctest")).and_then(Value::as_bool);
        let is_tested = flag != Some(false);
        let example = examples(tree, &member).next();
        match (is_tested, example) {
            (true, None) => {
                let what = "no example in a comment: [lib] doctest = false";
                violations.push(Violation::of(&member.path(), what));
            }
            (false, Some((file, line))) => {
                let what = "an example that is not compiled: strike doctest = false";
                violations.push(Violation::at(&file.path, line, what));
            }
            _ => {}
        }
    }
    violations
}

/// Places in the comments of a member's library that have code to compile.
fn examples<'a>(tree: &'a Tree, member: &Member) -> impl Iterator<Item = (&'a File, usize)> {
    let folder = format!("{}/src/", member.folder);
    let is_library = move |file: &&File| {
        let inside = file.path.strip_prefix(&folder);
        inside.is_some_and(|inside| inside != "main.rs" && !inside.starts_with("bin/"))
    };
    tree.rust().filter(is_library).flat_map(|file| {
        let mut is_open = false;
        let mut begins = move |line: &str| {
            let line = line.trim_start();
            let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
            let Some(fence) = comment.and_then(|comment| comment.trim_start().strip_prefix("```"))
            else {
                is_open &= comment.is_some();
                return false;
            };
            is_open = !is_open;
            is_open && is_compiled(fence)
        };
        let lines = file.text.lines().enumerate();
        lines.filter_map(move |(index, line)| begins(line).then_some((file, index + 1)))
    })
}

fn is_compiled(fence: &str) -> bool {
    fence.split([',', ' ']).map(str::trim).all(|word| word.is_empty() || COMPILED.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        let root = [("Cargo.toml", "[workspace]\nmembers = [\"a\"]\n")];
        let files = root.iter().chain(files);
        Tree::of(files.map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
    }

    fn said(violations: &[Violation]) -> Vec<String> {
        violations.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn binaries_are_counted() {
        let one = [("a/Cargo.toml", ""), ("a/tests/b.rs", ""), ("a/tests/c/mod.rs", "")];
        assert_eq!(test_binaries_except(&tree(&one), &[]), []);
        let two = [one.as_slice(), &[("a/tests/d/main.rs", "")]].concat();
        let expected = ["a/Cargo.toml: 2 binaries of tests (b, d): make them modules of one"];
        assert_eq!(said(&test_binaries_except(&tree(&two), &[])), expected);
        let further = [("a/Cargo.toml", "d", "why")];
        assert_eq!(test_binaries_except(&tree(&two), &further), []);
        assert_eq!(test_binaries_except(&tree(&one), &further).len(), 1);
        let declared = [
            ("a/Cargo.toml", "[package]\nautotests = false\n[[test]]\nname = \"b\"\n"),
            ("a/tests/b.rs", ""),
            ("a/tests/d.rs", ""),
        ];
        assert_eq!(test_binaries_except(&tree(&declared), &[]), []);
    }

    #[test]
    fn examples_are_compiled_where_there_are_some() {
        let without = "/// A.\n/// ```text\n/// b\n/// ```\nfn c() {}\n";
        let with = "/// A.\n/// ```\n/// b\n/// ```\nfn c() {}\n";
        let off = "[lib]\ndoctest = false\n";
        let found = |manifest: &str, text: &str| {
            said(&doc_tests(&tree(&[
                ("a/Cargo.toml", manifest),
                ("a/src/lib.rs", ""),
                ("a/src/main.rs", with),
                ("a/src/b.rs", text),
            ])))
        };
        assert_eq!(found(off, without), [""; 0]);
        assert_eq!(found("", with), [""; 0]);
        assert_eq!(found("", &with.replace("```", "```no_run").replace("b", "c")), [""; 0]);
        let expected = ["a/Cargo.toml: no example in a comment: [lib] doctest = false"];
        assert_eq!(found("", without), expected);
        let expected = ["a/src/b.rs:2: an example that is not compiled: strike doctest = false"];
        assert_eq!(found(off, with), expected);
    }
}
