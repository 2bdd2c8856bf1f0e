//! Go's `text/template` with Tinkerbell's functions: Sprig's functions with repeatable results, and
//! four of Tinkerbell. Uses the option `missingkey=error`.
//!
//! Never: I/O, a clock, chance, the environment. A template is untrusted text, so it may not cause
//! a panic, run long or fill the memory. Every limit is a named constant of [`limits`].
//!
//! Enter at [`render`] and [`check`]; `parse` makes the tree, `exec` walks it, `functions` is
//! the table of callable functions.

mod exec;
mod function;
mod functions;
mod json;
pub mod limits;
mod number;
mod parse;
mod pattern;
mod print;
mod unquote;
mod url;
mod value;
mod version;
mod yaml;

use serde_json::Value;

/// Fields of the dot (`.`) that are Go structs in Tinkerbell, not decoded JSON
/// (tink/controller/internal/workflow/hardware.go).
pub const STRUCTS: &[&str] = &["Hardware"];

/// Returns name and parameters of each function that a template can call; no name twice.
pub fn functions() -> Vec<(&'static str, String)> {
    let mut functions: Vec<(&'static str, String)> = Vec::new();
    for function in functions::all() {
        if !functions.iter().any(|(name, _)| *name == function.name) {
            functions.push((function.name, function.parameters()));
        }
    }
    functions
}

/// Returns the names of Sprig's functions that are refused, with the reason.
pub fn refused_functions() -> Vec<(&'static str, &'static str)> {
    functions::refused().collect()
}

/// Reason why a template cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("template line {line}: {message}")]
pub struct RenderError {
    /// Line in the template, from 1.
    pub line: usize,
    /// Description of the mistake. Never contains a value of the data, which may be secret.
    pub message: String,
}

impl RenderError {
    fn new(line: usize, message: impl Into<String>) -> Self {
        let message: String = message.into();
        let message = message.chars().take(limits::MESSAGE_CHARS_MAX).collect();
        RenderError { line, message }
    }
}

/// Renders a template with `data` as its dot (`.`). Numbers become `float64`, as in Go's
/// `encoding/json`; whole numbers below the fields of [`STRUCTS`] become `int64`.
///
/// # Errors
/// [`RenderError`] with the line: invalid syntax, a missing key, a failed function, or an exceeded
/// limit of [`limits`].
pub fn render(text: &str, data: &Value) -> Result<String, RenderError> {
    exec::render(&parse::parse(text)?, data, STRUCTS)
}

/// Checks a template without data: syntax, variables and function names.
///
/// # Errors
/// [`RenderError`] with the line.
pub fn check(text: &str) -> Result<(), RenderError> {
    parse::parse(text).map(drop)
}

#[cfg(test)]
mod tests;
