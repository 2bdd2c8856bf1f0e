//! Sleeps in tests: none outside a poll, and none of an asynchronous test in real time.

use crate::Violation;
use crate::exceptions::{Exception, Exceptions};
use crate::source::{Source, expressions, find_word};
use crate::tree::Tree;

/// Sleeps outside a loop that do not wait for an effect: path, function, and their purpose.
const PAUSES: [Exception; 3] = [
    ("appliance/store/tests/crash.rs", "child", "the child waits to be killed"),
    ("appliance/store/tests/crash.rs", "kill", "the random moment of the fault itself"),
    (
        "tests/peers/tests/peers/bmc/clock.rs",
        "real",
        "the pause of polls that look at real sockets beside a paused clock",
    ),
];
/// Asynchronous polls in real time: path, function, and the foreign process that they poll.
const POLLS: [Exception; 2] = [
    ("tests/suites/kube-rs/watching.rs", "acknowledged", "a real server, which restarts meanwhile"),
    ("tests/suites/kube-rs/watching.rs", "compare", "what kube-rs's reflector has of that server"),
];

/// Tests poll a condition with a limit, instead of a fixed sleep. In asynchronous tests time is
/// virtual, except in a poll with the limit of `stdx::testing`.
pub fn sleeps(tree: &Tree) -> Vec<Violation> {
    sleeps_except(tree, &PAUSES, &POLLS)
}

fn sleeps_except(tree: &Tree, pauses: &[Exception], polls: &[Exception]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let (mut pauses, mut polls) = (Exceptions::new(pauses), Exceptions::new(polls));
    for file in super::timed(tree) {
        let source = Source::new(file);
        for at in source.in_tests("sleep(") {
            let line = source.line(at);
            if source.code[..at].ends_with("fn ") || source.is_virtual(line) {
                continue;
            }
            let function = source.item_name(line);
            if !source.is_in_loop(line) {
                if !pauses.excuse(&file.path, function) {
                    let what = "a test that sleeps and hopes: poll for what it waits for";
                    violations.push(Violation::at(&file.path, line, what));
                }
            } else if is_awaited(&source.code, at)
                && !is_pause(&source, at)
                && !polls.excuse(&file.path, function)
            {
                let what = "an asynchronous sleep in real time: start_paused, or poll with \
                            stdx::testing's PATIENCE or wait.pause()";
                violations.push(Violation::at(&file.path, line, what));
            }
        }
    }
    violations.extend(pauses.unused("the law of sleeps"));
    violations.extend(polls.unused("the law of polls"));
    violations
}

fn is_awaited(code: &str, at: usize) -> bool {
    let call = expressions::expression(code, at..at + "sleep".len());
    code[call].trim_end().ends_with(".await")
}

/// Checks whether a sleep is the pause of a poll with the common limit: by `stdx::testing::Wait`,
/// or in a function that names `PATIENCE`.
fn is_pause(source: &Source<'_>, at: usize) -> bool {
    let arguments = expressions::arguments(&source.code, at + "sleep".len());
    let pause = arguments.first().map_or("", |range| &source.code[range.clone()]);
    let function = source.function_at(source.line(at)).map_or("", |it| &source.code[it.body()]);
    pause.trim().ends_with(".pause()") || find_word(function, "PATIENCE").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str, pauses: &[Exception], polls: &[Exception]) -> usize {
        let tree = Tree::of(vec![(path.to_owned(), text.to_owned())]);
        sleeps_except(&tree, pauses, polls).len()
    }

    const POLLING: &str = "fn a() {\n loop {\n  sleep(x);\n }\n}\n";
    const HOPING: &str = "fn a() {\n std::thread::sleep(x);\n}\n";
    const ENTRY: [Exception; 1] = [("a/tests/b.rs", "a", "why")];

    #[test]
    fn tests_poll() {
        assert_eq!(found("a/tests/b.rs", POLLING, &[], &[]), 0);
        assert_eq!(found("a/src/b.rs", HOPING, &[], &[]), 0);
        assert_eq!(found("a/tests/b.rs", HOPING, &[], &[]), 1);
        let paused = format!("#[tokio::test(start_paused = true)]\n{HOPING}");
        assert_eq!(found("a/tests/b.rs", &paused, &[], &[]), 0);
        assert_eq!(found("tests/sim/src/fleet/b.rs", HOPING, &[], &[]), 0);
        assert_eq!(found("a/tests/b.rs", HOPING, &ENTRY, &[]), 0);
        assert_eq!(found("a/tests/b.rs", POLLING, &ENTRY, &[]), 1);
    }

    #[test]
    fn asynchronous_tests_use_virtual_time() {
        let real = "#[tokio::test]\nasync fn a() { loop { sleep(x).await; } }\n";
        let paused = "#[tokio::test(start_paused = true)]\nasync fn b() { help() }\n";
        let helper = "async fn help() { while c() { time::sleep(x).await } }\n";
        assert_eq!(found("a/tests/b.rs", real, &[], &[]), 1);
        assert_eq!(found("a/tests/b.rs", real, &[], &ENTRY), 0);
        assert_eq!(found("a/tests/b.rs", helper, &[], &[]), 1);
        assert_eq!(found("a/tests/b.rs", &helper.replace("(x)", "(b.pause())"), &[], &[]), 0);
        let limited = helper.replace("{ while", "{ let end = now() + PATIENCE; while");
        assert_eq!(found("a/tests/b.rs", &limited, &[], &[]), 0);
        assert_eq!(found("a/tests/b.rs", &format!("{paused}{helper}"), &[], &[]), 0);
        assert_eq!(found("a/tests/b.rs", &format!("{paused}{helper}{real}"), &[], &[]), 2);
    }
}
