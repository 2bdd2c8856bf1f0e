//! Text that can be shown anywhere: without control characters and of limited length.

mod plain;

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

pub use plain::{TEXT_CHARS_MAX, plain, plain_within};

/// Line of text without control characters, of at most [`TEXT_CHARS_MAX`] characters and an
/// ellipsis. Every constructor cleans its input with [`plain()`].
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Text(String);

impl Text {
    /// Borrows the text as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(plain(text))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(plain(&text))
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.0
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
