//! Errors of the catalog, as sentences for a person.

use std::borrow::Cow;

use machine_install::InstallError;
use objects::ObjectError;
use stdx::Hint;
use thiserror::Error;

/// Invalid field of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// Name of the field in the form: `checksum`.
    pub field: &'static str,
    /// Cause and remedy, as a sentence.
    pub why: String,
}

/// Reason why an OSImage was not read, stored or installed.
#[derive(Debug, Error)]
pub enum CatalogError {
    /// Fields of the form are not valid.
    #[error("{}", .0.iter().map(|it| it.why.as_str()).collect::<Vec<_>>().join(" "))]
    Fields(Vec<FieldError>),
    /// Another OSImage has this name.
    #[error("an OS image is called {0}")]
    Taken(String),
    /// No OSImage has this name.
    #[error("no OS image is called {0}")]
    Missing(String),
    /// The OSImage cannot be installed.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// An object could not be read or written.
    #[error(transparent)]
    Object(#[from] ObjectError),
}

impl CatalogError {
    /// Returns the errors of single fields, to show beside them; empty for other errors.
    pub fn fields(&self) -> Cow<'_, [FieldError]> {
        match self {
            Self::Fields(fields) => fields.into(),
            Self::Taken(_) => vec![FieldError { field: "name", why: stdx::sentences(self) }].into(),
            _ => Cow::default(),
        }
    }
}

impl Hint for CatalogError {
    fn hint(&self) -> Option<&str> {
        match self {
            Self::Fields(_) => None,
            Self::Taken(_) => Some("choose another name, or delete that one"),
            Self::Missing(_) => Some("reload the page"),
            Self::Install(error) => error.hint(),
            Self::Object(error) => error.hint(),
        }
    }
}
