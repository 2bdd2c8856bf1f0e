//! Go's pattern syntax (RE2) in the words of the `regex` crate: `\d` is ASCII, a brace that is no
//! count is a brace, a bracket within a class is one. What only one of both knows is refused.

use regex::{Regex, RegexBuilder};

use crate::limits::PATTERN_BYTES_MAX;

/// Go's largest count in braces.
const COUNT_MAX: u32 = 1000;

/// Compiles a pattern.
///
/// # Errors
/// It is none of Go's, or too large.
pub fn compiled(pattern: &str) -> Result<Regex, String> {
    let mut translator = Translator { rest: pattern, out: String::new(), repeated: false };
    translator.pattern()?;
    RegexBuilder::new(&translator.out)
        .size_limit(PATTERN_BYTES_MAX)
        .nest_limit(100)
        .build()
        .map_err(|_| "error parsing regexp".to_owned())
}

struct Translator<'a> {
    rest: &'a str,
    out: String,
    /// What stands last is a repetition, which cannot be repeated.
    repeated: bool,
}

impl Translator<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn pattern(&mut self) -> Result<(), String> {
        while let Some(c) = self.next() {
            let mut repeats = false;
            match c {
                '\\' => self.escape(false)?,
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
                    None => self.out.push_str("\\{"),
                },
                '}' => self.out.push_str("\\}"),
                '(' => self.group()?,
                c => self.out.push(c),
            }
            self.repeated = repeats;
        }
        Ok(())
    }

    fn repetition(&mut self, operator: &str) -> Result<(), String> {
        if self.repeated {
            return Err("invalid nested repetition operator".to_owned());
        }
        self.out.push_str(operator);
        if let Some(rest) = self.rest.strip_prefix('?') {
            self.rest = rest;
            self.out.push('?');
        }
        Ok(())
    }

    /// A group's flags are only those that Go has.
    fn group(&mut self) -> Result<(), String> {
        self.out.push('(');
        let Some(flags) = self.rest.strip_prefix('?') else { return Ok(()) };
        if flags.starts_with("P<") || flags.starts_with('<') {
            self.out.push('?');
            self.rest = flags;
            return Ok(());
        }
        let end = flags.find([':', ')']).ok_or("missing closing )")?;
        if !flags[..end].chars().all(|c| "imsU-".contains(c)) {
            return Err("invalid or unsupported Perl syntax".to_owned());
        }
        self.out.push('?');
        self.out.push_str(&flags[..=end]);
        self.rest = &flags[end + 1..];
        Ok(())
    }

    fn class(&mut self) -> Result<(), String> {
        self.out.push('[');
        if let Some(rest) = self.rest.strip_prefix('^') {
            self.rest = rest;
            self.out.push('^');
        }
        let mut is_first = true;
        while let Some(c) = self.next() {
            match c {
                ']' if !is_first => {
                    self.out.push(']');
                    return Ok(());
                }
                '[' if self.rest.starts_with(':') && self.rest.contains(":]") => {
                    let end = self.rest.find(":]").unwrap_or(0) + 2;
                    self.out.push('[');
                    self.out.push_str(&self.rest[..end]);
                    self.rest = &self.rest[end..];
                }
                '\\' => self.escape(true)?,
                '[' | ']' | '&' | '~' => {
                    self.out.push('\\');
                    self.out.push(c);
                }
                '-' if is_first || self.rest.starts_with(']') => self.out.push_str("\\-"),
                c => self.out.push(c),
            }
            is_first = false;
        }
        Err("missing closing ]".to_owned())
    }

    fn escape(&mut self, in_class: bool) -> Result<(), String> {
        let c = self.next().ok_or("trailing backslash at end of expression")?;
        let class = |inner: &str, negated: bool| match (in_class, negated) {
            (true, false) => inner.to_owned(),
            (_, true) => format!("[^{inner}]"),
            (false, false) => format!("[{inner}]"),
        };
        let text = match c {
            'd' | 'D' => class("0-9", c == 'D'),
            'w' | 'W' => class("0-9A-Za-z_", c == 'W'),
            's' | 'S' => class("\\t\\n\\x0C\\r ", c == 'S'),
            'b' if !in_class => "(?-u:\\b)".to_owned(),
            'A' | 'z' if !in_class => format!("\\{c}"),
            'Q' if !in_class => {
                let end = self.rest.find("\\E").unwrap_or(self.rest.len());
                let literal = regex::escape(&self.rest[..end]);
                self.rest = &self.rest[(end + 2).min(self.rest.len())..];
                literal
            }
            'x' | 'p' | 'P' => format!("\\{c}"),
            'a' | 'f' | 't' | 'n' | 'r' | 'v' => format!("\\{c}"),
            '0'..='7' => self.octal(c)?,
            c if c.is_ascii_punctuation() => format!("\\{c}"),
            _ => return Err("invalid escape sequence".to_owned()),
        };
        self.out.push_str(&text);
        Ok(())
    }

    /// Up to three digits; one alone would be a reference to a group, which Go has not.
    fn octal(&mut self, first: char) -> Result<String, String> {
        let more = self.rest.bytes().take(2).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
        if first != '0' && more == 0 {
            return Err("invalid escape sequence".to_owned());
        }
        let digits = format!("{first}{}", &self.rest[..more]);
        self.rest = &self.rest[more..];
        let code = u32::from_str_radix(&digits, 8).map_err(|_| "invalid escape sequence")?;
        Ok(format!("\\x{{{code:x}}}"))
    }
}

/// Length of the count that follows a brace, brace included; none where it is only a brace.
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
