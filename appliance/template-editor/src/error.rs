//! Errors of the editor, as sentences for a person.

use machine_actions::ActionError;
use objects::ObjectError;
use stdx::Hint;
use template_library::LibraryError;
use thiserror::Error;

/// Reason why a Template was not read, rendered or stored.
#[derive(Debug, Error)]
pub enum EditError {
    /// The name cannot be the name of an object.
    #[error("{0:?} is not a valid name: expected lower-case letters, digits, hyphens and dots")]
    Name(String),
    /// The text is larger than the limit.
    #[error("the template is larger than {0}")]
    TooLarge(String),
    /// Another client changed the Template after the person read it.
    #[error("another person changed template {0} meanwhile")]
    Changed(String),
    /// Workflows that have not ended use the Template.
    #[error("template {name} is used by {workflows}")]
    InUse {
        /// Name of the Template.
        name: String,
        /// Names of the workflows, separated by commas.
        workflows: String,
    },
    /// The Template cannot be rendered for the machine.
    #[error("the template cannot be rendered for {machine}: {why}")]
    Render {
        /// Name of the machine.
        machine: String,
        /// Error of the template engine, with its line.
        why: String,
    },
    /// The template of the library cannot be used.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// The networks of the box cannot be read.
    #[error(transparent)]
    Action(#[from] ActionError),
    /// An object could not be read or written.
    #[error(transparent)]
    Object(#[from] ObjectError),
}

impl Hint for EditError {
    fn hint(&self) -> Option<&str> {
        Some(match self {
            Self::Name(_) => "choose another name",
            Self::TooLarge(_) => "put files into the image, or fetch them from a server",
            Self::Changed(_) => "open the template again, and repeat the change",
            Self::InUse { .. } => "wait for the workflows, or cancel them",
            Self::Render { .. } => "correct the template, or the fields of the machine",
            Self::Library(error) => return error.hint(),
            Self::Action(error) => return error.hint(),
            Self::Object(error) => return error.hint(),
        })
    }
}
