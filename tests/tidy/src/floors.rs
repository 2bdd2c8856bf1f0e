//! Allowed imports between crates: the floors of the design, and the form of a member's manifest.

mod table;

use toml::Value;

use crate::Violation;
use crate::manifest::{self, Kind, Member};
use crate::tree::Tree;
use table::{PLACES, Place, TESTS, TOP};

/// Crates that the kinds and their rules must not depend on, directly or indirectly.
const NEVER_IN_API: [&str; 3] = ["tokio", "redb", "hyper"];
/// Functions that read the clock, forbidden in the kinds and their rules.
const CLOCKS: [&str; 3] = ["SystemTime::now", "Timestamp::now", "Instant::now"];
/// Words of the domain that must not appear on the ground floor.
const DOMAIN_WORDS: [&str; 11] = [
    "bmc",
    "boot",
    "dhcp",
    "hardware",
    "ipmi",
    "ipxe",
    "kubernetes",
    "machine",
    "template",
    "tftp",
    "workflow",
];

/// Every member is on its floor and uses only crates that the floor may use.
pub fn floors(tree: &Tree) -> Vec<Violation> {
    let (members, mut violations) = manifest::members(tree);
    let floor_of = |member: &Member| match PLACES.iter().find(|place| place.name == member.name()) {
        None if member.folder.starts_with("tests/") => Some((TESTS, &[][..])),
        place => place.map(|place| (place.floor, place.may_use)),
    };
    for member in &members {
        let path = member.path();
        let Some((floor, may_use)) = floor_of(member) else {
            let what = format!("{} has no floor: give it one in tests/tidy", member.name());
            violations.push(Violation::of(&path, what));
            continue;
        };
        for (kind, name, _) in member.dependencies() {
            let Some(used) = members.iter().find(|member| member.name() == name) else { continue };
            let Some((below, _)) = floor_of(used) else { continue };
            let allowed = match kind {
                _ if floor == TESTS => true,
                Kind::Dev => below <= floor,
                Kind::Product if floor == TOP => below < TOP,
                Kind::Product => may_use.contains(&name),
            };
            if !allowed {
                let what = format!("{} (floor {floor}) may not use {name}", member.name());
                violations.push(Violation::of(&path, what));
            }
        }
    }
    violations
}

/// Every crate that the table of floors names is a member.
pub fn dead_floors(tree: &Tree) -> Vec<Violation> {
    dead_among(tree, &PLACES)
}

fn dead_among(tree: &Tree, places: &[Place]) -> Vec<Violation> {
    let members = manifest::members(tree).0;
    let names = places.iter().flat_map(|place| std::iter::once(&place.name).chain(place.may_use));
    let mut dead: Vec<&str> = names
        .copied()
        .filter(|name| !members.iter().any(|member| member.name() == *name))
        .collect();
    dead.sort_unstable();
    dead.dedup();
    let what = |name: &str| format!("{name} is not a crate: strike it from the floors");
    dead.into_iter()
        .map(|name| Violation::of("tests/tidy/src/floors/table.rs", what(name)))
        .collect()
}

/// Every member has the name of its folder and obeys the workspace's lints. It takes version,
/// edition and each dependency from the workspace, where features are set once.
pub fn manifests(tree: &Tree) -> Vec<Violation> {
    let (members, mut violations) = manifest::members(tree);
    for member in &members {
        let path = member.path();
        let mut wrong = |what: String| violations.push(Violation::of(&path, what));
        let folder = member.folder.rsplit('/').next().unwrap_or_default();
        if member.name() != folder {
            wrong(format!("the crate is named {:?}, its folder {folder:?}", member.name()));
        }
        if !is_inherited(member.manifest.get("lints")) {
            wrong("it wants [lints] workspace = true".to_owned());
        }
        for field in ["version", "edition", "rust-version", "license"] {
            let package = member.manifest.get("package");
            if !is_inherited(package.and_then(|package| package.get(field))) {
                wrong(format!("{field} is the workspace's: {field}.workspace = true"));
            }
        }
        for (_, name, how) in member.dependencies() {
            let says_only = |table: &toml::Table| {
                table.keys().all(|key| matches!(key.as_str(), "workspace" | "optional"))
            };
            if !is_inherited(Some(how)) || !how.as_table().is_some_and(says_only) {
                wrong(format!("{name}.workspace = true, and its features in the root manifest"));
            }
        }
    }
    violations
}

fn is_inherited(value: Option<&Value>) -> bool {
    value.and_then(|value| value.get("workspace")).and_then(Value::as_bool) == Some(true)
}

/// The kinds and their rules are pure: no runtime, no store, no HTTP, no clock of their own.
pub fn purity(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    let lock = tree.file("Cargo.lock").map(|file| file.text.as_str()).unwrap_or_default();
    match manifest::locked(lock) {
        Err(error) => violations.push(Violation::of("Cargo.lock", error)),
        Ok(packages) => {
            let built_of = manifest::closure(&packages, "api");
            for name in NEVER_IN_API.iter().filter(|name| built_of.contains(**name)) {
                let what = format!("api is built of {name}, by way of something it depends on");
                violations.push(Violation::of("appliance/api/Cargo.toml", what));
            }
        }
    }
    for file in tree.rust().filter(|file| file.path.starts_with("appliance/api/src/")) {
        let source = crate::source::Source::new(file);
        for clock in CLOCKS {
            for line in source.lines_with(clock) {
                violations.push(Violation::at(&file.path, line, format!("{clock}: pass the time")));
            }
        }
    }
    violations
}

/// The ground floor contains no word of the domain.
pub fn ground(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in tree.rust().filter(|file| file.path.starts_with("appliance/stdx/src/")) {
        let code = crate::source::mask(&file.text);
        for (number, line) in code.lines().enumerate() {
            let line = line.to_ascii_lowercase();
            for word in DOMAIN_WORDS.iter().filter(|word| line.contains(**word)) {
                let what = format!("stdx knows no {word}");
                violations.push(Violation::at(&file.path, number + 1, what));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests;
