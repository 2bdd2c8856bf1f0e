//! Keyword `pattern`: Go's regular expressions, run by the regex crate.
//!
//! Go and the crate have RE2's semantics and most of its syntax. [`syntax`] checks Go's grammar and
//! translates the expression.

mod syntax;

use regex::{Regex, RegexBuilder};

/// Maximum memory of one compiled pattern, in bytes.
const MAX_COMPILED_BYTES: usize = 2 * 1024 * 1024;

/// Size limits in bytes, tried in order to measure the size of a compiled pattern.
const STEPS: [usize; 3] = [16 * 1024, 128 * 1024, MAX_COMPILED_BYTES];

const TOO_LARGE: &str = "error parsing regexp: expression too large";

/// Compiled pattern, or the reason why it does not compile.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    text: String,
    compiled: Result<Regex, String>,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Pattern {
    pub fn new(text: &str) -> Self {
        Self::within(text, MAX_COMPILED_BYTES)
    }

    /// Compiles a pattern; also returns its approximate size in bytes.
    pub fn measured(text: &str) -> (Self, usize) {
        let mut made = (Self::within(text, STEPS[0]), STEPS[0]);
        for limit in &STEPS[1..] {
            if !made.0.is_too_large() {
                break;
            }
            made = (Self::within(text, *limit), *limit);
        }
        // A pattern that does not compile counts only with its text.
        let bytes = if made.0.error().is_some() { 0 } else { made.1 };
        (made.0, bytes + text.len())
    }

    fn is_too_large(&self) -> bool {
        self.error() == Some(TOO_LARGE)
    }

    /// Compiles a pattern with a memory limit of `limit` bytes.
    pub fn within(text: &str, limit: usize) -> Self {
        let compiled = syntax::translate(text).and_then(|translated| {
            let built = RegexBuilder::new(&translated).size_limit(limit).build();
            built.map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => TOO_LARGE.to_owned(),
                _ => format!("error parsing regexp: unsupported expression: `{text}`"),
            })
        });
        Self { text: text.to_owned(), compiled }
    }

    /// Returns the pattern in source form.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the reason why the pattern does not compile; `None` if it does.
    pub fn error(&self) -> Option<&str> {
        self.compiled.as_ref().err().map(String::as_str)
    }

    /// Returns all matches in `text`, from left to right; an error if the pattern does not compile.
    pub fn matches<'t>(&self, text: &'t str) -> Result<impl Iterator<Item = &'t str>, &str> {
        let regex = self.compiled.as_ref().map_err(String::as_str)?;
        Ok(regex.find_iter(text).map(|found| found.as_str()))
    }

    /// Returns the message for a `text` without a match; `None` if it matches.
    pub fn refusal(&self, text: &str) -> Option<String> {
        match &self.compiled {
            Ok(regex) if regex.is_match(text) => None,
            Ok(_) => Some(format!("should match '{}'", self.text)),
            Err(error) => {
                Some(format!("should match '{}, but pattern is invalid: {error}'", self.text))
            }
        }
    }
}

#[cfg(test)]
mod tests;
