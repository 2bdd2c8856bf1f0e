//! Templates as a person edits them: list, check, rendering for a machine, and storing.
//!
//! Never: changes a workflow that uses a Template, or stores a text over one that the person did
//! not see.
//!
//! Enter at [`TemplateEditor`] and [`check`].

mod check;
mod editor;
mod error;

pub use check::{CheckedTemplate, check};
pub use editor::{LibraryEntry, StoredTemplate, TEXT_BYTES_MAX, TemplateEditor, TemplateSummary};
pub use error::EditError;
