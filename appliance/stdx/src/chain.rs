//! Text of one line for an error and all its causes.

use std::error::Error;

/// Formats an error and its causes: `error: cause: cause`. A cause is left out if the line already
/// ends with its text.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        if !line.ends_with(&text) {
            line.push_str(": ");
            line.push_str(&text);
        }
        source = cause.source();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::chain;
    use std::io;

    #[derive(Debug)]
    struct Outer(io::Error);

    impl std::fmt::Display for Outer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("cannot open the store")
        }
    }

    impl std::error::Error for Outer {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn joins_causes() {
        let error = Outer(io::Error::other("disk is full"));
        assert_eq!(chain(&error), "cannot open the store: disk is full");
    }
}
