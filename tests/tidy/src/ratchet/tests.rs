//! Tests of entries that are too low, too high or missing.

use super::*;

/// A crate with three brief comments.
fn tree(ratchets: &str) -> Tree {
    let text = "//! The time.\n\n/// The time.\nfn a() {}\n/// The time.\nfn b() {}\n";
    Tree::of(
        [
            ("Cargo.toml", "[workspace]\nmembers = [\"p\"]\n"),
            ("p/Cargo.toml", "[package]\nname = \"p\"\n"),
            ("p/src/lib.rs", text),
            (FILE, ratchets),
        ]
        .map(|(path, text)| (path.to_owned(), text.to_owned()))
        .into(),
    )
}

fn breach(ratchets: &str) -> String {
    let found = ratchets_of(ratchets);
    assert!(found.len() < 2, "{found:?}");
    found.into_iter().next().unwrap_or_default()
}

fn ratchets_of(text: &str) -> Vec<String> {
    super::ratchets(&tree(text)).iter().map(|violation| violation.what.clone()).collect()
}

#[test]
fn a_figure_above_its_entry_is_a_breach() {
    assert!(breach("").starts_with("brief of p is 3, more than 0"));
    assert!(breach("[brief]\np = 2\n").contains("p/src/lib.rs:3"));
    assert_eq!(breach("[brief]\np = 3\n"), "");
}

#[test]
fn an_entry_far_above_its_figure_must_fall() {
    assert!(breach("[brief]\np = 4\n").contains("fell from 4 to 3"));
    assert_eq!(ratchets_of("[brief]\np = 3\nq = 1\n"), ["brief of q is not measured"]);
    assert!(breach("[brief]\np = -1\n").contains("brief.p is not a count"));
}

#[test]
fn lowering_raises_nothing_and_adds_nothing() {
    let recorded = recorded(&tree("[brief]\np = 2\nr = 5\n[people]\np = 7\n")).unwrap();
    let text = lowered(&recorded, &measured(&tree("")));
    assert!(text.ends_with("\n# All: 2.\n[brief]\np = 2\n"), "{text}");
}
