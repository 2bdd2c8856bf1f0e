//! Shell scripts stop at their first error. No file depends on the author's machine, or refers to a
//! text outside of the tree.

use std::path::{Component, Path};

use crate::Violation;
use crate::tree::{File, Tree};

/// Scripts that must continue after an error, with reasons.
const GO_ON: [(&str, &str); 2] = [
    ("image/os/tiny/init", "process 1: its end would be a kernel panic, so it opens a shell"),
    ("image/os/tiny/udhcpc.script", "reads what udhcpc may or may not have set"),
];
/// First folders of a path that any machine may have.
const EVERYWHERE: [&str; 20] = [
    "bin", "boot", "dev", "etc", "home", "lib", "lib64", "media", "mnt", "nix", "opt", "proc",
    "root", "run", "sbin", "srv", "sys", "tmp", "usr", "var",
];

/// Every script contains `set -eu`, alone or with more options.
pub fn careful(tree: &Tree) -> Vec<Violation> {
    careful_except(tree, &GO_ON)
}

fn careful_except(tree: &Tree, go_on: &[(&str, &str)]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in tree.files.iter().filter(|file| is_shell(file)) {
        let is_careful = file.text.lines().any(|line| line.starts_with("set -eu"));
        let may_go_on = go_on.iter().any(|(path, _)| *path == file.path);
        if !is_careful && !may_go_on {
            violations.push(Violation::of(&file.path, "a script without set -eu"));
        }
        if is_careful && may_go_on {
            violations.push(Violation::of(&file.path, "it is careful: strike it from tests/tidy"));
        }
    }
    for (path, _) in go_on.iter().filter(|(path, _)| tree.file(path).is_none()) {
        violations.push(Violation::of(path, "it is gone: strike it from tests/tidy"));
    }
    violations
}

fn is_shell(file: &File) -> bool {
    let first = file.text.lines().next().unwrap_or_default();
    let interpreter = first.strip_prefix("#!").unwrap_or_default().split([' ', '/']);
    // A file without an interpreter is sourced, and inherits its caller's settings.
    interpreter.into_iter().any(|word| matches!(word, "sh" | "bash"))
}

/// No file contains the path of this checkout or of its builder's tools.
pub fn portable(tree: &Tree, checkout: &Path, tools: &[&Path]) -> Vec<Violation> {
    let mut folders: Vec<String> =
        std::iter::once(&checkout).chain(tools).map(|path| path.display().to_string()).collect();
    if let Some(Component::Normal(first)) = checkout.components().nth(1)
        && !EVERYWHERE.iter().any(|folder| first == *folder)
    {
        folders.push(format!("/{}/", first.display()));
    }
    let mut violations = Vec::new();
    for file in &tree.files {
        for (number, line) in file.text.lines().enumerate() {
            for folder in folders.iter().filter(|folder| names(line, folder)) {
                let what = format!("{folder} is a folder of one machine");
                violations.push(Violation::at(&file.path, number + 1, what));
            }
        }
    }
    violations
}

/// A text that a comment, a script or another text refers to is in the tree.
pub fn documents(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in &tree.files {
        for (number, line) in file.text.lines().enumerate() {
            if file.is_rust() && !line.trim_start().starts_with("//") {
                continue;
            }
            for name in documents_named(line) {
                let is_there = tree.files.iter().any(|file| {
                    file.path.strip_suffix(name).is_some_and(|r| r.is_empty() || r.ends_with('/'))
                });
                if !is_there {
                    let what = format!("{name} is not in the tree");
                    violations.push(Violation::at(&file.path, number + 1, what));
                }
            }
        }
    }
    violations
}

fn documents_named(line: &str) -> impl Iterator<Item = &str> {
    let is_path = |char: char| char.is_alphanumeric() || "/._-:".contains(char);
    line.split(move |char| !is_path(char))
        .map(|word| {
            word.trim_end_matches(['.', ':']).trim_start_matches("../").trim_start_matches("./")
        })
        .filter(|word| word.len() > 3 && word.ends_with(".md") && !word.contains(':'))
}

/// Only the beginning of a path counts, not a part of a longer one.
fn names(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|char| char.is_alphanumeric() || "/._-})>:$*".contains(char))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(path: &str, text: &str) -> Tree {
        Tree::of(vec![(path.to_owned(), text.to_owned())])
    }

    #[test]
    fn scripts_stop_at_a_mistake() {
        for text in ["#!/bin/sh\nset -eu\n", "# Sourced.\n", "#!/bin/bash\nset -euo pipefail\n"] {
            assert_eq!(careful_except(&tree("a.sh", text), &[]), [], "{text}");
        }
        assert_eq!(careful_except(&tree("a.py", "#!/usr/bin/env python3\n"), &[]), []);
        assert_eq!(careful_except(&tree("a", "#!/usr/bin/env bash\nb\n"), &[]).len(), 1);
        assert_eq!(careful_except(&tree("a.sh", "#!/bin/sh\nb\n"), &[]).len(), 1);
        assert_eq!(careful_except(&tree("a", "#!/bin/busybox sh\n"), &[("a", "why")]), []);
        assert_eq!(careful_except(&tree("b", ""), &[("a", "why")]).len(), 1);
    }

    #[test]
    fn only_texts_of_the_tree_are_named() {
        let files = [
            ("docs/design.md", "See http://b.example/a.md.\n"),
            ("src/a.rs", "//! As docs/design.md says; see other.md.\nlet a = \"c.md\";\n"),
            ("run.sh", "# ./docs/design.md: design.md, ../docs/design.md, sign.md\n"),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
        let found: Vec<String> =
            documents(&Tree::of(files.to_vec())).iter().map(ToString::to_string).collect();
        let expected =
            ["run.sh:1: sign.md is not in the tree", "src/a.rs:1: other.md is not in the tree"];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_path_of_one_machine_is_found() {
        let checkout = Path::new("/build77/box");
        let tools = Path::new("/home/anna/.cargo");
        let found = |text: &str| portable(&tree("a.md", text), checkout, &[tools]).len();
        assert_eq!(found("cd /build77/other"), 1);
        assert_eq!(found("see /home/anna/.cargo/bin"), 1);
        assert_eq!(found("$here/build77/x and ~/.cargo and /home/debian"), 0);
        let home = Path::new("/home/anna/box");
        assert_eq!(portable(&tree("a.md", "ls /home/debian"), home, &[]), []);
        assert_eq!(portable(&tree("a.md", "ls /home/anna/box"), home, &[]).len(), 1);
    }
}
