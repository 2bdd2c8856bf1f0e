//! Features of crates: equal for programs and tests, so that no crate is compiled twice.

use std::collections::{BTreeMap, BTreeSet};

use crate::Violation;

/// Format for `cargo tree --format`: name and version of a crate, and its features.
pub const FORMAT: &str = "{p} {f}";

/// Each crate of the programs has the same features in the tests; tests may only add crates.
pub fn features(programs: &str, tests: &str) -> Vec<Violation> {
    let (programs, tests) = (read(programs), read(tests));
    let mut violations = Vec::new();
    for (package, features) in &programs {
        let among_tests = tests.get(package).cloned().unwrap_or_default();
        if *features != among_tests {
            let list = |sets: &BTreeSet<&str>| Vec::from_iter(sets.iter().copied()).join(" and ");
            let what = format!(
                "{package} is built with [{}] for programs, [{}] with tests: name the features in \
                 the root manifest",
                list(features),
                list(&among_tests)
            );
            violations.push(Violation::of("Cargo.toml", what));
        }
    }
    violations
}

/// The features of each package, once for each way in which it is built.
fn read(answer: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in answer.lines() {
        let line = line.trim_end_matches(" (*)").trim_end();
        // Name, version, then perhaps a path or (proc-macro), then the features.
        let words: Vec<(usize, &str)> = line
            .split(' ')
            .map(|word| (word.as_ptr() as usize - line.as_ptr() as usize, word))
            .collect();
        let is_package = |index: usize, word: &str| index < 2 || word.starts_with('(');
        let inside =
            words.iter().enumerate().take_while(|(index, (_, word))| is_package(*index, word));
        let Some((_, (at, last))) = inside.last() else { continue };
        let (package, features) = line.split_at(at + last.len());
        if !package.is_empty() {
            found.entry(package).or_default().insert(features.trim());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_add_crates_only() {
        let programs =
            "a v1.0.0 b,std\nc v1.0.0 (proc-macro)\nd v0.1.0 (/x/d) \na v1.0.0 b,std (*)\n";
        let added = format!("{programs}e v1.0.0 std\n");
        assert_eq!(features(programs, &added), []);
        let other = added.replace("b,std", "b,rng,std");
        let expected = "Cargo.toml: a v1.0.0 is built with [b,std] for programs, [b,rng,std] with \
                        tests: name the features in the root manifest";
        let found: Vec<String> =
            features(programs, &other).iter().map(ToString::to_string).collect();
        assert_eq!(found, [expected]);
        // A further set of features is a further compilation.
        assert_eq!(features(programs, &format!("{added}a v1.0.0 b\n")).len(), 1);
        // Build scripts and programs may have one crate with different features.
        let both = format!("{programs}a v1.0.0 b\n");
        assert_eq!(features(&both, &both), []);
    }
}
