//! Size and form of files, functions and lines.

use crate::Violation;
use crate::source::Source;
use crate::tree::{File, Tree};

/// Maximum lines of a file, without its tests.
pub const FILE_LINES_MAX: usize = 400;
/// Maximum lines of a function, from `fn` to its last brace.
pub const FUNCTION_LINES_MAX: usize = 70;
/// Maximum characters of a line.
pub const LINE_CHARS_MAX: usize = 100;
/// Maximum lines of a `tests` module inside the file that it tests.
pub const INNER_TESTS_LINES_MAX: usize = 80;

/// Module names that say nothing about the contents.
const EMPTY_NAMES: [&str; 6] = ["utils", "util", "common", "helpers", "helper", "misc"];
/// Extensions of files written by people, whose lines must fit a terminal.
const WRITTEN: [&str; 4] = [".rs", ".sh", ".py", ".proto"];

/// Files, functions and inner tests are no longer than they may be.
pub fn sizes(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in tree.rust() {
        let source = Source::new(file);
        let inner: Vec<usize> = source.tests.iter().map(|t| t.end() + 1 - t.start()).collect();
        let lines = file.text.lines().count() - inner.iter().sum::<usize>();
        if lines > FILE_LINES_MAX {
            let what = format!("{lines} lines, more than {FILE_LINES_MAX}: split it on nouns");
            violations.push(Violation::of(&file.path, what));
        }
        for (tests, length) in source.tests.iter().zip(inner) {
            if length > INNER_TESTS_LINES_MAX && !file.is_test {
                let module = file.path.trim_end_matches(".rs").trim_end_matches("/mod");
                let what = format!("{length} lines of tests: move them to {module}/tests.rs");
                violations.push(Violation::at(&file.path, *tests.start(), what));
            }
        }
        for function in &source.functions {
            let length = function.length();
            if length > FUNCTION_LINES_MAX {
                let name = &function.name;
                let what = format!("fn {name} has {length} lines, more than {FUNCTION_LINES_MAX}");
                violations.push(Violation::at(&file.path, *function.lines.start(), what));
            }
        }
    }
    violations
}

/// Lines are no longer than a terminal is wide.
pub fn columns(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    let written =
        |file: &&File| WRITTEN.iter().any(|end| file.path.ends_with(end)) || is_script(file);
    for file in tree.files.iter().filter(written) {
        for (number, line) in file.text.lines().enumerate() {
            let chars = line.chars().count();
            if chars > LINE_CHARS_MAX {
                let what = format!("{chars} characters, more than {LINE_CHARS_MAX}");
                violations.push(Violation::at(&file.path, number + 1, what));
            }
        }
    }
    violations
}

fn is_script(file: &File) -> bool {
    file.text.starts_with("#!/")
}

/// Every file begins with its purpose; a library of the product also with what it must never do.
pub fn heads(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in tree.rust() {
        let head: Vec<&str> =
            file.text.lines().take_while(|line| line.starts_with("//!")).collect();
        if head.is_empty() && (!file.is_test || file.is_crate_root()) {
            violations.push(Violation::at(&file.path, 1, "its first line is no //!"));
        }
        let is_library = file.path.ends_with("/src/lib.rs");
        if is_library && !head.iter().any(|line| line.to_lowercase().contains("never")) {
            let what = "its //! does not say what the crate must never do";
            violations.push(Violation::at(&file.path, 1, what));
        }
    }
    violations
}

/// No module has a name without a meaning, such as `utils`.
pub fn names(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in tree.rust() {
        for part in file.path.trim_end_matches(".rs").split('/') {
            if EMPTY_NAMES.contains(&part) {
                violations.push(Violation::of(&file.path, format!("{part} says nothing")));
            }
        }
        let source = Source::new(file);
        for name in EMPTY_NAMES {
            for line in source.lines_with(&format!("mod {name}")) {
                violations.push(Violation::at(&file.path, line, format!("{name} says nothing")));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(path: &str, text: &str) -> Tree {
        Tree::of(vec![(path.to_owned(), text.to_owned())])
    }

    fn said(violations: &[Violation]) -> Vec<String> {
        violations.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn sizes_are_kept() {
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "\n".repeat(77));
        let full = format!("{}{tests}", "\n".repeat(400));
        assert_eq!(sizes(&tree("a/src/b.rs", &full)), []);
        let expected = ["a/src/b.rs: 401 lines, more than 400: split it on nouns"];
        assert_eq!(said(&sizes(&tree("a/src/b.rs", &format!("\n{full}")))), expected);
        let tests = tests.replace("mod tests {", "mod tests {\n");
        let expected = ["a/src/b.rs:1: 81 lines of tests: move them to a/src/b/tests.rs"];
        assert_eq!(said(&sizes(&tree("a/src/b.rs", &tests))), expected);
        let long = format!("fn a() {{\n{}}}\n", "b();\n".repeat(68));
        assert_eq!(sizes(&tree("a/tests/b.rs", &long)), []);
        let longer = long.replace("fn a() {", "fn a(\n) {");
        let expected = ["a/tests/b.rs:1: fn a has 71 lines, more than 70"];
        assert_eq!(said(&sizes(&tree("a/tests/b.rs", &longer))), expected);
    }

    #[test]
    fn lines_are_counted_in_characters() {
        assert_eq!(columns(&tree("a.sh", &"é".repeat(100))), []);
        assert_eq!(columns(&tree("a.md", &"e".repeat(101))), []);
        let expected = ["run:2: 101 characters, more than 100"];
        assert_eq!(
            said(&columns(&tree("run", &format!("#!/bin/sh\n{}", "e".repeat(101))))),
            expected
        );
    }

    #[test]
    fn heads_and_names_speak() {
        assert_eq!(heads(&tree("a/src/lib.rs", "//! A.\n//!\n//! Never: b.\n")), []);
        assert_eq!(heads(&tree("a/src/lib.rs", "//! A.\n")).len(), 1);
        assert_eq!(heads(&tree("a/src/b.rs", "// A.\n")).len(), 1);
        assert_eq!(heads(&tree("a/src/b/tests.rs", "use a;\n")), []);
        assert_eq!(heads(&tree("a/tests/b.rs", "use a;\n")).len(), 1);
        assert_eq!(names(&tree("a/src/b.rs", "mod utilities;\n")), []);
        assert_eq!(names(&tree("a/src/b.rs", "pub mod common {}\n")).len(), 1);
        assert_eq!(names(&tree("a/src/helpers/b.rs", "")).len(), 1);
    }
}
