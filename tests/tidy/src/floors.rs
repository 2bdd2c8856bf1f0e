//! Allowed imports between crates: the floors of the design, and the form of a member's manifest.

use toml::Value;

use crate::Violation;
use crate::manifest::{self, Kind, Member};
use crate::tree::Tree;

/// A crate of the product, its floor, and the other crates of the workspace that it may use.
struct Place {
    name: &'static str,
    floor: u8,
    may_use: &'static [&'static str],
}

const fn place(name: &'static str, floor: u8, may_use: &'static [&'static str]) -> Place {
    Place { name, floor, may_use }
}

/// Floor of `supervisor` and `image`, which may use any crate except those of tests.
const TOP: u8 = 5;
/// Floor of the tests: they may use any crate, and no other crate may use them. `golden` is on the
/// ground floor, because tests of every crate use it.
const TESTS: u8 = 6;

const PLACES: [Place; 71] = [
    place("stdx", 0, &[]),
    place("golden", 0, &[]),
    place("api", 1, &["stdx"]),
    place("go-text", 1, &[]),
    place("durable-file", 1, &["stdx"]),
    place("release", 1, &["stdx"]),
    place("objects", 1, &["api", "stdx"]),
    place("schema", 1, &["go-text"]),
    place("structured-merge", 1, &["go-text", "stdx"]),
    place("kube-patch", 1, &["go-text", "stdx"]),
    place("kube-protobuf", 1, &[]),
    place("kube-yaml", 1, &["stdx"]),
    place("template", 1, &["go-text", "kube-yaml", "stdx"]),
    place("event-pattern", 1, &[]),
    place("resolver", 1, &[]),
    place("http-edge", 1, &[]),
    place("artifact-cache", 1, &["oci-reference", "stdx"]),
    place("oci-reference", 1, &["stdx"]),
    place("help", 1, &[]),
    place("store", 2, &["stdx"]),
    place("rbac", 2, &["stdx"]),
    place("audit-log", 2, &["rbac"]),
    place("backup", 2, &["stdx"]),
    place("http-digest", 1, &["stdx"]),
    place("tls-pin", 1, &["stdx"]),
    place("amt", 2, &["http-digest", "resolver", "stdx", "tls-pin"]),
    place("ipmi", 2, &["resolver", "stdx"]),
    place("redfish", 2, &["resolver", "stdx", "tls-pin"]),
    place("poe", 2, &["resolver", "stdx"]),
    place("webhook", 2, &["http-digest", "resolver", "stdx", "tls-pin"]),
    place("bmc", 2, &["amt", "ipmi", "poe", "redfish", "stdx", "webhook"]),
    place("bmc-discovery", 2, &["stdx"]),
    place("neighbor-times", 2, &["stdx"]),
    place("serial-console", 2, &["durable-file", "stdx"]),
    place("dhcp", 2, &["stdx"]),
    place("netboot", 2, &["artifact-cache", "http-edge", "stdx"]),
    place("syslog", 2, &["stdx"]),
    place("metadata", 2, &["stdx"]),
    place("ntp", 2, &["stdx"]),
    place("agent-rpc", 2, &["http-edge", "stdx"]),
    place("unpack", 1, &["stdx"]),
    place("imaging", 2, &["stdx", "unpack"]),
    place("hardware-choice", 3, &["api", "status"]),
    place("machine-install", 2, &["api", "kube-yaml", "oci-reference", "stdx", "template"]),
    place("printers", 3, &["api", "bmc-discovery", "status", "stdx"]),
    place("status", 2, &["api", "stdx"]),
    place("template-library", 1, &["stdx"]),
    place(
        "machine-actions",
        3,
        &["api", "objects", "status", "stdx", "template", "template-library"],
    ),
    place(
        "template-editor",
        3,
        &["api", "machine-actions", "objects", "stdx", "template", "template-library"],
    ),
    place("box-flash", 3, &["config", "release", "status", "stdx"]),
    place("box-owner", 2, &["stdx"]),
    place("platform", 2, &["durable-file", "release", "stdx"]),
    place(
        "resources",
        2,
        &[
            "api",
            "event-pattern",
            "go-text",
            "kube-patch",
            "rbac",
            "schema",
            "stdx",
            "store",
            "structured-merge",
        ],
    ),
    place(
        "config",
        3,
        &["api", "artifact-cache", "dhcp", "event-pattern", "metadata", "panel", "platform"],
    ),
    place(
        "controllers",
        3,
        &[
            "agent-rpc",
            "api",
            "bmc",
            "event-pattern",
            "objects",
            "serial-console",
            "status",
            "stdx",
            "template",
        ],
    ),
    place(
        "capi-controllers",
        3,
        &["api", "controllers", "hardware-choice", "machine-install", "objects", "status", "stdx"],
    ),
    place(
        "apiserver",
        3,
        &[
            "audit-log",
            "durable-file",
            "http-edge",
            "kube-protobuf",
            "kube-yaml",
            "rbac",
            "resources",
            "schema",
            "stdx",
        ],
    ),
    place("endpoints", 3, &["api", "http-edge", "objects", "platform", "stdx", "tls-pin"]),
    place("page-http", 1, &["stdx"]),
    place(
        "web",
        3,
        &["box-owner", "help", "machine-actions", "page-http", "status", "stdx", "template-editor"],
    ),
    place("panel", 3, &["api", "status", "stdx"]),
    place("box-console", 3, &["config", "panel", "platform", "status", "stdx"]),
    place("capi", 3, &["api", "objects", "resolver", "stdx"]),
    place(
        "cli",
        3,
        &[
            "api",
            "bmc-discovery",
            "box-flash",
            "capi",
            "config",
            "machine-actions",
            "objects",
            "printers",
            "status",
            "stdx",
            "template",
            "template-library",
        ],
    ),
    place("inventory", 3, &["agent-rpc", "imaging", "platform", "stdx"]),
    place("agent-service", 3, &["agent-rpc", "api", "objects", "status", "stdx"]),
    place(
        "agent",
        4,
        &["agent-rpc", "imaging", "inventory", "oci-reference", "platform", "stdx", "unpack"],
    ),
    place(
        "provisioning",
        4,
        &[
            "agent-rpc",
            "agent-service",
            "api",
            "apiserver",
            "artifact-cache",
            "capi-controllers",
            "config",
            "controllers",
            "dhcp",
            "durable-file",
            "event-pattern",
            "metadata",
            "netboot",
            "objects",
            "platform",
            "resolver",
            "resources",
            "status",
            "stdx",
            "syslog",
        ],
    ),
    place(
        "lifecycle",
        4,
        &[
            "agent-rpc",
            "agent-service",
            "api",
            "apiserver",
            "audit-log",
            "backup",
            "box-console",
            "box-owner",
            "capi",
            "config",
            "controllers",
            "dhcp",
            "durable-file",
            "machine-actions",
            "ntp",
            "objects",
            "panel",
            "platform",
            "provisioning",
            "rbac",
            "resolver",
            "resources",
            "status",
            "stdx",
            "store",
            "web",
        ],
    ),
    place("supervisor", TOP, &[]),
    place("image", TOP, &[]),
];

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
    dead.into_iter().map(|name| Violation::of("tests/tidy/src/floors.rs", what(name))).collect()
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
