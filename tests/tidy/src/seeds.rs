//! Randomness in tests: two checks of one tree must give the same result, so a test uses a seed
//! that is fixed or passed to it.

use crate::Violation;
use crate::exceptions::{Exception, Exceptions};
use crate::source::{Source, find_words};
use crate::tree::Tree;

/// Draws whose values no test compares.
const DRAWS: [Exception; 5] = [
    ("tests/amt-sim/src/lib.rs", "loopback_address", "an address that nothing else has"),
    ("tests/peers/src/bmc_sim/machine.rs", "random", "a BMC's own numbers in its handshake"),
    ("tests/peers/src/cluster.rs", "token", "the secrets of a real control plane"),
    ("tests/peers/src/loopback.rs", "loopback_address", "an address that nothing else has"),
    ("tests/scenarios/src/management/server.rs", "random", "the secrets of a real control plane"),
];

/// Words that draw without a seed.
const DRAWN: [&str; 8] = [
    "getrandom::",
    "Rng::new()",
    "thread_rng(",
    "rand::random",
    "from_entropy(",
    "from_os_rng(",
    "RandomState::new()",
    "SystemRandom::new()",
];
/// Words that read a clock.
const CLOCKS: [&str; 3] = ["SystemTime::now()", "UNIX_EPOCH.elapsed()", "Timestamp::now()"];

/// No test draws by chance, or takes a clock for its seed, except where an entry says why.
pub fn seeds(tree: &Tree) -> Vec<Violation> {
    seeds_except(tree, &DRAWS)
}

fn seeds_except(tree: &Tree, draws: &[Exception]) -> Vec<Violation> {
    let mut exceptions = Exceptions::new(draws);
    let mut violations = Vec::new();
    for file in tree.rust() {
        let source = Source::new(file);
        let mut found: Vec<(usize, &str)> = Vec::new();
        for word in DRAWN {
            found.extend(source.in_tests(word).into_iter().map(|at| (at, word)));
        }
        // The crate's free functions draw without a seed; `Rng::with_seed` does not.
        for at in source.in_tests("fastrand::") {
            let rest = &source.code[at + "fastrand::".len()..];
            if rest.starts_with(|char: char| char.is_lowercase()) && !rest.starts_with("seed(") {
                found.push((at, "fastrand::"));
            }
        }
        for clock in CLOCKS {
            let seeding = |at: &usize| names_a_seed(&source, *at);
            found.extend(source.in_tests(clock).into_iter().filter(seeding).map(|at| (at, clock)));
        }
        found.sort_unstable();
        for (at, word) in found {
            let line = source.line(at);
            if !exceptions.excuse(&file.path, source.item_name(line)) {
                let what = format!("{word} in a test: take a fixed seed, or one from an argument");
                violations.push(Violation::at(&file.path, line, what));
            }
        }
    }
    violations.extend(exceptions.unused("the law of seeds"));
    violations
}

/// Checks whether the statement or the function around an offset names a seed.
fn names_a_seed(source: &Source<'_>, at: usize) -> bool {
    let start = source.code[..at].rfind([';', '{', '}']).map_or(0, |at| at + 1);
    let end = source.code[at..].find([';', '{', '}']).map_or(source.code.len(), |end| at + end);
    let function = source.item_name(source.line(at)).to_lowercase();
    let statement = source.code[start..end].to_lowercase();
    function.contains("seed")
        || find_words(&statement, "seed").next().is_some()
        || statement.contains("with_seed")
        || statement.contains("as_nanos")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, draws: &[Exception]) -> usize {
        let tree = Tree::of(vec![("a/tests/b.rs".to_owned(), text.to_owned())]);
        seeds_except(&tree, draws).len()
    }

    #[test]
    fn chance_has_a_seed() {
        for text in [
            "fn a() { fastrand::u64(..) }",
            "fn a() { fastrand::shuffle(&mut b) }",
            "fn a() { fastrand::Rng::new() }",
            "fn a() { getrandom::fill(&mut b) }",
            "fn a() { let seed = SystemTime::now(); }",
            "fn seed() -> u64 { UNIX_EPOCH.elapsed() }",
            "fn a() { UNIX_EPOCH.elapsed().map_or(1, |now| now.as_nanos() as u64) }",
        ] {
            assert_eq!(found(text, &[]), 1, "{text}");
            let name = if text.contains("fn seed") { "seed" } else { "a" };
            assert_eq!(found(text, &[("a/tests/b.rs", name, "why")]), 0, "{text}");
        }
        for text in [
            "use fastrand::Rng; fn a() { Rng::with_seed(1).u64(..) }",
            "fn a() { let now = SystemTime::now(); }",
            "// fastrand::u64(..)",
        ] {
            assert_eq!(found(text, &[]), 0, "{text}");
        }
        assert_eq!(found("fn a() {}", &[("a/tests/b.rs", "a", "why")]), 1);
    }
}
