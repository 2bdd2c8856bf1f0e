//! The tree: every text file of the repository, read once.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::source;

/// A text file of the repository.
#[derive(Debug, Clone)]
pub struct File {
    /// Path from the root of the tree, with `/`.
    pub path: String,
    /// Content of the file.
    pub text: String,
    /// True for a Rust file of tests only: the file is in a tests folder, or its `mod` is
    /// `cfg(test)`.
    pub is_test: bool,
}

impl File {
    /// File name without the folder.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Returns true if the file has the extension `.rs`.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Returns true for the root module of a library, a program, an example, a fuzz target or a
    /// folder of tests.
    pub fn is_crate_root(&self) -> bool {
        let folders: Vec<&str> = self.path.split('/').rev().skip(1).take(2).collect();
        match folders.as_slice() {
            ["src", ..] => matches!(self.name(), "lib.rs" | "main.rs"),
            ["bin", "src"] => true,
            // A member's `tests`, not the `tests` of a module under `src`.
            ["tests", _] => !self.path.contains("/src/"),
            ["examples" | "benches" | "fuzz_targets", _] => true,
            _ => self.name() == "build.rs",
        }
    }
}

/// All text files, in order of their paths.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    /// Files sorted by path.
    pub files: Vec<File>,
}

impl Tree {
    /// Root folder of the repository.
    pub fn root() -> PathBuf {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        here.ancestors().nth(2).unwrap_or(here).to_path_buf()
    }

    /// Reads the repository without ignored files (`.gitignore`) and files that are not text.
    ///
    /// # Panics
    /// The root folder or `.gitignore` cannot be read.
    pub fn read() -> Self {
        let root = Self::root();
        let ignored = fs::read_to_string(root.join(".gitignore")).expect("the tree has .gitignore");
        let ignored: BTreeSet<PathBuf> =
            ignored.lines().map(|line| root.join(line.trim().trim_matches('/'))).collect();
        let mut files = Vec::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            // A file that is removed during the walk is not part of the tree.
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                let Ok(kind) = entry.file_type() else { continue };
                // `.git` is a folder, or in a linked working tree a file.
                if entry.file_name() == ".git" {
                    continue;
                }
                if kind.is_dir() && !ignored.contains(&path) {
                    folders.push(path);
                } else if kind.is_file()
                    && let Ok(text) = fs::read_to_string(&path)
                    && let Ok(inside) = path.strip_prefix(&root)
                {
                    files.push((inside.to_string_lossy().into_owned(), text));
                }
            }
        }
        Self::of(files)
    }

    /// Builds a tree of these files: path and text.
    pub fn of(files: Vec<(String, String)>) -> Self {
        let mut files: Vec<File> = files
            .into_iter()
            .map(|(path, text)| {
                let is_test = path.ends_with(".rs") && lies_among_tests(&path);
                File { path, text, is_test }
            })
            .collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let mut modules: Vec<String> =
            files.iter().filter(|file| file.is_rust()).flat_map(source::test_modules).collect();
        modules.sort();
        for file in files.iter_mut().filter(|file| file.is_rust()) {
            let module = file.path.trim_end_matches(".rs").trim_end_matches("/mod");
            let declared = |test: &String| {
                module
                    .strip_prefix(test.as_str())
                    .is_some_and(|r| r.is_empty() || r.starts_with('/'))
            };
            file.is_test |= modules.iter().any(declared);
        }
        Self { files }
    }

    /// Rust files of the tree.
    pub fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }

    /// The file at a path.
    pub fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }
}

fn lies_among_tests(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "benches" | "fuzz_targets"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_what_only_tests_see() {
        let tree = Tree::of(vec![
            ("a/src/lib.rs".into(), "#[cfg(test)]\nmod hostile;\nmod wire;\n".into()),
            ("a/src/hostile.rs".into(), "mod deep;\n".into()),
            ("a/src/hostile/deep.rs".into(), String::new()),
            ("a/src/hostiles.rs".into(), String::new()),
            ("a/src/wire.rs".into(), "#[cfg(not(test))]\nmod real;\n#[cfg(test)] mod x;".into()),
            ("a/src/wire/real.rs".into(), String::new()),
            ("a/src/wire/x/mod.rs".into(), String::new()),
            ("a/src/wire/tests.rs".into(), String::new()),
        ]);
        let tests: Vec<&str> =
            tree.files.iter().filter(|file| file.is_test).map(|file| file.path.as_str()).collect();
        let expected = [
            "a/src/hostile.rs",
            "a/src/hostile/deep.rs",
            "a/src/wire/tests.rs",
            "a/src/wire/x/mod.rs",
        ];
        assert_eq!(tests, expected);
    }

    #[test]
    fn knows_the_roots_of_crates() {
        let root = |path: &str| {
            File { path: path.to_owned(), text: String::new(), is_test: false }.is_crate_root()
        };
        for path in
            ["a/src/lib.rs", "a/src/main.rs", "a/src/bin/x.rs", "a/tests/y.rs", "a/build.rs"]
        {
            assert!(root(path), "{path}");
        }
        for path in ["a/src/x.rs", "a/src/x/tests/y.rs", "a/tests/rack/mod.rs", "a/src/wire/lib.rs"]
        {
            assert!(!root(path), "{path}");
        }
    }
}
