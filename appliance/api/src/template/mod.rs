//! From a Template to the tasks of a Workflow: Go `text/template`, then YAML.
//!
//! The language is the part of Go's `text/template` that real templates use, with
//! `missingkey=error`, the common functions of Sprig and upstream's four own.
//! What it lacks is refused by name, never guessed:
//! `define`, `template`, `block`, `break`, `continue`.

mod data;
mod document;
mod eval;
mod functions;
mod lex;
mod parse;
mod printf;
mod weight;

pub use data::data;
pub use document::{Document, DocumentError, parse};

use serde_json::Value;

/// The largest rendered text, in bytes (upstream's limit).
pub const OUTPUT_BYTES_MAX: usize = 256 * 1024;

/// Why a template cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("template line {line}: {message}")]
pub struct RenderError {
    /// Line of the template, from 1.
    pub line: usize,
    /// What is wrong there.
    pub message: String,
}

/// Render a template with `data` as its dot.
///
/// # Errors
/// [`RenderError`] with the line: broken syntax, a key that is not there, a function that fails,
/// more than [`OUTPUT_BYTES_MAX`] of output.
pub fn render(text: &str, data: &Value) -> Result<String, RenderError> {
    let nodes = parse::parse(lex::lex(text)?)?;
    eval::render(&nodes, data)
}

#[cfg(test)]
mod tests;
