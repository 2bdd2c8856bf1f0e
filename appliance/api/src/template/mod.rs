//! From a Template to the tasks of a Workflow: Go `text/template`, then YAML.

mod document;

pub use document::{Document, DocumentError, parse};
