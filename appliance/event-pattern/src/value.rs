//! One leaf against one thing that it may be.

use regex::Regex;

use crate::glob::Glob;

/// A leaf of a document.
#[derive(Debug, Clone, PartialEq)]
pub enum Leaf {
    Null,
    Bool(bool),
    /// The bits of a `float64`: a zero has a sign.
    Number(u64),
    Text(String),
}

impl Leaf {
    pub fn number(number: f64) -> Self {
        Self::Number(number.to_bits())
    }
}

/// Test of a leaf.
#[derive(Debug, Clone)]
pub enum Test {
    /// Equal to this value.
    Exactly(Leaf),
    /// A string that begins so.
    Prefix(String),
    /// None of these strings. A value that is not a string matches.
    AnythingBut(Vec<String>),
    /// This string, in capitals or not.
    IgnoreCase(String),
    /// A string of this shape.
    Glob(Glob),
    /// A string that the whole expression describes.
    Regexp(Regex),
}

impl Test {
    pub fn fits(&self, leaf: &Leaf) -> bool {
        match (self, leaf) {
            (Self::Exactly(wanted), leaf) => wanted == leaf,
            (Self::AnythingBut(list), Leaf::Text(text)) => !list.contains(text),
            (Self::AnythingBut(_), _) => true,
            (Self::Prefix(prefix), Leaf::Text(text)) => text.starts_with(prefix),
            (Self::IgnoreCase(wanted), Leaf::Text(text)) => same_letters(wanted, text),
            (Self::Glob(glob), Leaf::Text(text)) => glob.fits(text),
            (Self::Regexp(regexp), Leaf::Text(text)) => regexp.is_match(text),
            _ => false,
        }
    }
}

/// Letter by letter; those whose other case is more than one letter have no other case.
fn same_letters(wanted: &str, text: &str) -> bool {
    let mut letters = text.chars();
    let same = wanted.chars().all(|wanted| {
        letters.next().is_some_and(|letter| {
            letter == wanted
                || single(wanted.to_lowercase()) == Some(letter)
                || single(wanted.to_uppercase()) == Some(letter)
        })
    });
    same && letters.next().is_none()
}

fn single(mut letters: impl Iterator<Item = char>) -> Option<char> {
    let first = letters.next()?;
    letters.next().is_none().then_some(first)
}
