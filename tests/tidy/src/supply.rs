//! Permitted sources of the product's crates. The rules are in `deny.toml`, for cargo-deny and for
//! the laws here, which need only cargo.

pub mod licence;

use std::collections::BTreeMap;

use toml::{Table, Value};

use crate::Violation;
use crate::manifest;
use crate::tree::Tree;

/// Source of every external crate, as the lock file writes it.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// The rules of `deny.toml`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Licences, by their SPDX names.
    pub licences: Vec<String>,
    /// Crates that must not be used.
    pub banned: Vec<String>,
    /// Older versions that are accepted beside a newer one for now: `name@version`.
    pub doubled: Vec<String>,
    /// Crates with an accepted published vulnerability.
    pub faulty: Vec<String>,
}

impl Rules {
    /// Reads `deny.toml`.
    ///
    /// # Errors
    /// The part that is missing or malformed.
    pub fn read(text: &str) -> Result<Self, String> {
        let deny: Table = toml::from_str(text).map_err(|error| error.to_string())?;
        let list = |section: &str, key: &str| -> Result<Vec<String>, String> {
            let entries = deny.get(section).and_then(|section| section.get(key));
            let entries = entries.and_then(Value::as_array);
            let entries = entries.ok_or_else(|| format!("[{section}] has no {key}"))?;
            let name = |entry: &Value| {
                entry.as_str().or_else(|| entry.get("crate")?.as_str()).map(str::to_owned)
            };
            Ok(entries.iter().filter_map(name).collect())
        };
        Ok(Self {
            licences: list("licenses", "allow")?,
            banned: list("bans", "deny")?,
            doubled: list("bans", "skip")?,
            faulty: faulty(&deny)?,
        })
    }
}

/// Crates of `[advisories]`: the reason of each accepted advisory begins with the crate's name.
fn faulty(deny: &Table) -> Result<Vec<String>, String> {
    let advisories = deny.get("advisories").ok_or("there is no [advisories]")?;
    if advisories.get("yanked").and_then(Value::as_str) != Some("deny") {
        return Err("[advisories] bears crates that were taken back".to_owned());
    }
    let entries = advisories.get("ignore").and_then(Value::as_array);
    let faulty = entries.into_iter().flatten().map(|entry| {
        let reason = entry.get("reason").and_then(Value::as_str).unwrap_or_default();
        let (name, why) = reason.split_once(": ").unwrap_or_default();
        match name.is_empty() || why.is_empty() {
            true => Err(format!("{entry} has no reason \"CRATE: why it is borne\"")),
            false => Ok(name.to_owned()),
        }
    });
    faulty.collect()
}

/// A crate that is compiled for the product or its tests.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Built {
    /// Name of the crate.
    pub name: String,
    /// Version without the leading `v`.
    pub version: String,
    /// SPDX expression of its licenses.
    pub licence: String,
}

impl Built {
    /// Format for `cargo tree --format`, without a prefix.
    pub const FORMAT: &'static str = "{p}|{l}";

    /// Reads the output of `cargo tree`.
    pub fn read(answer: &str) -> Vec<Self> {
        let one = |line: &str| {
            let (package, licence) = line.trim_end_matches(" (*)").split_once('|')?;
            let mut words = package.split(' ');
            let name = words.next()?.to_owned();
            let version = words.next()?.trim_start_matches('v').to_owned();
            Some(Self { name, version, licence: licence.to_owned() })
        };
        let mut found: Vec<Self> = answer.lines().filter_map(one).collect();
        found.sort();
        found.dedup();
        found
    }
}

/// Checks that no crate is banned and none has a license that is not allowed. Two versions of a
/// crate need an entry; an entry without two versions is dead.
pub fn crates(rules: &Rules, built: &[Built]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for Built { name, version, licence } in built {
        versions.entry(name).or_default().push(version);
        if rules.banned.contains(name) {
            violations.push(Violation::of("Cargo.lock", format!("{name} {version} is banned")));
        }
        if let Err(reason) = licence::check(licence, &rules.licences) {
            let what = format!("the licence of {name} {version}: {reason}");
            violations.push(Violation::of("Cargo.lock", what));
        }
    }
    for entry in &rules.doubled {
        let is_used = versions.iter().any(|(name, versions)| {
            let list = std::slice::from_ref(entry);
            versions.len() > 1 && versions.iter().any(|version| is_borne(list, name, version))
        });
        if !is_used {
            let what = format!("{entry} is not doubled any more: strike it from skip");
            violations.push(Violation::of("deny.toml", what));
        }
    }
    for name in rules.faulty.iter().filter(|name| !versions.contains_key(name.as_str())) {
        let what = format!("{name} is not used any more: strike its fault from ignore");
        violations.push(Violation::of("deny.toml", what));
    }
    for (name, mut versions) in versions {
        versions.retain(|version| !is_borne(&rules.doubled, name, version));
        if versions.len() > 1 {
            let what = format!("{name} in versions {}: one is enough", versions.join(" and "));
            violations.push(Violation::of("Cargo.lock", what));
        }
    }
    violations
}

/// Checks an accepted version: `base64@0.22` includes 0.22.1 and all other 0.22 versions, `syn@2`
/// all from 2.0.0 to before 3.
fn is_borne(doubled: &[String], name: &str, version: &str) -> bool {
    doubled.iter().filter_map(|entry| entry.split_once('@')).any(|(borne, from)| {
        let rest = version.strip_prefix(from);
        borne == name && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// Every external crate comes from crates.io, in each of the repository's lock files.
pub fn sources(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in tree.files.iter().filter(|file| file.name() == "Cargo.lock") {
        match manifest::locked(&file.text) {
            Err(error) => violations.push(Violation::of(&file.path, error)),
            Ok(packages) => {
                for package in packages {
                    let Some(source) = package.source.filter(|source| source != CRATES_IO) else {
                        continue;
                    };
                    let what = format!("{} comes from {source}, not crates.io", package.name);
                    violations.push(Violation::of(&file.path, what));
                }
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    const DENY: &str = "[licenses]\nallow = [\"MIT\"]\n\
                        [bans]\ndeny = [{ crate = \"openssl\", use-instead = \"rustls\" }]\n\
                        skip = [{ crate = \"syn@1\" }]\n\
                        [advisories]\nyanked = \"deny\"\n\
                        ignore = [{ id = \"R-1\", reason = \"a: old\" }]\n";

    #[test]
    fn crates_are_held_against_the_rules() {
        let rules = Rules::read(DENY).unwrap();
        let good = "a v1.0.0|MIT OR GPL-3.0\na v1.0.0|MIT OR GPL-3.0 (*)\n\
                    syn v1.0.0|MIT\nsyn v2.0.0 (proc-macro)|MIT\n";
        assert_eq!(crates(&rules, &Built::read(good)), []);
        let bad = "openssl v1.0.0|MIT\nb v1.0.0|\nc v1.0.0|MIT\nc v2.0.0|GPL-3.0\n\
                   syn v10.0.0|MIT\nsyn v2.0.0|MIT\n";
        let found: Vec<String> =
            crates(&rules, &Built::read(bad)).iter().map(ToString::to_string).collect();
        let expected = [
            "Cargo.lock: the licence of b 1.0.0: it names none",
            "Cargo.lock: the licence of c 2.0.0: \"GPL-3.0\" asks for what is not allowed",
            "Cargo.lock: openssl 1.0.0 is banned",
            "deny.toml: syn@1 is not doubled any more: strike it from skip",
            "deny.toml: a is not used any more: strike its fault from ignore",
            "Cargo.lock: c in versions 1.0.0 and 2.0.0: one is enough",
            "Cargo.lock: syn in versions 10.0.0 and 2.0.0: one is enough",
        ];
        assert_eq!(found, expected);
        assert!(Rules::read("[licenses]\nallow = []\n").is_err());
    }

    #[test]
    fn published_faults_are_borne_with_a_reason_only() {
        let refused = |from: &str, to: &str| Rules::read(&DENY.replace(from, to)).unwrap_err();
        assert_eq!(refused("advisories", "other"), "there is no [advisories]");
        let said = refused("yanked = \"deny\"", "yanked = \"warn\"");
        assert!(said.contains("taken back"), "{said}");
        for reason in ["", "old", "a: ", ": old"] {
            let said = refused("a: old", reason);
            assert!(said.contains("R-1") && said.contains("no reason"), "{reason}: {said}");
        }
    }

    #[test]
    fn only_one_source_is_taken() {
        let lock = format!("[[package]]\nname = \"a\"\nsource = \"{CRATES_IO}\"\n");
        let tree = |text: &str| Tree::of(vec![("fuzz/Cargo.lock".to_owned(), text.to_owned())]);
        assert_eq!(sources(&tree(&lock)), []);
        assert_eq!(sources(&tree(&lock.replace("registry+", "git+"))).len(), 1);
    }
}
