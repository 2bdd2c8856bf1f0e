//! Circular imports between the first-level modules of a crate.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Source, find_words};
use crate::tree::File;

/// Modules, each with the modules that it imports.
type Imports<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// The modules of the largest circle; empty without a circle. `folder` is the crate's source folder
/// with its `/`.
pub fn largest<'a>(files: &[&'a File], folder: &str) -> Vec<&'a str> {
    let imports = imports(files, folder);
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|module| (*module, reach(&imports, module))).collect();
    let circle = |module: &&'a str| -> Vec<&'a str> {
        let back = |other: &&&str| reached.get(**other).is_some_and(|far| far.contains(module));
        reached.get(module).into_iter().flatten().filter(back).copied().collect()
    };
    imports.keys().map(circle).max_by_key(Vec::len).filter(|c| c.len() > 1).unwrap_or_default()
}

/// All modules that a module imports directly or indirectly.
fn reach<'a>(imports: &Imports<'a>, from: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&str> = imports.get(from).into_iter().flatten().copied().collect();
    while let Some(module) = open.pop() {
        if found.insert(module) {
            open.extend(imports.get(module).into_iter().flatten());
        }
    }
    found
}

fn imports<'a>(files: &[&'a File], folder: &str) -> Imports<'a> {
    let inside = |file: &&'a File| file.path.strip_prefix(folder);
    let modules: BTreeSet<&str> = files.iter().filter_map(inside).filter_map(module).collect();
    let mut found: Imports<'a> = modules.iter().map(|module| (*module, BTreeSet::new())).collect();
    for file in files {
        let Some(path) = inside(file) else { continue };
        let Some(own) = module(path) else { continue };
        let source = Source::new(file);
        let named = named(&source, path).into_iter();
        let named = named.filter_map(|name| modules.get(name.as_str()).copied());
        found.entry(own).or_default().extend(named.filter(|name| *name != own));
    }
    found
}

/// The first-level module of a file; a crate root belongs to none.
fn module(path: &str) -> Option<&str> {
    let first = path.split('/').next()?;
    let name = first.trim_end_matches(".rs");
    (!matches!(first, "lib.rs" | "main.rs" | "bin")).then_some(name)
}

/// Names after `crate::`, and after as many `super::` as lead to the crate's root.
fn named(source: &Source<'_>, path: &str) -> Vec<String> {
    let depth = path.trim_end_matches("/mod.rs").split('/').count();
    let up = "super::".repeat(depth);
    let mut found = Vec::new();
    for root in ["crate::", up.as_str()] {
        for at in find_words(&source.code, root) {
            if !source.is_test(source.line(at)) {
                found.extend(first_names(&source.code[at + root.len()..]));
            }
        }
    }
    found
}

/// The first names of an import: one name, or the names at the first level of a group.
fn first_names(rest: &str) -> Vec<String> {
    let word = |text: &str| -> String {
        let text = text.trim_start();
        text.chars().take_while(|char| char.is_alphanumeric() || *char == '_').collect()
    };
    let Some(group) = rest.strip_prefix('{') else { return vec![word(rest)] };
    let (mut depth, mut start, mut names) = (0, 0, Vec::new());
    for (at, char) in group.char_indices() {
        match char {
            '{' => depth += 1,
            '}' if depth == 0 => {
                names.push(word(&group[start..at]));
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                names.push(word(&group[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    fn circle(files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter().map(|(name, text)| (format!("p/src/{name}"), (*text).to_owned()));
        let tree = Tree::of(files.collect());
        let files: Vec<&File> = tree.files.iter().collect();
        largest(&files, "p/src/").into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn modules_that_import_each_other_are_a_circle() {
        let a = ("a.rs", "use crate::{b::{C, d}, e};");
        assert_eq!(circle(&[a, ("b.rs", ""), ("e.rs", "")]), [""; 0]);
        assert_eq!(circle(&[a, ("b/d.rs", "use super::super::e;"), ("e.rs", "")]), [""; 0]);
        assert_eq!(
            circle(&[a, ("b.rs", "use super::e;"), ("e.rs", "fn f(a: crate::a::A) {}")]),
            ["a", "b", "e"]
        );
    }

    #[test]
    fn a_module_and_its_own_parts_are_none() {
        assert_eq!(circle(&[("a.rs", "use self::b::C;"), ("a/b.rs", "use super::D;")]), [""; 0]);
        let test = "#[cfg(test)]\nmod tests {\n use crate::a::A;\n}\n";
        assert_eq!(circle(&[("a.rs", "use crate::b;"), ("b.rs", test)]), [""; 0]);
    }
}
