//! Translation of Go's regular expressions (RE2) for the `regex` crate. In Go, `\d` and `\b` are
//! ASCII, and `{` without a count and `[` within a class are literal. Literals are written by
//! number, so that no character has a special meaning for the crate.

mod class;
mod unicode;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::rc::Rc;

use regex::{Captures, Error, Regex, RegexBuilder};

use crate::limits::{PATTERN_STATES_BYTES, PATTERNS_KEPT_MAX};

/// Maximum count in braces, as in Go.
const COUNT_MAX: u32 = 1000;
/// Maximum nesting of groups.
const NESTING_MAX: u32 = 100;

/// Compiled pattern with its group names.
pub struct Pattern {
    /// Regular expression of the `regex` crate.
    pub regex: Regex,
    /// Names of the groups, by number. The crate accepts fewer names than Go, and no duplicates.
    names: Vec<String>,
}

/// Cache of the patterns that one rendering has compiled, because a loop uses a pattern many times.
#[derive(Default)]
pub struct Patterns(RefCell<VecDeque<(String, Compiled)>>);

/// Compiled small pattern, or the error of its compilation.
pub type Compiled = Result<Rc<Pattern>, String>;

impl Patterns {
    /// Returns a pattern from the cache; `None` if it is not cached.
    pub fn get(&self, pattern: &str) -> Option<Compiled> {
        let all = self.0.borrow();
        all.iter().find(|(source, _)| source == pattern).map(|(_, compiled)| compiled.clone())
    }

    /// Adds a pattern to the cache, and removes the oldest if the cache is full.
    pub fn keep(&self, pattern: &str, compiled: &Compiled) {
        let mut all = self.0.borrow_mut();
        if all.len() >= PATTERNS_KEPT_MAX {
            all.pop_front();
        }
        all.push_back((pattern.to_owned(), compiled.clone()));
    }
}

/// Reason why a pattern is not compiled.
pub enum Bad {
    /// The syntax is not valid in Go.
    Syntax(String),
    /// The compiled pattern exceeds the limit of memory.
    Large,
}

impl From<String> for Bad {
    fn from(error: String) -> Self {
        Bad::Syntax(error)
    }
}

/// Compiles a pattern, with at most `bytes` bytes of memory.
///
/// # Errors
/// The pattern is not valid in Go, or too large.
pub fn compiled(pattern: &str, bytes: usize) -> Result<Pattern, Bad> {
    let names = vec![String::new()];
    let mut translator = Translator { rest: pattern, out: String::new(), names, repeated: false };
    translator.pattern()?;
    let mut builder = RegexBuilder::new(&translator.out);
    builder.size_limit(bytes).dfa_size_limit(PATTERN_STATES_BYTES).nest_limit(NESTING_MAX);
    let regex = builder.build();
    let regex = regex.map_err(|error| match error {
        Error::CompiledTooBig(_) => Bad::Large,
        _ => Bad::Syntax("error parsing regexp".to_owned()),
    })?;
    Ok(Pattern { regex, names: translator.names })
}

impl Pattern {
    /// Returns the text of the first group with this name.
    pub fn named<'t>(&self, found: &Captures<'t>, name: &str) -> Option<&'t str> {
        let groups = self.names.iter().enumerate().filter(|(_, own)| *own == name);
        groups.filter_map(|(at, _)| found.get(at)).map(|group| group.as_str()).next()
    }
}

struct Translator<'a> {
    rest: &'a str,
    out: String,
    names: Vec<String>,
    /// True if the last element was a repetition operator; a second one (`a**`) is a syntax error.
    repeated: bool,
}

fn syntax() -> String {
    "invalid or unsupported Perl syntax".to_owned()
}

fn bad_escape() -> String {
    "invalid escape sequence".to_owned()
}

impl<'a> Translator<'a> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    /// Skips `prefix`; returns false if the rest does not begin with it.
    fn skips(&mut self, prefix: &str) -> bool {
        let rest = self.rest.strip_prefix(prefix);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn pattern(&mut self) -> Result<(), String> {
        while let Some(c) = self.next() {
            let mut repeats = false;
            match c {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '*' | '+' | '?' => {
                    self.repetition(&c.to_string())?;
                    repeats = true;
                }
                '{' => match count(self.rest)? {
                    Some(length) => {
                        let count = format!("{{{}", &self.rest[..length]);
                        self.rest = &self.rest[length..];
                        self.repetition(&count)?;
                        repeats = true;
                    }
                    None => self.character(c),
                },
                '(' => self.group()?,
                ')' | '|' | '^' | '$' | '.' => self.out.push(c),
                c => self.character(c),
            }
            self.repeated = repeats;
        }
        Ok(())
    }

    /// Writes a literal character.
    fn character(&mut self, c: char) {
        if c.is_ascii_alphanumeric() {
            return self.out.push(c);
        }
        // Writing to a String cannot fail.
        let _ = write!(self.out, "\\x{{{:x}}}", u32::from(c));
    }

    fn repetition(&mut self, operator: &str) -> Result<(), String> {
        if self.repeated {
            return Err("invalid nested repetition operator".to_owned());
        }
        self.out.push_str(operator);
        if self.skips("?") {
            self.out.push('?');
        }
        Ok(())
    }

    fn group(&mut self) -> Result<(), String> {
        if !self.skips("?") {
            return self.capture("");
        }
        if !(self.skips("P<") || self.skips("<")) {
            return self.flags();
        }
        let (name, rest) = self.rest.split_once('>').ok_or_else(syntax)?;
        let is_word = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
        if name.is_empty() || !name.bytes().all(is_word) {
            return Err("invalid named capture".to_owned());
        }
        self.rest = rest;
        self.capture(name)
    }

    fn capture(&mut self, name: &str) -> Result<(), String> {
        self.names.push(name.to_owned());
        self.out.push('(');
        Ok(())
    }

    /// Parses the flags of a group, `i-s:` or `i)`. Accepts only Go's flags, and writes each once.
    fn flags(&mut self) -> Result<(), String> {
        let (mut on, mut off, mut after_minus) = (String::new(), String::new(), false);
        loop {
            match self.next() {
                Some(c @ ('i' | 'm' | 's' | 'U')) => {
                    let flags = if after_minus { &mut off } else { &mut on };
                    if !flags.contains(c) {
                        flags.push(c);
                    }
                }
                Some('-') if !after_minus => after_minus = true,
                Some(c @ (':' | ')')) if !(after_minus && off.is_empty()) => {
                    on.retain(|flag| !off.contains(flag));
                    let minus = if off.is_empty() { "" } else { "-" };
                    if c == ':' || !(on.is_empty() && off.is_empty()) {
                        let _ = write!(self.out, "(?{on}{minus}{off}{c}");
                    }
                    return Ok(());
                }
                _ => return Err(syntax()),
            }
        }
    }

    fn escape(&mut self) -> Result<(), String> {
        match self.rest.chars().next() {
            Some('A') => self.out.push_str("\\A"),
            Some('z') => self.out.push_str("\\z"),
            Some(c @ ('b' | 'B')) => {
                let _ = write!(self.out, "(?-u:\\{c})");
            }
            Some('Q') => {
                let literal = &self.rest[1..];
                let (literal, rest) = literal.split_once("\\E").unwrap_or((literal, ""));
                literal.chars().for_each(|c| self.character(c));
                self.rest = rest;
                return Ok(());
            }
            _ => {
                if let Some(class) = self.named_class()? {
                    let _ = write!(self.out, "[{class}]");
                    return Ok(());
                }
                let c = self.escaped()?;
                self.character(c);
                return Ok(());
            }
        }
        self.next();
        Ok(())
    }

    /// Parses an escape after its backslash, and returns the character.
    fn escaped(&mut self) -> Result<char, String> {
        let c = self.next().ok_or("trailing backslash at end of expression")?;
        match c {
            'a' => Ok('\u{7}'),
            'f' => Ok('\u{c}'),
            't' => Ok('\t'),
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            'v' => Ok('\u{b}'),
            'x' => self.hexadecimal(),
            '0'..='7' => self.octal(c),
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => Ok(c),
            _ => Err(bad_escape()),
        }
    }

    /// Parses a hexadecimal escape, `\x41` or `\x{1f600}`, after its `x`.
    fn hexadecimal(&mut self) -> Result<char, String> {
        let digits = match self.rest.strip_prefix('{') {
            Some(after) => {
                let (digits, rest) = after.split_once('}').ok_or_else(bad_escape)?;
                self.rest = rest;
                digits
            }
            None => {
                let (digits, rest) = self.rest.split_at_checked(2).ok_or_else(bad_escape)?;
                self.rest = rest;
                digits
            }
        };
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let code = u32::from_str_radix(digits, 16).ok().filter(|_| is_plain);
        code.and_then(char::from_u32).ok_or_else(bad_escape)
    }

    /// Parses up to three octal digits. A single digit except 0 would be a back-reference: an
    /// error.
    fn octal(&mut self, first: char) -> Result<char, String> {
        let more = self.rest.bytes().take(2).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
        if first != '0' && more == 0 {
            return Err(bad_escape());
        }
        let digits = format!("{first}{}", &self.rest[..more]);
        self.rest = &self.rest[more..];
        let code = u32::from_str_radix(&digits, 8).ok();
        code.and_then(char::from_u32).ok_or_else(bad_escape)
    }
}

/// Returns the length of a count after `{`, including `}`; `None` if the `{` is literal.
fn count(text: &str) -> Result<Option<usize>, String> {
    let Some(end) = text.find('}') else { return Ok(None) };
    let (least, most) = match text[..end].split_once(',') {
        Some((least, most)) => (least, most),
        None => (&text[..end], ""),
    };
    let is_number = |text: &str| {
        let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        plain && (text == "0" || !text.starts_with('0'))
    };
    if !is_number(least) || !(most.is_empty() || is_number(most)) {
        return Ok(None);
    }
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number <= COUNT_MAX);
    let bad = || "invalid repeat count".to_owned();
    let low = number(least).ok_or_else(bad)?;
    if !most.is_empty() && number(most).ok_or_else(bad)? < low {
        return Err(bad());
    }
    Ok(Some(end + 1))
}

#[cfg(test)]
mod tests {
    use super::{Bad, Pattern};
    use crate::limits::PATTERN_BYTES_MAX;

    fn compiled(pattern: &str) -> Result<Pattern, Bad> {
        super::compiled(pattern, PATTERN_BYTES_MAX)
    }

    fn all(pattern: &str, text: &str) -> Vec<String> {
        let found = compiled(pattern).unwrap_or_else(|_| panic!("{pattern}"));
        found.regex.find_iter(text).map(|it| it.as_str().to_owned()).collect()
    }

    #[test]
    fn patterns_mean_what_they_mean_in_go() {
        for (pattern, text, want) in [
            ("\\Bb", "ab b é b", &["b"][..]),
            ("\\p{Lu}+", "AÉb C", &["AÉ", "C"]),
            ("\\p{^Greek}", "αb", &["b"]),
            ("\\PN", "1a", &["a"]),
            ("[\\p{decimal number}x]+", "1x٣y", &["1x٣"]),
            ("[+--]+", "+,-.", &["+,-"]),
            ("\\x{e9}\\<", "é<", &["é<"]),
            ("[[:alpha:]&&b]+", "a&b1", &["a&b"]),
            ("(?)a", "a", &["a"]),
        ] {
            assert_eq!(all(pattern, text), want, "{pattern}");
        }
        assert_eq!(
            compiled("\\B").unwrap_or_else(|_| panic!()).regex.replace_all("aéb bc", "-"),
            "aéb b-c"
        );
        for pattern in
            ["\\p{Old_Italic}", "\\p{}", "\\p{L", "[[:no:]]", "[a--b]", "\\C", "\\8", "(?i--s)a"]
        {
            assert!(compiled(pattern).is_err(), "{pattern}");
        }
    }
}
