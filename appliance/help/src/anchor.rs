//! Anchors of headings. `build.rs` includes this file; the tests of the documents call it.

/// Returns the anchor of a heading with this text, by GitHub's rules.
pub fn anchor(title: &str) -> String {
    let kept = title.chars().filter(|char| char.is_alphanumeric() || "-_ ".contains(*char));
    kept.flat_map(char::to_lowercase).map(|char| if char == ' ' { '-' } else { char }).collect()
}
