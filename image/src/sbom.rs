//! List of an image's components as CycloneDX 1.6, from the lines of `components.sh`.
//! A line is `KIND NAME VERSION LICENCE`, separated by tabs. The kind is `cargo`, `deb` or
//! `generic`; the license may be empty.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use crate::{Arch, Error};

/// Kinds of components, as in a package URL.
const KINDS: [&str; 3] = ["cargo", "deb", "generic"];

/// Returns the document for `version` of the box, from the lines of `components`, read from `path`.
///
/// # Errors
/// [`Error::Components`] with the invalid line.
pub fn document(version: &str, arch: Arch, components: &str, path: &Path) -> Result<String, Error> {
    let mut seen = BTreeSet::new();
    for (at, line) in components.lines().enumerate() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [kind, name, version, licence] = fields[..] else {
            let why = format!("line {} has {} fields, not 4", at + 1, fields.len());
            return Err(Error::Components { path: path.to_owned(), why });
        };
        if !KINDS.contains(&kind) || name.is_empty() || version.is_empty() {
            let why = format!("line {}: {line:?} names no kind, name or version", at + 1);
            return Err(Error::Components { path: path.to_owned(), why });
        }
        seen.insert((kind, name, version, licence));
    }
    if seen.is_empty() {
        let why = "it is empty".to_owned();
        return Err(Error::Components { path: path.to_owned(), why });
    }
    let listed: Vec<Value> = seen.into_iter().map(component).collect();
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": { "component": {
            "type": "firmware",
            "name": "tinbox",
            "version": version,
            "purl": format!("pkg:generic/tinbox@{}?arch={arch}", escape(version)),
            "licenses": [{ "expression": "Apache-2.0" }],
        }},
        "components": listed,
    });
    Ok(format!("{document:#}\n"))
}

fn component((kind, name, version, licence): (&str, &str, &str, &str)) -> Value {
    let place = if kind == "deb" { "debian/" } else { "" };
    let purl = format!("pkg:{kind}/{place}{name}@{}", escape(version));
    let mut component = json!({
        "type": if kind == "cargo" { "library" } else { "application" },
        "name": name, "version": version, "purl": purl, "bom-ref": purl,
    });
    if !licence.is_empty() {
        // Older manifests separate alternative licenses by a slash.
        let expression = licence.replace('/', " OR ");
        component["licenses"] = json!([{ "expression": expression }]);
    }
    component
}

/// Encodes a version for a package URL.
fn escape(version: &str) -> String {
    let plain = |char: char| char.is_ascii_alphanumeric() || "._-~".contains(char);
    let escape = |char| if plain(char) { String::from(char) } else { encoded(char) };
    version.chars().map(escape).collect()
}

fn encoded(char: char) -> String {
    char.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_component_is_listed_once_with_its_licence() {
        let lines = "cargo\tredb\t4.0.1\tMIT OR Apache-2.0\ndeb\tgrub2\t2.06-13+deb12u2\t\n\
                     cargo\tredb\t4.0.1\tMIT OR Apache-2.0\ncargo\tlog\t0.4\tMIT/Apache-2.0\n";
        let document = document("1.2.3", Arch::X86_64, lines, Path::new("list")).unwrap();
        let read: Value = serde_json::from_str(&document).unwrap();
        let listed = read["components"].as_array().unwrap();
        let purls: Vec<&str> = listed.iter().map(|it| it["purl"].as_str().unwrap()).collect();
        let expected =
            ["pkg:cargo/log@0.4", "pkg:cargo/redb@4.0.1", "pkg:deb/debian/grub2@2.06-13%2Bdeb12u2"];
        assert_eq!(purls, expected);
        assert_eq!(listed[0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(listed[2]["licenses"], Value::Null);
    }

    #[test]
    fn a_line_that_says_nothing_is_refused() {
        let wrong =
            |lines| document("1", Arch::X86_64, lines, Path::new("list")).unwrap_err().to_string();
        assert!(wrong("").ends_with("it is empty"));
        assert!(wrong("cargo\ta\t1\tMIT\ncargo\ta\n").ends_with("line 2 has 2 fields, not 4"));
        assert!(wrong("npm\ta\t1\tMIT\n").contains("line 1"));
    }
}
