//! Hints of errors: advice for the person who reads the error, apart from its text.

use std::error::Error;

use crate::chain;

/// An error that may advise the person who reads it.
pub trait Hint {
    /// Advice as a sentence without a full stop; `None` if there is none.
    fn hint(&self) -> Option<&str>;
}

/// An error with its causes, and its hint on a line of its own (`hint: …`), for interfaces that
/// carry one text.
pub fn with_hint<E: Error + Hint + 'static>(error: &E) -> String {
    match error.hint() {
        Some(hint) => format!("{}\nhint: {hint}", chain(error)),
        None => chain(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::{Error, Hint, with_hint};

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
    fn a_hint_has_a_line_of_its_own() {
        let advised = with_hint(&Unread(Some("replace it")));
        assert_eq!(advised, "cannot read the disk\nhint: replace it");
        assert_eq!(with_hint(&Unread(None)), "cannot read the disk");
    }
}
