//! `pattern`: Go's regular expressions, run by the regex crate.
//!
//! The two share RE2's semantics and most of its syntax. [`syntax`] checks Go's grammar and writes
//! the same expression in the crate's.

mod syntax;

use regex::{Regex, RegexBuilder};

/// The most memory one compiled pattern may take, in bytes.
const MAX_COMPILED_BYTES: usize = 2 * 1024 * 1024;

/// Limits a pattern is compiled within, to learn which one it needs.
const STEPS: [usize; 3] = [16 * 1024, 128 * 1024, MAX_COMPILED_BYTES];

const TOO_LARGE: &str = "error parsing regexp: expression too large";

/// A compiled pattern, or why it does not compile.
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

    /// A pattern, and about how many bytes it takes.
    pub fn measured(text: &str) -> (Self, usize) {
        let mut made = (Self::within(text, STEPS[0]), STEPS[0]);
        for limit in &STEPS[1..] {
            if !made.0.is_too_large() {
                break;
            }
            made = (Self::within(text, *limit), *limit);
        }
        // What does not compile takes nothing.
        let bytes = if made.0.error().is_some() { 0 } else { made.1 };
        (made.0, bytes + text.len())
    }

    fn is_too_large(&self) -> bool {
        self.error() == Some(TOO_LARGE)
    }

    /// A pattern that may not take more than `limit` bytes.
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

    /// The pattern as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Why the pattern does not compile.
    pub fn error(&self) -> Option<&str> {
        self.compiled.as_ref().err().map(String::as_str)
    }

    /// Everything of `text` that matches, from left to right; an error where nothing compiles.
    pub fn matches<'t>(&self, text: &'t str) -> Result<impl Iterator<Item = &'t str>, &str> {
        let regex = self.compiled.as_ref().map_err(String::as_str)?;
        Ok(regex.find_iter(text).map(|found| found.as_str()))
    }

    /// What to say where `text` does not match anywhere.
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
