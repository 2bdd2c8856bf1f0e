//! Hints of errors: advice for the person who reads the error, separate from the error's text.

use std::error::Error;

use crate::chain;

/// Error that may have a hint for the person who reads it.
pub trait Hint {
    /// Returns the advice as a sentence without a full stop, or `None` if there is no advice.
    fn hint(&self) -> Option<&str>;
}

/// Separator of an error and its hint in one text.
const BETWEEN: &str = "\nhint: ";

/// Formats an error with its causes, and its hint on a separate line (`hint: …`), for interfaces
/// that transport one text.
pub fn with_hint<E: Error + Hint + 'static>(error: &E) -> String {
    match error.hint() {
        Some(hint) => format!("{}{BETWEEN}{hint}", chain(error)),
        None => chain(error),
    }
}

/// Formats an error with its causes, and its hint, as sentences for a page.
pub fn sentences<E: Error + Hint + 'static>(error: &E) -> String {
    let why = sentence(&chain(error));
    match error.hint() {
        Some(hint) => format!("{why} {}", sentence(hint)),
        None => why,
    }
}

/// Makes a phrase a sentence: with a capital letter, and a full stop unless it has one.
pub fn sentence(phrase: &str) -> String {
    let mut chars = phrase.chars();
    let first = chars.next().map(|char| char.to_uppercase().to_string()).unwrap_or_default();
    let stop = if phrase.ends_with('.') { "" } else { "." };
    format!("{first}{}{stop}", chars.as_str())
}

/// Splits a text of [`with_hint`] into the error and its hint, `None` if the text has no hint.
pub fn split_hint(text: &str) -> (&str, Option<&str>) {
    match text.split_once(BETWEEN) {
        Some((error, hint)) => (error, Some(hint)),
        None => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::{Error, Hint, sentences, split_hint, with_hint};

    #[derive(Debug)]
    struct Unread(Option<&'static str>);

    impl fmt::Display for Unread {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("cannot read the disk")
        }
    }

    impl Error for Unread {}

    impl Hint for Unread {
        fn hint(&self) -> Option<&str> {
            self.0
        }
    }

    #[test]
    fn a_page_has_the_error_and_its_hint_as_sentences() {
        let advised = sentences(&Unread(Some("replace it")));
        assert_eq!(advised, "Cannot read the disk. Replace it.");
        assert_eq!(sentences(&Unread(Some("Wait."))), "Cannot read the disk. Wait.");
        assert_eq!(sentences(&Unread(None)), "Cannot read the disk.");
    }

    #[test]
    fn a_hint_has_a_line_of_its_own() {
        let advised = with_hint(&Unread(Some("replace it")));
        assert_eq!(advised, "cannot read the disk\nhint: replace it");
        assert_eq!(split_hint(&advised), ("cannot read the disk", Some("replace it")));
        let plain = with_hint(&Unread(None));
        assert_eq!((plain.as_str(), split_hint(&plain)), ("cannot read the disk", (&*plain, None)));
    }
}
