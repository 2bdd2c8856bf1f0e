//! Character classes: `[…]`, `\d` and similar, `\p{…}`.

use regex::Regex;

use super::{MAX_CLASS_NAME, Reader, push_class_char, refused};

/// POSIX classes, without colons.
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

impl<'a> Reader<'a> {
    pub(super) fn class(&mut self) -> Result<(), String> {
        let before = self.rest;
        self.advance(1);
        let mut class = String::from("[");
        if self.rest.starts_with('^') {
            self.advance(1);
            class.push('^');
        }
        let mut first = true;
        while first || !self.rest.starts_with(']') {
            first = false;
            self.class_item(before, &mut class)?;
        }
        self.advance(1);
        class.push(']');
        self.push_operand(&class);
        Ok(())
    }

    fn class_item(&mut self, whole: &'a str, class: &mut String) -> Result<(), String> {
        if self.rest.starts_with("[:")
            && let Some(end) = self.rest[2..].find(":]")
        {
            let named = &self.rest[..end + 4];
            let name = &named[2..end + 2];
            let known = POSIX.contains(&name.strip_prefix('^').unwrap_or(name));
            if !known {
                return Err(refused("invalid character class range", named));
            }
            class.push_str(named);
            self.advance(named.len());
            return Ok(());
        }
        let mut chars = self.rest.chars();
        if let (Some('\\'), Some(c @ ('d' | 'D' | 's' | 'S' | 'w' | 'W' | 'p' | 'P'))) =
            (chars.next(), chars.next())
        {
            return self.class_escape(c, class);
        }
        let before = self.rest;
        let low = self.class_char(whole)?;
        push_class_char(class, low);
        let is_range =
            self.rest.starts_with('-') && !matches!(self.rest, "-") && !self.rest.starts_with("-]");
        if is_range {
            self.advance(1);
            let high = self.class_char(whole)?;
            if high < low {
                let part = self.read_since(before);
                return Err(refused("invalid character class range", part));
            }
            class.push('-');
            push_class_char(class, high);
        }
        Ok(())
    }

    fn class_char(&mut self, whole: &'a str) -> Result<char, String> {
        match self.rest.chars().next() {
            None => Err(refused("missing closing ]", whole)),
            Some('\\') => self.escaped_char(),
            Some(c) => {
                self.advance(c.len_utf8());
                Ok(c)
            }
        }
    }

    /// Reads the escape of the class `c`, such as `\d`, and appends it to the contents of a class.
    pub(super) fn class_escape(&mut self, c: char, class: &mut String) -> Result<(), String> {
        if matches!(c, 'p' | 'P') {
            return self.unicode_class(c, class);
        }
        self.advance(2);
        class.push_str(match c {
            'd' => "0-9",
            'D' => "[^0-9]",
            's' => r"\t\n\x0c\r\x20",
            'S' => r"[^\t\n\x0c\r\x20]",
            'w' => "0-9A-Za-z_",
            _ => "[^0-9A-Za-z_]",
        });
        Ok(())
    }

    fn unicode_class(&mut self, c: char, class: &mut String) -> Result<(), String> {
        let before = self.rest;
        self.advance(2);
        let name = match self.rest.strip_prefix('{') {
            Some(after) => {
                let Some((name, rest)) = after.split_once('}') else {
                    return Err(refused("invalid character class range", before));
                };
                self.rest = rest;
                name
            }
            None => {
                let length = self.rest.chars().next().map_or(0, char::len_utf8);
                let (name, rest) = self.rest.split_at(length);
                self.rest = rest;
                name
            }
        };
        let (negated, name) = match name.strip_prefix('^') {
            Some(name) => (c == 'p', name),
            None => (c == 'P', name),
        };
        let is_name = |c: char| c == '_' || c.is_ascii_alphabetic();
        let written = format!("\\{}{{{name}}}", if negated { 'P' } else { 'p' });
        let known = !name.is_empty()
            && name.len() <= MAX_CLASS_NAME
            && name.chars().all(is_name)
            && Regex::new(&written).is_ok();
        if !known {
            return Err(refused("invalid character class range", self.read_since(before)));
        }
        class.push_str(&written);
        Ok(())
    }
}
