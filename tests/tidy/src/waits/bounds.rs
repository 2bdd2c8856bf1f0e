//! Upper bounds on measured time.

use std::collections::BTreeSet;

use super::comparisons::{Compared, comparisons};
use crate::Violation;
use crate::exceptions::{Exception, Exceptions};
use crate::source::Source;
use crate::tree::Tree;

/// Promises about time, measured so that a slow machine does not break them.
const BOUNDED: [Exception; 1] = [(
    "tests/peers/tests/peers/comparison/script.rs",
    "run",
    "the mark of a step that the program timeout cut off: it fails nothing",
)];

/// No measured time has an upper bound in a test: a slow machine is not a fault.
pub fn bounds(tree: &Tree) -> Vec<Violation> {
    bounds_except(tree, &BOUNDED)
}

fn bounds_except(tree: &Tree, bounded: &[Exception]) -> Vec<Violation> {
    let mut exceptions = Exceptions::new(bounded);
    let mut violations = Vec::new();
    for file in super::timed(tree) {
        let source = Source::new(file);
        let mut lines = BTreeSet::new();
        for Compared { at, is_wait, .. } in comparisons(&source) {
            let line = source.line(at);
            if is_wait || !lines.insert(line) {
                continue;
            }
            if !exceptions.excuse(&file.path, source.item_name(line)) {
                let what = "measured time with an upper bound: count steps, compare two sizes, or \
                            use a paused clock";
                violations.push(Violation::at(&file.path, line, what));
            }
        }
    }
    violations.extend(exceptions.unused("the law of bounds"));
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Tree {
        Tree::of(vec![("tests/a/tests/b.rs".to_owned(), text.to_owned())])
    }

    const ENTRY: [Exception; 1] = [("tests/a/tests/b.rs", "a", "why")];

    #[test]
    fn measured_time_has_no_upper_bound() {
        for text in [
            "fn a() { assert!(b.elapsed() < C); }",
            "fn a() { assert!(b.elapsed().as_secs() <= 12, \"{b:?}\"); }",
            "fn a() { assert!(C > b.elapsed()); }",
            "fn a() { let took = b.elapsed(); assert!(took < C, \"{took:?}\"); }",
            "fn a() { if b.elapsed() > C { panic!() } }",
            "fn a() { assert!((30..40).contains(&b.elapsed().as_secs())); }",
            "fn a() { assert!(u64::try_from(b.elapsed().as_millis()).unwrap() < 5); }",
            "fn a() { if d && b.elapsed() > C { panic!() } }",
            "fn a() { let late = b.elapsed() > C; }",
            "fn a() { for b in c { assert!(b.elapsed() < C); } }",
            "fn a() { assert!(end.duration_since(start) < C); }",
            "#[tokio::test]\nasync fn a() { assert!(b.elapsed() < C); }",
        ] {
            assert_eq!(bounds_except(&tree(text), &[]).len(), 1, "{text}");
            assert_eq!(bounds_except(&tree(text), &ENTRY), [], "{text}");
        }
    }

    #[test]
    fn other_uses_of_time_are_free() {
        for text in [
            "fn a() { assert!(b.elapsed() >= C); }",
            "fn a() { let took = b.elapsed(); println!(\"{took:?}\"); }",
            "fn a() { let one = b.elapsed(); let ten = c.elapsed(); assert!(ten < one * 30); }",
            "fn a() { while !b() { assert!(c.elapsed() < PATIENCE); sleep(d); } }",
            "fn a() { loop { if b.is_ok() { break } assert!(Instant::now() < end); } }",
            "fn a() -> Vec<u8> { f::<u8>(b.elapsed()) }",
            "#[tokio::test(start_paused = true)]\nasync fn a() { assert!(b.elapsed() < C); }",
        ] {
            assert_eq!(bounds_except(&tree(text), &[]), [], "{text}");
        }
        assert_eq!(bounds_except(&tree("fn a() {}"), &ENTRY).len(), 1);
        let bench =
            [("tests/api-bench/src/a.rs".to_owned(), "fn a() { b.elapsed() < C }".to_owned())];
        assert_eq!(bounds_except(&Tree::of(bench.to_vec()), &[]), []);
    }
}
