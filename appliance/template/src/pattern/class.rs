//! Character classes: `[…]`, `\d` and similar, `\p{…}`.

use super::{Translator, unicode};

/// Names of the POSIX classes.
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

fn bad_range() -> String {
    "invalid character class range".to_owned()
}

impl Translator<'_> {
    pub(super) fn class(&mut self) -> Result<(), String> {
        self.out.push('[');
        if self.skips("^") {
            self.out.push('^');
        }
        let mut is_first = true;
        while is_first || !self.rest.starts_with(']') {
            is_first = false;
            self.item()?;
        }
        self.next();
        self.out.push(']');
        Ok(())
    }

    /// Parses a character, a range or a class within a class.
    fn item(&mut self) -> Result<(), String> {
        if let Some(named) = self.rest.strip_prefix("[:")
            && let Some((name, rest)) = named.split_once(":]")
        {
            if !POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
                return Err(bad_range());
            }
            self.out.push_str(&format!("[:{name}:]"));
            self.rest = rest;
            return Ok(());
        }
        if self.rest.starts_with('\\') {
            let before = self.rest;
            self.next();
            if let Some(class) = self.named_class()? {
                self.out.push_str(&class);
                return Ok(());
            }
            self.rest = before;
        }
        let low = self.member()?;
        self.character(low);
        let is_range = self.rest.starts_with('-') && self.rest != "-";
        if is_range && !self.rest.starts_with("-]") {
            self.next();
            let high = self.member()?;
            if high < low {
                return Err(bad_range());
            }
            self.out.push('-');
            self.character(high);
        }
        Ok(())
    }

    fn member(&mut self) -> Result<char, String> {
        match self.next() {
            None => Err("missing closing ]".to_owned()),
            Some('\\') => self.escaped(),
            Some(c) => Ok(c),
        }
    }

    /// Returns the contents of a class for `\d`, `\pL` and similar, after the backslash. Returns
    /// `None` for another escape.
    pub(super) fn named_class(&mut self) -> Result<Option<String>, String> {
        let inner = match self.rest.chars().next() {
            Some(c @ ('p' | 'P')) => {
                self.next();
                return self.unicode_class(c == 'P').map(Some);
            }
            Some('d') => "0-9",
            Some('D') => "[^0-9]",
            Some('s') => "\\t\\n\\x0C\\r\\x20",
            Some('S') => "[^\\t\\n\\x0C\\r\\x20]",
            Some('w') => "0-9A-Za-z_",
            Some('W') => "[^0-9A-Za-z_]",
            _ => return Ok(None),
        };
        self.next();
        Ok(Some(inner.to_owned()))
    }

    /// Parses the name after `\p`: `L`, `{Greek}`, `{^Lu}`.
    fn unicode_class(&mut self, is_negated: bool) -> Result<String, String> {
        let rest = self.rest;
        let name = match rest.strip_prefix('{') {
            Some(after) => {
                let (name, rest) = after.split_once('}').ok_or_else(bad_range)?;
                self.rest = rest;
                name
            }
            None => {
                self.next();
                &rest[..rest.len() - self.rest.len()]
            }
        };
        let (name, is_negated) = match name.strip_prefix('^') {
            Some(name) => (name, !is_negated),
            None => (name, is_negated),
        };
        let name = unicode::class(name).ok_or_else(bad_range)?;
        Ok(format!("\\{}{{{name}}}", if is_negated { 'P' } else { 'p' }))
    }
}
