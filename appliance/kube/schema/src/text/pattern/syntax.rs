//! Check of Go's `regexp/syntax`, and translation to the syntax of the regex crate.
//!
//! Differences: in Go, `\d`, `\w`, `\s` and `\b` are ASCII. `[` and `&&` inside of a class are
//! literal, and so is a `{` that begins no repetition. Go has `\Q…\E` and octal escapes. A
//! repetition of a repetition (`a**`) is an error, and the maximum count is 1000.

mod class;

use std::fmt::Write as _;

/// Maximum count of a repetition.
const MAX_REPEAT: u32 = 1_000;
/// Maximum depth of nested groups; Go's own limit is 1000.
const MAX_NESTING: usize = 200;
/// Maximum length of the name of a Unicode class; the longest script name has 22 letters.
const MAX_CLASS_NAME: usize = 40;

/// Translates an expression for the regex crate; the error is Go's message.
pub(crate) fn translate(text: &str) -> Result<String, String> {
    let mut reader = Reader {
        whole: text,
        rest: text,
        out: String::with_capacity(text.len()),
        depth: 0,
        has_operand: false,
        last_repeat: None,
    };
    reader.expression()?;
    Ok(reader.out)
}

fn refused(code: &str, part: &str) -> String {
    format!("error parsing regexp: {code}: `{part}`")
}

struct Reader<'a> {
    whole: &'a str,
    rest: &'a str,
    out: String,
    depth: usize,
    /// True if an element precedes that a repetition can apply to.
    has_operand: bool,
    /// Rest of the text, from the repetition directly before the position, if there is one.
    last_repeat: Option<&'a str>,
}

impl<'a> Reader<'a> {
    fn expression(&mut self) -> Result<(), String> {
        while let Some(c) = self.rest.chars().next() {
            let before = self.rest;
            let mut repeated = false;
            match c {
                '(' => self.group()?,
                '|' => {
                    self.advance(1);
                    self.out.push('|');
                    self.has_operand = false;
                }
                ')' => {
                    if self.depth == 0 {
                        return Err(refused("unexpected )", self.whole));
                    }
                    self.depth -= 1;
                    self.advance(1);
                    self.push_operand(")");
                }
                '^' | '$' | '.' => {
                    self.advance(1);
                    self.push_operand(c.encode_utf8(&mut [0; 4]));
                }
                '[' => self.class()?,
                '*' | '+' | '?' => {
                    self.advance(1);
                    self.out.push(c);
                    self.repeat(before)?;
                    repeated = true;
                }
                '{' => repeated = self.counted_repeat()?,
                '\\' => self.escape()?,
                other => {
                    self.advance(other.len_utf8());
                    self.push_literal(other);
                }
            }
            self.last_repeat = repeated.then_some(before);
        }
        match self.depth {
            0 => Ok(()),
            _ => Err(refused("missing closing )", self.whole)),
        }
    }

    fn advance(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    fn push_operand(&mut self, text: &str) {
        self.out.push_str(text);
        self.has_operand = true;
    }

    fn push_literal(&mut self, c: char) {
        let escaped = regex::escape(c.encode_utf8(&mut [0; 4]));
        self.push_operand(&escaped);
    }

    /// Returns the text that was read since `before`, an earlier rest.
    fn read_since(&self, before: &'a str) -> &'a str {
        &before[..before.len() - self.rest.len()]
    }

    /// Reads the `?` after a repetition operator, and checks that the operator can be applied.
    fn repeat(&mut self, before: &'a str) -> Result<(), String> {
        if self.rest.starts_with('?') {
            self.advance(1);
            self.out.push('?');
        }
        if let Some(last) = self.last_repeat {
            let part = self.read_since(last);
            return Err(refused("invalid nested repetition operator", part));
        }
        match self.has_operand {
            true => Ok(()),
            false => {
                let part = self.read_since(before);
                Err(refused("missing argument to repetition operator", part))
            }
        }
    }

    /// Reads `{n}`, `{n,}` or `{n,m}` and returns true; otherwise, `{` is a literal character.
    fn counted_repeat(&mut self) -> Result<bool, String> {
        let before = self.rest;
        let Some((min, max, length)) = counts(before) else {
            self.advance(1);
            self.push_literal('{');
            return Ok(false);
        };
        self.advance(length);
        let too_large = |count: u32| count > MAX_REPEAT;
        if too_large(min) || max.is_some_and(|max| too_large(max) || min > max) {
            return Err(refused("invalid repeat count", self.read_since(before)));
        }
        self.out.push_str(self.read_since(before));
        self.repeat(before)?;
        Ok(true)
    }

    fn open(&mut self, text: &str) -> Result<(), String> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return Err(refused("expression nests too deeply", self.whole));
        }
        self.out.push_str(text);
        self.has_operand = false;
        Ok(())
    }

    fn group(&mut self) -> Result<(), String> {
        if !self.rest.starts_with("(?") {
            self.advance(1);
            return self.open("(");
        }
        let before = self.rest;
        let name = ["(?P<", "(?<"].iter().find_map(|prefix| before.strip_prefix(*prefix));
        if let Some(after) = name {
            let Some((name, rest)) = after.split_once('>') else {
                return Err(refused("invalid named capture", before));
            };
            self.rest = rest;
            let is_word = |c: char| c == '_' || c.is_ascii_alphanumeric();
            if name.is_empty() || !name.chars().all(is_word) {
                return Err(refused("invalid named capture", self.read_since(before)));
            }
            // Captures are not used, and the crate has stricter rules for their names.
            return self.open("(");
        }
        self.flags(before)
    }

    /// Reads `(?flags)` or `(?flags:`.
    fn flags(&mut self, before: &'a str) -> Result<(), String> {
        self.advance(2);
        let mut negated = false;
        let mut seen = false;
        while let Some(c) = self.rest.chars().next() {
            self.advance(c.len_utf8());
            match c {
                'i' | 'm' | 's' | 'U' => seen = true,
                '-' if !negated => {
                    negated = true;
                    seen = false;
                }
                ':' | ')' if !negated || seen => {
                    let read = self.read_since(before);
                    if c == ':' {
                        return self.open(read);
                    }
                    if read != "(?)" {
                        self.out.push_str(read);
                    }
                    return Ok(());
                }
                _ => break,
            }
        }
        Err(refused("invalid or unsupported Perl syntax", self.read_since(before)))
    }

    fn escape(&mut self) -> Result<(), String> {
        let mut chars = self.rest.chars();
        chars.next();
        let Some(c) = chars.next() else {
            return Err("error parsing regexp: trailing backslash at end of expression: ``".into());
        };
        let plain = match c {
            'A' => r"\A",
            'z' => r"\z",
            'b' => r"(?-u:\b)",
            'B' => r"(?-u:\B)",
            _ => "",
        };
        if !plain.is_empty() {
            self.advance(2);
            self.push_operand(plain);
            return Ok(());
        }
        match c {
            'C' => Err(refused("invalid escape sequence", r"\C")),
            'Q' => {
                self.advance(2);
                let (literal, rest) = self.rest.split_once(r"\E").unwrap_or((self.rest, ""));
                literal.chars().for_each(|c| self.push_literal(c));
                self.rest = rest;
                Ok(())
            }
            'd' | 'D' | 's' | 'S' | 'w' | 'W' | 'p' | 'P' => {
                let mut class = String::from("[");
                self.class_escape(c, &mut class)?;
                class.push(']');
                self.push_operand(&class);
                Ok(())
            }
            _ => {
                let c = self.escaped_char()?;
                self.push_literal(c);
                Ok(())
            }
        }
    }

    /// Reads an escape of one character.
    fn escaped_char(&mut self) -> Result<char, String> {
        let before = self.rest;
        self.advance(1);
        let Some(c) = self.rest.chars().next() else {
            return Err("error parsing regexp: trailing backslash at end of expression: ``".into());
        };
        self.advance(c.len_utf8());
        let value = match c {
            'a' => Some('\u{7}'),
            'f' => Some('\u{c}'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'v' => Some('\u{b}'),
            'x' => self.hex(),
            '0' => self.octal(0),
            // A single digit would be a back reference.
            '1'..='7' if self.rest.starts_with(|c| ('0'..='7').contains(&c)) => {
                self.octal(u32::from(c) - u32::from('0'))
            }
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(c),
            _ => None,
        };
        value.ok_or_else(|| refused("invalid escape sequence", self.read_since(before)))
    }

    fn octal(&mut self, first: u32) -> Option<char> {
        let mut value = first;
        for _ in 0..2 {
            let Some(digit) = self.rest.chars().next().and_then(|c| c.to_digit(8)) else { break };
            self.advance(1);
            value = value * 8 + digit;
        }
        char::from_u32(value)
    }

    fn hex(&mut self) -> Option<char> {
        let digits = match self.rest.strip_prefix('{') {
            Some(after) => {
                let end = after.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(after.len());
                let closed = after[end..].starts_with('}');
                self.advance(1 + end + usize::from(closed));
                if closed { &after[..end] } else { "" }
            }
            None => {
                let (digits, rest) = self.rest.split_at_checked(2)?;
                self.rest = rest;
                digits
            }
        };
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        u32::from_str_radix(digits, 16).ok().filter(|_| is_plain).and_then(char::from_u32)
    }
}

/// Writes a character as a literal inside of a class.
fn push_class_char(out: &mut String, c: char) {
    // Writing to a String cannot fail.
    let _ = write!(out, "\\x{{{:x}}}", u32::from(c));
}

/// Returns minimum, maximum and length of a repetition; numbers above `u32` become `u32::MAX`.
fn counts(text: &str) -> Option<(u32, Option<u32>, usize)> {
    let (inner, _) = text.strip_prefix('{')?.split_once('}')?;
    let count = |digits: &str| {
        let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let has_leading_zero = digits.len() > 1 && digits.starts_with('0');
        (is_plain && !has_leading_zero).then(|| digits.parse().unwrap_or(u32::MAX))
    };
    let (min, max) = match inner.split_once(',') {
        None => (count(inner)?, Some(count(inner)?)),
        Some((min, "")) => (count(min)?, None),
        Some((min, max)) => (count(min)?, Some(count(max)?)),
    };
    Some((min, max, inner.len() + 2))
}
