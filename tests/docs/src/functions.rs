//! `docs/reference/template-functions.md`: what a Template can call.

use crate::page::{cell, head};

const ABOUT: &str = "\
Go's `text/template` language works as in Go, with `missingkey=error`. The functions are Go's, \
Sprig's repeatable ones, and Tinkerbell's. Types are Go's. Another page lists the \
[differences](differences.md).";

/// Returns the page as Markdown text.
pub fn page() -> String {
    let mut text = head("Template functions", ABOUT);
    text.push_str("\n| function | parameters |\n|---|---|\n");
    let mut functions = template::functions();
    functions.sort_unstable();
    for (name, parameters) in functions {
        text.push_str(&format!("| `{name}` | {} |\n", cell(&parameters)));
    }
    text.push_str("\n## Refused\n\n| function | reason |\n|---|---|\n");
    for (name, why) in template::refused_functions() {
        text.push_str(&format!("| `{name}` | {} |\n", cell(why)));
    }
    text
}
