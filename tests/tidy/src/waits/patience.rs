//! Minimum limits of waits in tests.

use std::collections::BTreeSet;

use super::comparisons::{Compared, comparisons};
use super::durations::{self, Durations, Written};
use crate::Violation;
use crate::exceptions::{Exception, Exceptions};
use crate::source::{Source, expressions, strings};
use crate::tree::Tree;

/// The shortest limit of a wait in a test, in seconds.
const PATIENCE_MIN: f64 = 60.0;
/// Seconds from which a socket's timeout is a limit; a shorter one is a step of a loop.
const STEP_MAX: f64 = 2.0;

/// Exceptions: limits that are not a timeout of the test itself.
const SHORT: [Exception; 5] = [
    (
        "boot-services/dhcp/tests/dhcp/firmware.rs",
        "OPTION_LEFT",
        "EDK2's own pace, and the shortest of several boots is compared with it",
    ),
    (
        "boot-services/dhcp/tests/dhcp/firmware.rs",
        "SCRIPT_ASKED",
        "iPXE's own pace, and the shortest of several boots is compared with it",
    ),
    (
        "boot-services/dhcp/tests/dhcp/firmware.rs",
        "DISK_STARTED",
        "SeaBIOS's own pace, and the shortest of several boots is compared with it",
    ),
    (
        "tests/scenarios/tests/boot_matrix/rogue.rs",
        "SILENT_WITHIN",
        "a promise of the product, between time stamps of the kernel",
    ),
    (
        "tests/peers/src/cluster_api.rs",
        "HEALTH_TIMEOUT",
        "one look of a poll: when it is not answered, another follows",
    ),
];

/// Last words of constants that limit a wait.
const LIMIT_NAMES: [&str; 8] =
    ["LIMIT", "PATIENCE", "WITHIN", "DEADLINE", "TIMEOUT", "PLENTY", "SOON", "START"];
/// First words of functions that wait for a condition.
const WAITERS: [&str; 5] = ["poll", "wait", "until", "eventually", "within"];
/// Option that passes a limit to a program.
const OPTION: &str = "--timeout=";

/// No wait in a test ends before a minute is over, unless the test expects that no event comes.
pub fn patience(tree: &Tree) -> Vec<Violation> {
    patience_except(tree, &SHORT)
}

fn patience_except(tree: &Tree, short: &[Exception]) -> Vec<Violation> {
    let durations = Durations::read(tree);
    let mut found = BTreeSet::new();
    for file in super::timed(tree) {
        let source = Source::new(file);
        for (at, written) in limits(&source, &durations) {
            let limit = format!("{} s", written.seconds);
            let function = source.item_name(source.line(at)).to_owned();
            found.insert(match written.constant {
                Some((path, line, name)) => (path, line, name, limit),
                None => (file.path.clone(), source.line(at), function, limit),
            });
        }
    }
    let mut exceptions = Exceptions::new(short);
    let mut violations = Vec::new();
    for (path, line, name, limit) in found {
        if !exceptions.excuse(&path, &name) {
            let what = format!("a wait of {limit}: use stdx::testing::PATIENCE");
            violations.push(Violation::at(&path, line, what));
        }
    }
    violations.extend(exceptions.unused("the law of patience"));
    violations
}

/// Limits of waits in a file's tests that are too short, with the place of their use.
fn limits(source: &Source<'_>, durations: &Durations) -> Vec<(usize, Written)> {
    let mut found = of_calls(source, durations);
    found.extend(of_deadlines(source, durations));
    found.extend(of_comparisons(source, durations));
    found.extend(of_counted_loops(source, durations));
    found.extend(of_constants(source, durations));
    found.extend(of_options(source));
    found.retain(|(at, written)| {
        written.seconds < PATIENCE_MIN && !source.is_virtual(source.line(*at))
    });
    found
}

fn of_calls(source: &Source<'_>, durations: &Durations) -> Vec<(usize, Written)> {
    let mut found = Vec::new();
    for (name, at, open) in calls(source) {
        let arguments = expressions::arguments(&source.code, open);
        let lengths = arguments
            .into_iter()
            .filter_map(|range| durations.length(source, at, &source.code[range]));
        let is_wait = match name {
            "set_read_timeout" | "set_write_timeout" => {
                found.extend(lengths.filter(|it| it.seconds >= STEP_MAX).map(|it| (at, it)));
                continue;
            }
            "timeout" | "timeout_at" | "recv_timeout" | "wait_timeout" | "limited" => true,
            _ => WAITERS.iter().any(|word| name.starts_with(word)),
        };
        if is_wait && !is_refused(&source.code, open) {
            let least = if is_step(source, at) { STEP_MAX } else { 0.0 };
            let lengths = lengths.filter(|it| it.seconds >= least);
            found.extend(lengths.map(|length| (at, length)));
        }
    }
    found
}

fn of_deadlines(source: &Source<'_>, durations: &Durations) -> Vec<(usize, Written)> {
    let sum = "Instant::now() +";
    let one = |at: usize| {
        let rest = &source.code[at + sum.len()..];
        let end = expressions::expression(rest, 0..0).end;
        Some((at, durations.length(source, at, &rest[..end])?))
    };
    source.in_tests(sum).into_iter().filter_map(one).collect()
}

/// Limits that measured time is compared with in a waiting loop.
fn of_comparisons(source: &Source<'_>, durations: &Durations) -> Vec<(usize, Written)> {
    let one = |Compared { at, bound, unit, .. }: Compared<'_>| {
        let number = durations::count(bound);
        let number = number.map(|count| Written { seconds: count * unit, constant: None });
        Some((at, number.or_else(|| durations.length(source, at, bound))?))
    };
    comparisons(source).into_iter().filter(|it| it.is_wait).filter_map(one).collect()
}

/// Calls in a file's tests: name, its offset, and the offset of the bracket.
fn calls<'a>(source: &'a Source<'_>) -> Vec<(&'a str, usize, usize)> {
    let code = &source.code;
    let mut found = Vec::new();
    for (open, _) in code.match_indices('(') {
        let start = code[..open].rfind(|char: char| !char.is_alphanumeric() && char != '_');
        let start = start.map_or(0, |at| at + 1);
        let is_declared = code[..start].ends_with("fn ");
        if start < open && !is_declared && source.is_test(source.line(open)) {
            found.push((&code[start..open], start, open));
        }
    }
    found
}

/// Checks whether a loop uses the result of a call and continues.
fn is_step(source: &Source<'_>, at: usize) -> bool {
    let start = source.code[..at].rfind([';', '{', '}']).map_or(0, |at| at + 1);
    let is_match = source.code[start..at].trim_start().starts_with("match ");
    is_match && source.loop_at(at).is_some()
}

/// Checks whether the test expects the call at `open` to end with an error: such a wait expects
/// that nothing comes, and a slow machine does not break it.
fn is_refused(code: &str, open: usize) -> bool {
    const REFUSALS: [&str; 4] = [".is_err()", ".unwrap_err()", ".expect_err(", ".is_none()"];
    let Some(end) = expressions::arguments(code, open).last().map(|last| last.end) else {
        return false;
    };
    let start = code[..open].rfind([';', '{', '}']).map_or(0, |at| at + 1);
    let statement = code[start..open].trim_start();
    if ["if ", "else if ", "while "].iter().any(|word| statement.starts_with(word)) {
        return false;
    }
    let rest: String = code[end..].chars().filter(|char| !char.is_whitespace()).take(40).collect();
    let rest = rest.trim_start_matches(',').trim_start_matches(')');
    let rest = rest.strip_prefix(".await").unwrap_or(rest);
    if REFUSALS.iter().any(|refusal| rest.starts_with(refusal)) {
        return true;
    }
    // The result is bound to a variable, and the next statement expects an error in it.
    let bound = statement.strip_prefix("let ");
    let Some((name, _)) = bound.and_then(|bound| bound.split_once(" = ")) else { return false };
    let mut next = code[end..].split_once(';').map_or("", |(_, rest)| rest).split(';');
    let next = next.next().unwrap_or_default();
    rest.starts_with(';') && REFUSALS.iter().any(|end| next.contains(&format!("{name}{end}")))
}

/// Limits of loops with a fixed number of turns and a pause in each.
fn of_counted_loops(source: &Source<'_>, durations: &Durations) -> Vec<(usize, Written)> {
    let one = |at: usize| {
        let head = source.loop_at(at)?.strip_prefix("for ")?.split('{').next()?;
        let turns = durations::count(head.split_once(" in ")?.1.trim().strip_prefix("0..")?)?;
        let arguments = expressions::arguments(&source.code, at + "sleep".len());
        let pause = &source.code[arguments.first()?.clone()];
        let pause = durations.length(source, at, pause)?;
        Some((at, Written { seconds: pause.seconds * turns, constant: None }))
    };
    source.in_tests("sleep(").into_iter().filter_map(one).collect()
}

/// Constants whose names say that they limit a wait.
fn of_constants(source: &Source<'_>, durations: &Durations) -> Vec<(usize, Written)> {
    let is_limit = |name: &str| name.rsplit('_').next().is_some_and(|it| LIMIT_NAMES.contains(&it));
    let one = |(line, name, _): (usize, &str, &str)| {
        let length = durations.length(source, source.code.len(), name)?;
        (source.is_test(line) && is_limit(name)).then(|| (source.offset(line), length))
    };
    durations::constants(source).into_iter().filter_map(one).collect()
}

/// Limits that a test passes to a program.
fn of_options(source: &Source<'_>) -> Vec<(usize, Written)> {
    let one = |range: std::ops::Range<usize>| {
        let text = source.file.text[range.clone()].trim_matches('"');
        let seconds = text.strip_prefix(OPTION)?.strip_suffix('s')?.parse().ok()?;
        let is_test = source.is_test(source.line(range.start));
        is_test.then_some((range.start, Written { seconds, constant: None }))
    };
    strings(&source.file.text).into_iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests;
