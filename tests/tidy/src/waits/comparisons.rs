//! Comparisons of measured time with an upper bound.

use std::ops::Range;

use crate::source::expressions::{self, Order};
use crate::source::{Source, find_words};

/// Code that reads a clock or a measured time.
const MEASURES: [&str; 3] = ["elapsed()", "Instant::now()", "duration_since"];
/// Code that makes a `for` loop a loop that waits.
const PAUSES: [&str; 8] =
    ["sleep(", "yield_now(", "timeout(", "recv", "tick(", "try_wait(", "wait(", "changed("];

/// A comparison of measured time with an upper bound.
pub(super) struct Compared<'a> {
    /// Offset of the measured time.
    pub at: usize,
    /// The expression that measured time is compared with.
    pub bound: &'a str,
    /// Seconds per unit of a bound that is a bare number.
    pub unit: f64,
    /// True for the limit of a loop that waits.
    pub is_wait: bool,
}

/// The comparisons of measured time with upper bounds in a file's tests, except on virtual time.
pub(super) fn comparisons<'a>(source: &'a Source<'_>) -> Vec<Compared<'a>> {
    let mut found = Vec::new();
    let mut measured: Vec<Range<usize>> = Vec::new();
    for phrase in MEASURES {
        let places = source.in_tests(phrase);
        measured.extend(places.into_iter().map(|at| at..at + phrase.len()));
    }
    for range in measured.clone() {
        // Variables hold measured time up to the end of their function.
        let Some((name, end)) = variable(source, &range) else { continue };
        let uses = find_words(&source.code[range.end..end], name).map(|at| range.end + at);
        measured.extend(uses.map(|at| at..at + name.len()));
    }
    measured.sort_by_key(|range| (range.start, range.end));
    measured.dedup();
    for range in &measured {
        if source.is_virtual(source.line(range.start)) {
            continue;
        }
        found.extend(upper_bound(source, range.clone(), &measured));
    }
    found
}

/// The variable that a `let` binds to an expression with measured time, and the end of its
/// function. A point in time is not measured time.
fn variable<'a>(source: &'a Source<'_>, range: &Range<usize>) -> Option<(&'a str, usize)> {
    let code = &source.code;
    if code[range.clone()].starts_with("Instant") {
        return None;
    }
    let start = code[..range.start].rfind([';', '{', '}']).map_or(0, |at| at + 1);
    let (name, value) =
        code[start..range.start].trim_start().strip_prefix("let ")?.split_once(" = ")?;
    let is_name = name.chars().all(|char| char.is_alphanumeric() || char == '_');
    let whole = &code[expressions::expression(code, range.clone())];
    let function = source.function_at(source.line(range.start))?;
    (is_name && !value.contains('|') && expressions::comparison(whole).is_none())
        .then(|| (name, function.body().end))
}

/// The comparison around measured time, when it is bounded from above.
fn upper_bound<'a>(
    source: &'a Source<'_>,
    range: Range<usize>,
    measured: &[Range<usize>],
) -> Option<Compared<'a>> {
    let code = &source.code;
    let at = range.start;
    let mut around = expressions::expression(code, range);
    loop {
        let text = &code[around.clone()];
        if let Some((left, order, right)) = expressions::comparison(text) {
            let middle = left.as_ptr() as usize - code.as_ptr() as usize + left.len();
            let is_left = at < middle;
            let other_side = |range: &&Range<usize>| {
                around.contains(&range.start) && (range.start < middle) != is_left
            };
            if measured.iter().any(|range| other_side(&range)) {
                return None;
            }
            let is_below = is_left == (order == Order::Less);
            // Outside assertions, a condition such as "longer than" is an upper bound too.
            let statement = code[..around.start].rfind([';', '{', '}']).map_or(0, |at| at + 1);
            if !is_below && code[statement..around.start].contains("assert") {
                return None;
            }
            let bound = if is_left { right } else { left };
            let subject = if is_left { left } else { right };
            let unit = [("as_millis", 1e-3), ("as_micros", 1e-6), ("as_secs", 1.0)]
                .into_iter()
                .find(|(word, _)| subject.contains(word));
            let is_wait = source.loop_at(at).is_some_and(waits);
            return Some(Compared { at, bound, unit: unit.map_or(1.0, |unit| unit.1), is_wait });
        }
        around = expressions::surrounding(code, &around)?;
        if code[..around.start].ends_with(".contains") {
            let is_wait = false;
            return Some(Compared { at, bound: "", unit: 1.0, is_wait });
        }
        around = expressions::expression(code, around);
    }
}

/// Checks whether a loop polls a condition.
fn waits(text: &str) -> bool {
    !text.starts_with("for ") || PAUSES.iter().any(|word| text.contains(word))
}
