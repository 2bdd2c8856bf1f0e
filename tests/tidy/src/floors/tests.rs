use super::table::place;
use super::*;

const ROOT: &str = "[workspace]\nmembers = [\"appliance/*\", \"image\", \"tests/*\"]\n";
const HEAD: &str = "version.workspace = true\nedition.workspace = true\n\
                    rust-version.workspace = true\nlicense.workspace = true\n\
                    [lints]\nworkspace = true\n";

/// A workspace of members: folder, name, and the rest of the manifest.
fn workspace(members: &[(&str, &str, &str)]) -> Tree {
    let mut files = vec![("Cargo.toml".to_owned(), ROOT.to_owned())];
    for (folder, name, rest) in members {
        let text = format!("[package]\nname = \"{name}\"\n{HEAD}{rest}\n");
        files.push((format!("{folder}/Cargo.toml"), text));
    }
    Tree::of(files)
}

fn said(violations: &[Violation]) -> Vec<String> {
    violations.iter().map(ToString::to_string).collect()
}

#[test]
fn a_crate_uses_what_its_floor_may() {
    let tree = workspace(&[
        ("appliance/stdx", "stdx", ""),
        ("appliance/api", "api", "[dependencies]\nstdx.workspace = true"),
        ("appliance/store", "store", "[dev-dependencies]\nbmc.workspace = true"),
        ("appliance/bmc", "bmc", "[dependencies]\nstdx.workspace = true"),
        ("appliance/supervisor", "supervisor", "[dependencies]\nbmc.workspace = true"),
        ("tests/qemu", "qemu", "[dependencies]\nsupervisor.workspace = true"),
    ]);
    assert_eq!(floors(&tree), []);
    assert_eq!(manifests(&tree), []);
}

#[test]
fn nobody_reaches_up_or_sideways() {
    let tree = workspace(&[
        ("appliance/stdx", "stdx", "[build-dependencies]\napi.workspace = true"),
        ("appliance/api", "api", "[dev-dependencies]\nstore.workspace = true"),
        ("appliance/store", "store", "[target.'cfg(unix)'.dependencies]\nbmc.workspace = true"),
        ("appliance/bmc", "bmc", "[dev-dependencies]\nqemu.workspace = true"),
        ("appliance/new", "new", ""),
        ("image", "image", "[dependencies]\nqemu.workspace = true"),
        ("tests/qemu", "qemu", ""),
    ]);
    let expected = [
        "appliance/api/Cargo.toml: api (floor 1) may not use store",
        "appliance/bmc/Cargo.toml: bmc (floor 2) may not use qemu",
        "appliance/new/Cargo.toml: new has no floor: give it one in tests/tidy",
        "appliance/stdx/Cargo.toml: stdx (floor 0) may not use api",
        "appliance/store/Cargo.toml: store (floor 2) may not use bmc",
        "image/Cargo.toml: image (floor 5) may not use qemu",
    ];
    assert_eq!(said(&floors(&tree)), expected);
}

#[test]
fn a_manifest_names_nothing_by_itself() {
    let manifest = "[package]\nname = \"mac\"\nedition = \"2024\"\nversion.workspace = true\n\
                    rust-version.workspace = true\nlicense.workspace = true\n\
                    [dependencies]\nserde = \"1\"\n\
                    tokio = { workspace = true, features = [\"full\"] }\n";
    let files = vec![
        ("Cargo.toml".to_owned(), ROOT.to_owned()),
        ("appliance/stdx/Cargo.toml".to_owned(), manifest.to_owned()),
    ];
    let expected = [
        "appliance/stdx/Cargo.toml: the crate is named \"mac\", its folder \"stdx\"",
        "appliance/stdx/Cargo.toml: it wants [lints] workspace = true",
        "appliance/stdx/Cargo.toml: edition is the workspace's: edition.workspace = true",
        "appliance/stdx/Cargo.toml: serde.workspace = true, and its features in the root manifest",
        "appliance/stdx/Cargo.toml: tokio.workspace = true, and its features in the root manifest",
    ];
    assert_eq!(said(&manifests(&Tree::of(files))), expected);
}

#[test]
fn the_rules_stay_pure_however_far_down() {
    let lock = "[[package]]\nname = \"api\"\ndependencies = [\"web 1.0.0\"]\n\
                [[package]]\nname = \"web\"\nversion = \"1.0.0\"\ndependencies = [\"hyper\"]\n\
                [[package]]\nname = \"store\"\ndependencies = [\"redb\"]\n";
    let tree = Tree::of(vec![
        ("Cargo.lock".to_owned(), lock.to_owned()),
        ("appliance/api/src/a.rs".to_owned(), "//! x\nlet a = Timestamp::now();".to_owned()),
        ("appliance/stdx/src/a.rs".to_owned(), "// dhcp\nstruct DhcpLease;".to_owned()),
    ]);
    let expected = [
        "appliance/api/Cargo.toml: api is built of hyper, by way of something it depends on",
        "appliance/api/src/a.rs:2: Timestamp::now: pass the time",
    ];
    assert_eq!(said(&purity(&tree)), expected);
    assert_eq!(said(&ground(&tree)), ["appliance/stdx/src/a.rs:2: stdx knows no dhcp"]);
}

#[test]
fn a_floor_has_its_crate() {
    let tree = workspace(&[("appliance/stdx", "stdx", ""), ("appliance/api", "api", "")]);
    let places = [place("stdx", 0, &[]), place("api", 1, &["stdx"])];
    assert_eq!(dead_among(&tree, &places), []);
    let places = [place("stdx", 0, &["gone"]), place("lost", 1, &["stdx"])];
    let expected = [
        "tests/tidy/src/floors/table.rs: gone is not a crate: strike it from the floors",
        "tests/tidy/src/floors/table.rs: lost is not a crate: strike it from the floors",
    ];
    assert_eq!(said(&dead_among(&tree, &places)), expected);
}
