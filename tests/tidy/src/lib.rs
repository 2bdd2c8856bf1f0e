//! The laws of the house, as tests that read the tree: allowed imports, maximum sizes, forbidden
//! words, and permitted dependencies of the product.
//!
//! Must never: excuse existing breaches (an exception is a named entry with its reason, and an
//! entry that excuses nothing is itself a violation). Plain language and sizes of crates were added
//! later and have figures that may only fall (`ratchet`). Must never change a file of the tree but
//! `ratchets.toml`, with `LOWER=1`.
//!
//! Enter at `tests/laws.rs`, which checks the tree against each law. Each law is a function from
//! the tree to its violations, tested beside it with planted ones.

pub mod acceptance;
pub mod counts;
pub mod exceptions;
pub mod features;
pub mod findings;
pub mod floors;
pub mod language;
pub mod manifest;
pub mod places;
pub mod prose;
pub mod ratchet;
pub mod rooms;
pub mod scripts;
pub mod seeds;
pub mod shape;
pub mod source;
pub mod supply;
pub mod targets;
pub mod tree;
pub mod unsafety;
pub mod waits;
pub mod words;

use std::fmt;

/// One breach of a law.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Path of the file, from the root of the tree.
    pub path: String,
    /// Line, from 1; 0 for the whole file.
    pub line: usize,
    /// Description of the breach and of the correct form.
    pub what: String,
}

impl Violation {
    /// Creates a breach at one line.
    pub fn at(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }

    /// Creates a breach by a file as a whole.
    pub fn of(path: &str, what: impl Into<String>) -> Self {
        Self::at(path, 0, what)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.what),
            line => write!(f, "{}:{line}: {}", self.path, self.what),
        }
    }
}
