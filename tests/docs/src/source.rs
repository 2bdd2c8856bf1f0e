//! Rust sources, as far as pages quote them: doc comments of constants, structs and fields.

use std::fs;
use std::path::{Path, PathBuf};

use crate::page::root;

/// A Rust file of the product.
#[derive(Debug, Clone)]
pub struct Source {
    /// The path from the root of the tree.
    pub path: String,
    /// The text, without its inner test module.
    pub text: String,
}

/// Folders of the product.
const PRODUCT: [&str; 3] = ["appliance", "boot-services", "ui-panel"];

/// Reads every Rust file of the product that is not a test, in order of the paths.
///
/// # Panics
/// When a folder cannot be listed.
pub fn product() -> Vec<Source> {
    PRODUCT.iter().flat_map(|folder| below(folder)).collect()
}

/// Reads every Rust file below a folder that is not a test, in order of the paths.
///
/// # Panics
/// When the folder cannot be listed.
pub fn below(folder: &str) -> Vec<Source> {
    let root = root();
    let mut files = Vec::new();
    collect(&root.join(folder), &mut files);
    files.sort();
    let read = |file: PathBuf| {
        let text = fs::read_to_string(&file).expect("a source is UTF-8");
        let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned();
        let path = file.strip_prefix(&root).unwrap_or(&file).display().to_string();
        Source { path, text }
    };
    files.into_iter().map(read).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder can be listed").flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let is_test = matches!(name.as_ref(), "tests" | "tests.rs" | "golden" | "target");
        if path.is_dir() && !is_test {
            collect(&path, files);
        } else if name.ends_with(".rs") && !is_test {
            files.push(path);
        }
    }
}

impl Source {
    /// Returns the crate that the file belongs to.
    pub fn krate(&self) -> &str {
        let before = self.path.split("/src/").next().unwrap_or_default();
        before.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the doc comment that ends before a line (numbered from 0), joined into one text;
    /// attributes between comment and line are skipped.
    pub fn doc_before(&self, line: usize) -> String {
        let lines: Vec<&str> = self.text.lines().collect();
        let mut doc = Vec::new();
        for text in lines.iter().take(line).rev().map(|text| text.trim()) {
            match text.strip_prefix("///") {
                Some(text) => doc.push(text.trim()),
                None if doc.is_empty() && text.starts_with("#[") => {}
                None => break,
            }
        }
        doc.reverse();
        doc.join(" ")
    }
}

/// A field of a struct, or a variant of an enum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The name in the source.
    pub name: String,
    /// The type; empty for a variant.
    pub kind: String,
    /// The doc comment before the field, on one line.
    pub doc: String,
    /// The attributes before the field, joined.
    pub attributes: String,
}

/// Returns the fields of the struct or enum that `head` declares (`pub struct Config {`).
pub fn fields(sources: &[Source], head: &str) -> Option<Vec<Field>> {
    let source = sources.iter().find(|source| source.text.contains(head))?;
    let lines: Vec<&str> = source.text.lines().collect();
    let first = lines.iter().position(|line| *line == head)?;
    let mut fields = Vec::new();
    let mut attributes = String::new();
    for (number, line) in lines.iter().enumerate().skip(first + 1) {
        let text = line.trim();
        if *line == "}" {
            break;
        }
        if text.starts_with("#[") {
            attributes.push_str(text);
            continue;
        }
        if !line.starts_with("    ") || line.starts_with("     ") || text.starts_with("//") {
            continue;
        }
        let declared = text.strip_prefix("pub ").unwrap_or(text).trim_end_matches(',');
        let (name, kind) = declared.split_once(": ").unwrap_or((declared, ""));
        if name.chars().all(|char| char.is_alphanumeric() || char == '_') && !name.is_empty() {
            let doc = source.doc_before(number);
            let attributes = std::mem::take(&mut attributes);
            fields.push(Field { name: name.to_owned(), kind: kind.to_owned(), doc, attributes });
        }
    }
    Some(fields)
}
