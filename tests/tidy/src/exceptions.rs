//! Exceptions of a law: named places with a reason.

use crate::Violation;

/// Path of a file, name of a function or a constant in it, and the reason.
pub type Exception = (&'static str, &'static str, &'static str);

/// A list of exceptions and which of them were used.
#[derive(Debug)]
pub struct Exceptions<'a> {
    list: &'a [Exception],
    used: Vec<bool>,
}

impl<'a> Exceptions<'a> {
    /// Starts with no exception used.
    pub fn new(list: &'a [Exception]) -> Self {
        Self { list, used: vec![false; list.len()] }
    }

    /// Returns true if the list has an entry for this place, and marks the entry as used.
    pub fn excuse(&mut self, path: &str, name: &str) -> bool {
        let entry = self.list.iter().position(|entry| entry.0 == path && entry.1 == name);
        if let Some(index) = entry {
            self.used[index] = true;
        }
        entry.is_some()
    }

    /// One violation for each entry that excuses nothing.
    pub fn unused(self, law: &str) -> Vec<Violation> {
        let unused = self.list.iter().zip(self.used).filter(|(_, used)| !used);
        let strike = |((path, name, _), _): (&Exception, bool)| {
            let what =
                format!("{name} is not an exception of {law} any more: strike it in tests/tidy");
            Violation::of(path, what)
        };
        unused.map(strike).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_excuses_nothing_is_a_violation() {
        let list = [("a.rs", "b", "why"), ("a.rs", "c", "why")];
        let mut exceptions = Exceptions::new(&list);
        assert!(exceptions.excuse("a.rs", "b"));
        assert!(!exceptions.excuse("b.rs", "b"));
        let unused = exceptions.unused("a law");
        let expected = "a.rs: c is not an exception of a law any more: strike it in tests/tidy";
        assert_eq!(unused.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
    }
}
