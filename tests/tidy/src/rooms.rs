//! Size and structure of crates: lines, entries of a folder, circular imports of modules.

pub mod circles;

use std::collections::{BTreeMap, BTreeSet};

use crate::manifest::{self, Member};
use crate::source::Source;
use crate::tree::{File, Tree};

/// Maximum number of source lines of a crate, not counting tests. A larger crate must be split.
pub const CRATE_LINES_MAX: usize = 6_000;
/// Maximum entries of a source folder; a larger one gets subfolders.
pub const FOLDER_ENTRIES_MAX: usize = 12;

/// Figures of one crate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Size {
    /// Name of the crate.
    pub name: String,
    /// Lines of its sources without tests.
    pub lines: usize,
    /// Entries of its largest source folder without tests.
    pub entries: usize,
    /// First-level modules in its largest circle of imports, or 0.
    pub circle: usize,
}

/// The figures of every member of the workspace.
pub fn sizes(tree: &Tree) -> Vec<Size> {
    manifest::members(tree).0.iter().map(|member| size(tree, member)).collect()
}

fn size(tree: &Tree, member: &Member) -> Size {
    let files: Vec<&File> = sources(tree, member).collect();
    let circle = circles::largest(&files, &format!("{}/src/", member.folder));
    Size {
        name: member.name().to_owned(),
        lines: files.iter().map(|file| lines(file)).sum(),
        entries: entries(&files),
        circle: circle.len(),
    }
}

/// The product files of a member.
pub fn sources<'a>(tree: &'a Tree, member: &Member) -> impl Iterator<Item = &'a File> {
    let folder = format!("{}/src/", member.folder);
    tree.rust().filter(move |file| file.path.starts_with(&folder) && !file.is_test)
}

fn lines(file: &File) -> usize {
    let tests: usize = Source::new(file).tests.iter().map(|t| t.end() + 1 - t.start()).sum();
    file.text.lines().count() - tests
}

fn entries(files: &[&File]) -> usize {
    // A module and the folder of its parts are one entry.
    let mut folders: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for file in files {
        let mut path = file.path.trim_end_matches(".rs");
        while let Some((folder, name)) = path.rsplit_once('/') {
            let is_new = folders.entry(folder).or_default().insert(name);
            if !is_new || folder.ends_with("/src") {
                break;
            }
            path = folder;
        }
    }
    folders.values().map(BTreeSet::len).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_count_for_no_size() {
        let text = "//! A.\nfn a() {}\n#[cfg(test)]\nmod tests {\n}\n";
        let files = ["a.rs", "b.rs", "b/c.rs", "b/d.rs", "b/e.rs", "b/tests.rs"];
        let member = ("p/Cargo.toml".to_owned(), "[package]\nname = \"p\"\n".to_owned());
        let root = ("Cargo.toml".to_owned(), "[workspace]\nmembers = [\"p\"]\n".to_owned());
        let sources = files.map(|name| (format!("p/src/{name}"), text.to_owned()));
        let tree = Tree::of([root, member].into_iter().chain(sources).collect());
        let expected = Size { name: "p".to_owned(), lines: 10, entries: 3, circle: 0 };
        assert_eq!(sizes(&tree), [expected]);
    }
}
