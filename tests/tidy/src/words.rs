//! What the code does not say: unfinished work, tests that are not run, waits that hope.

use crate::Violation;
use crate::source::Source;
use crate::tree::Tree;

/// Never, anywhere, and why.
const NEVER: [(&str, &str); 4] = [
    ("todo!(", "unfinished work is not committed"),
    ("unimplemented!(", "unfinished work is not committed"),
    ("dbg!(", "it was for one evening"),
    ("#[ignore", "a test runs or does not exist"),
];

/// A test may stand still outside a loop here: path, function, and what it is if not a hope that
/// something will have happened by then.
const PAUSES: [(&str, &str, &str); 3] = [
    ("appliance/store/tests/crash.rs", "child", "the child waits to be killed"),
    ("appliance/store/tests/crash.rs", "kill", "the random moment of the fault itself"),
    ("tests/imaging-bench/src/agents/load.rs", "rest", "the pace of an agent that works"),
];

/// Nothing unfinished is left standing.
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

/// Outside tests, nothing is unwrapped: an error is returned, or `expect` says why there is none.
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

/// Where all time is virtual.
const SIMULATED: &str = "tests/sim/src/fleet";

/// Tests look at a condition again and again, with a limit; they do not sleep and hope.
pub fn sleeps(tree: &Tree) -> Vec<Violation> {
    sleeps_except(tree, &PAUSES)
}

fn sleeps_except(tree: &Tree, pauses: &[(&str, &str, &str)]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut used = vec![false; pauses.len()];
    for file in tree.rust() {
        let source = Source::new(file);
        // Time that is virtual goes by to the moment, and costs none.
        if file.path.starts_with(SIMULATED) || source.code.contains("start_paused") {
            continue;
        }
        for line in source.lines_with("sleep(") {
            let is_call =
                source.code.lines().nth(line - 1).is_some_and(|l| !l.contains("fn sleep("));
            if !is_call || !source.is_test(line) || source.is_in_loop(line) {
                continue;
            }
            let function = source.function_at(line).map_or("", |function| function.name.as_str());
            let pause =
                pauses.iter().position(|(path, name, _)| *path == file.path && *name == function);
            match pause {
                Some(index) => used[index] = true,
                None => {
                    let what = "a test that sleeps and hopes: poll for what it waits for";
                    violations.push(Violation::at(&file.path, line, what));
                }
            }
        }
    }
    let idle = pauses.iter().zip(used).filter(|(_, used)| !used);
    violations.extend(idle.map(|((path, name, _), _)| {
        Violation::of(path, format!("fn {name} sleeps no more: strike it from tests/tidy"))
    }));
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

    #[test]
    fn tests_poll() {
        let polls = "fn a() {\n loop {\n  sleep(x);\n }\n}\n";
        let hopes = "fn a() {\n std::thread::sleep(x);\n}\n";
        assert_eq!(sleeps_except(&tree("a/tests/b.rs", polls), &[]), []);
        assert_eq!(sleeps_except(&tree("a/src/b.rs", hopes), &[]), []);
        assert_eq!(sleeps_except(&tree("a/tests/b.rs", hopes), &[]).len(), 1);
        let paused = format!("#[tokio::test(start_paused = true)]\n{hopes}");
        assert_eq!(sleeps_except(&tree("a/tests/b.rs", &paused), &[]), []);
        assert_eq!(sleeps_except(&tree("tests/sim/src/fleet/b.rs", hopes), &[]), []);
        let pause = [("a/tests/b.rs", "a", "why")];
        assert_eq!(sleeps_except(&tree("a/tests/b.rs", hopes), &pause), []);
        assert_eq!(sleeps_except(&tree("a/tests/b.rs", polls), &pause).len(), 1);
    }
}
