//! Pages: the files, and the comparison of a generated one.

use std::fs;
use std::path::{Path, PathBuf};

/// A page of the documents.
#[derive(Debug, Clone)]
pub struct Page {
    /// The path from the root of the tree.
    pub path: String,
    /// The content of the file, as Markdown.
    pub text: String,
}

/// Returns the root of the tree.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// Pages in the root that are checked like those in `docs/`.
const IN_ROOT: [&str; 4] = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"];

/// Reads the README, the other pages of the root, and everything in `docs/`.
///
/// # Panics
/// When a page cannot be read.
pub fn all() -> Vec<Page> {
    let root = root();
    let mut files: Vec<PathBuf> = IN_ROOT.iter().map(|name| root.join(name)).collect();
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("docs/ can be listed").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
    }
    files.sort();
    let read = |file: PathBuf| {
        let text = fs::read_to_string(&file).expect("a page is UTF-8");
        let path = file.strip_prefix(&root).unwrap_or(&file).display().to_string();
        Page { path, text }
    };
    files.into_iter().map(read).collect()
}

/// Returns the first lines of a generated page.
pub fn head(title: &str, about: &str) -> String {
    format!("# {title}\n\nPrinted from the code by `tests/docs`; do not edit. {about}\n")
}

/// Returns a cell of a table, on one line and without a bar.
pub fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
