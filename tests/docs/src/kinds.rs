//! `docs/reference/kinds.md`: the kinds of the API, and the annotations and labels of the box.

use std::collections::BTreeMap;

use regex::Regex;
use resources::builtin;

use crate::page::{cell, head};
use crate::source::product;

const ABOUT: &str = "\
`kubectl explain KIND` describes the fields. CustomResourceDefinitions of your own add kinds.";

/// Returns the page as Markdown text.
///
/// # Panics
/// When two built-in kinds collide.
pub fn page() -> String {
    let registry = builtin::registry().expect("the built-in kinds do not collide");
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for kind in registry.all().iter().filter(|kind| kind.served) {
        let scope = if kind.namespaced { "namespace" } else { "box" };
        let short = kind.short_names.join(", ");
        let row =
            format!("| {} | {} | {} | {short} | {scope} |\n", kind.kind, kind.version, kind.plural);
        groups.entry(kind.group.clone()).or_default().push(row);
    }
    let mut text = head("Kinds", ABOUT);
    for (group, rows) in groups {
        let title = if group.is_empty() { "core".to_owned() } else { format!("`{group}`") };
        text.push_str(&format!("\n## {title}\n\n| kind | version | plural | short | scope |\n"));
        text.push_str("|---|---|---|---|---|\n");
        text.push_str(&rows.concat());
    }
    text.push_str("\n## Annotations and labels\n\n| key | meaning |\n|---|---|\n");
    for (key, doc) in keys() {
        text.push_str(&format!("| `{key}` | {} |\n", cell(&doc)));
    }
    text
}

/// Returns the annotations and labels that are constants, with their comments.
fn keys() -> BTreeMap<String, String> {
    let named =
        Regex::new(r#"const [A-Z_]+: &str = "((?:tinbox\.dev|tinkerbell\.org)/([a-z-]+))";"#)
            .expect("a valid pattern");
    let mut keys = BTreeMap::new();
    let registry = builtin::registry().expect("the built-in kinds do not collide");
    let is_resource = |name: &str| registry.all().iter().any(|kind| kind.plural == name);
    for source in product() {
        for (number, line) in source.text.lines().enumerate() {
            let Some(found) = named.captures(line).filter(|found| !is_resource(&found[2])) else {
                continue;
            };
            let doc = source.doc_before(number);
            let entry: &mut String = keys.entry(found[1].to_owned()).or_default();
            if entry.is_empty() {
                *entry = doc;
            }
        }
    }
    keys
}
