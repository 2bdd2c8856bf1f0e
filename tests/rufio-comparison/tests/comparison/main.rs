//! The box and Rufio, given the same Jobs: the same commands must arrive at the machine, and the
//! Jobs must end in the same way. `tests/golden` has the cases and the differences, each
//! with its reason; `UPDATE=1` rewrites the list.

#![allow(clippy::unwrap_used, reason = "a test crate: its helpers fail the test they help")]

mod api;
mod cases;
mod faults;
mod ipmi;
mod receiver;
mod webhook;

use std::fmt::Write as _;

use cases::Ending;

/// Result of one case on one side.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Outcome {
    /// Commands that arrived at the machine, in order.
    commands: Vec<String>,
    /// End of the Job and of each of its Tasks.
    ending: Ending,
}

impl Outcome {
    fn text(&self) -> String {
        let commands = match self.commands.join(", ") {
            none if none.is_empty() => "none".to_owned(),
            some => some,
        };
        format!("{commands}; {}", self.ending)
    }
}

/// Renders a table of the cases, and checks that exactly the differences have a reason.
fn table(rufio: &[Outcome], ours: &[Outcome], cases: &[cases::Case]) -> String {
    let mut text = String::from("| case | Rufio | the box | reason of a difference |\n");
    text.push_str("|---|---|---|---|\n");
    assert_eq!((rufio.len(), ours.len()), (cases.len(), cases.len()));
    let mut wrong = String::new();
    for ((case, rufio), ours) in cases.iter().zip(rufio).zip(ours) {
        let (rufio, ours) = (rufio.text(), ours.text());
        let is_known = !case.difference.is_empty();
        if (rufio != ours) != is_known {
            let _ = writeln!(wrong, "{}: Rufio {rufio}; the box {ours}", case.name);
        }
        let ours = if is_known { &ours } else { "the same" };
        let _ = writeln!(text, "| {} | {rufio} | {ours} | {} |", case.name, case.difference);
    }
    assert!(wrong.is_empty(), "differences without a reason, or reasons without one:\n{wrong}");
    text
}
