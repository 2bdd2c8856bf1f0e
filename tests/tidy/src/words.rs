//! Unfinished work, skipped tests and ignored errors.

use crate::Violation;
use crate::source::Source;
use crate::tree::Tree;

/// Code that is forbidden everywhere, with reasons.
const NEVER: [(&str, &str); 4] = [
    ("todo!(", "unfinished work is not committed"),
    ("unimplemented!(", "unfinished work is not committed"),
    ("dbg!(", "it was for one evening"),
    ("#[ignore", "a test runs or does not exist"),
];

/// No unfinished work is in the tree.
pub fn unfinished(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in tree.rust() {
        let source = Source::new(file);
        for (word, why) in NEVER {
            for line in source.lines_with(word) {
                violations.push(Violation::at(&file.path, line, format!("{word}: {why}")));
            }
        }
    }
    violations
}

/// Outside tests, no error is unwrapped: it is returned, or `expect` explains why it cannot occur.
pub fn unwraps(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in tree.rust() {
        let source = Source::new(file);
        for word in [".unwrap()", ".unwrap_err()", ".expect(\"\")"] {
            for line in source.lines_with(word).into_iter().filter(|line| !source.is_test(*line)) {
                let what = format!("{word} outside tests: return the error");
                violations.push(Violation::at(&file.path, line, what));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(path: &str, text: &str) -> Tree {
        Tree::of(vec![(path.to_owned(), text.to_owned())])
    }

    #[test]
    fn words_in_texts_and_comments_are_free() {
        assert_eq!(unfinished(&tree("a.rs", "// todo!()\nlet a = \"dbg!()\";\n")), []);
        for text in ["todo!()", "#[ignore]\nfn a() {}", "#[ignore = \"b\"]", "x(dbg!(y))"] {
            assert_eq!(unfinished(&tree("a.rs", text)).len(), 1, "{text}");
        }
    }

    #[test]
    fn only_tests_unwrap() {
        let text = "fn a() { b.unwrap(); }\n#[cfg(test)]\nmod tests {\n fn c() { d.unwrap() }\n}\n";
        let found = unwraps(&tree("a/src/b.rs", text));
        assert_eq!(found.iter().map(|found| found.line).collect::<Vec<_>>(), [1]);
        assert_eq!(unwraps(&tree("a/tests/b.rs", text)), []);
    }
}
