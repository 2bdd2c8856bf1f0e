//! Errors of changes of the settings.

use std::io;

use config::mistakes::Mistake;
use stdx::Hint;

/// Reason why a change of the settings was refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The change is not based on the current text.
    #[error(
        "another change of the settings was saved first: the ETag is now {found}, and this change \
         is based on {based}"
    )]
    Changed {
        /// Sum of the current text.
        found: String,
        /// Sum of the text that the change is based on.
        based: String,
    },
    /// The new text has mistakes, which are all listed.
    #[error("the new settings have mistakes:{}", listed(.0))]
    Mistakes(Vec<Mistake>),
    /// The request is not valid. The text is the reason.
    #[error("{0}")]
    Unwanted(String),
    /// No revision has this number.
    #[error("revision {0} does not exist; `tinbox box settings history` lists all revisions")]
    NoRevision(u32),
    /// The revisions in the state folder cannot be read or written.
    #[error("cannot read or write the revisions of the settings")]
    History(#[source] io::Error),
    /// The text on the boot volume cannot be read or written.
    #[error(transparent)]
    Volume(platform::Error),
}

impl Hint for SettingsError {
    fn hint(&self) -> Option<&str> {
        match self {
            Self::Changed { .. } => Some("read the settings again, then repeat the change"),
            Self::Volume(error) => error.hint(),
            Self::Mistakes(_) | Self::Unwanted(_) | Self::NoRevision(_) | Self::History(_) => None,
        }
    }
}

fn listed(mistakes: &[Mistake]) -> String {
    mistakes.iter().map(|mistake| format!("\n  {mistake}")).collect()
}
