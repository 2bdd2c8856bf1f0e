//! Leaves of a document, and tests of a leaf.

use regex::Regex;

use crate::glob::Glob;

/// Leaf of a document: a value that is neither an object nor an array.
#[derive(Debug, Clone, PartialEq)]
pub enum Leaf {
    Null,
    Bool(bool),
    /// Bits of a `float64`, so that 0 and -0 differ.
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
    /// The leaf equals the value.
    Exactly(Leaf),
    /// The leaf is a string with the prefix.
    Prefix(String),
    /// The leaf is not one of the strings. A leaf of another type passes.
    AnythingBut(Vec<String>),
    /// The leaf is the string, with upper and lower case as equal.
    IgnoreCase(String),
    /// The leaf is a string that the glob matches.
    Glob(Glob),
    /// The leaf is a string that the expression matches as a whole.
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

/// Returns true if the texts are equal apart from case. Compares letter by letter; a letter whose
/// other case has several letters (`ß`) equals only itself.
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
