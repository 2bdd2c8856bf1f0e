//! Go's `text/template` with Tinkerbell's functions: Sprig's repeatable ones and four of its own,
//! with `missingkey=error`.
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

/// Fields of the dot that are structs in Tinkerbell's Go, and no JSON
/// (tink/controller/internal/workflow/hardware.go).
pub const STRUCTS: &[&str] = &["Hardware"];

/// Names of the functions that a template can call, with their parameters, each name once.
pub fn functions() -> Vec<(&'static str, String)> {
    let mut functions: Vec<(&'static str, String)> = Vec::new();
    for function in functions::all() {
        if !functions.iter().any(|(name, _)| *name == function.name) {
            functions.push((function.name, function.parameters()));
        }
    }
    functions
}

/// Names of Sprig's functions that are refused, with the reason.
pub fn refused_functions() -> Vec<(&'static str, &'static str)> {
    functions::refused().collect()
}

/// Reason why a template cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("template line {line}: {message}")]
pub struct RenderError {
    /// Line of the template, from 1.
    pub line: usize,
    /// Description of the mistake. It names fields and types, never a value, which may be a secret.
    pub message: String,
}

impl RenderError {
    fn new(line: usize, message: impl Into<String>) -> Self {
        let message: String = message.into();
        let message = message.chars().take(limits::MESSAGE_CHARS_MAX).collect();
        RenderError { line, message }
    }
}

/// Render a template with `data` as its dot. Numbers of `data` are what Go's `encoding/json` makes
/// of them, `float64`; below the fields that [`STRUCTS`] names, whole ones are `int64`.
///
/// # Errors
/// [`RenderError`] with the line: broken syntax, a key that is not there, a function that fails,
/// more than one of the [`limits`].
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
