//! Errors of the catalog, as sentences for a person.

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
    pub(crate) fn taken(name: &str) -> Self {
        let why = format!("An OS image is called {name}. Choose another name, or delete that one.");
        Self::Fields(vec![FieldError { field: "name", why }])
    }
}

impl Hint for CatalogError {
    fn hint(&self) -> Option<&str> {
        match self {
            Self::Fields(_) => None,
            Self::Missing(_) => Some("reload the page"),
            Self::Install(error) => error.hint(),
            Self::Object(error) => error.hint(),
        }
    }
}
