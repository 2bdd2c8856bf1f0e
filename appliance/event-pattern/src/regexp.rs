//! Translation of I-Regexp (RFC 9485) in Quamina's syntax, with `~` for `\`, to the crate `regex`.
//! An expression must match the whole string.

use std::iter::Peekable;
use std::str::Chars;

use regex::{Regex, RegexBuilder};

use crate::{COUNT_MAX, GROUPS_MAX, REGEXP_BYTES};

/// Compiles an expression in Quamina's syntax.
///
/// # Errors
/// A phrase about the part that is invalid or not supported.
pub fn compile(text: &str) -> Result<Regex, String> {
    let mut reader = Reader { chars: text.chars().peekable(), out: String::new() };
    reader.branches(0)?;
    if reader.chars.peek().is_some() {
        return Err("a ) without its (".to_owned());
    }
    RegexBuilder::new(&format!(r"\A(?:{})\z", reader.out))
        .dot_matches_new_line(true)
        .size_limit(REGEXP_BYTES)
        .build()
        .map_err(|_| format!("it is larger than {REGEXP_BYTES} bytes when compiled"))
}

struct Reader<'a> {
    chars: Peekable<Chars<'a>>,
    out: String,
}

impl Reader<'_> {
    /// Parses `branch *( "|" branch )`, up to a `)` or the end.
    fn branches(&mut self, depth: usize) -> Result<(), String> {
        if depth > GROUPS_MAX {
            return Err(format!("more than {GROUPS_MAX} nested parentheses"));
        }
        while let Some(char) = self.chars.next_if(|char| *char != ')') {
            match char {
                '|' => {
                    self.out.push('|');
                    continue;
                }
                '(' => {
                    self.out.push_str("(?:");
                    self.branches(depth + 1)?;
                    self.chars.next().ok_or("a ( without its )")?;
                    self.out.push(')');
                }
                '.' => self.out.push('.'),
                '[' => self.class()?,
                '~' => {
                    let char = self.escaped()?;
                    self.literal(char);
                }
                '*' | '+' | '?' | '{' => return Err(format!("{char} has nothing to repeat")),
                ']' | '}' => return Err(format!("write ~{char} instead of {char}")),
                char => self.literal(char),
            }
            self.quantifier()?;
        }
        Ok(())
    }

    fn literal(&mut self, char: char) {
        self.out.push_str(&regex::escape(char.encode_utf8(&mut [0; 4])));
    }

    /// Parses the character after `~`.
    fn escaped(&mut self) -> Result<char, String> {
        Ok(match self.chars.next().ok_or("it ends with ~")? {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'p' | 'P' => return Err("Unicode properties are not supported".to_owned()),
            char if "()*+-.?[\\]^{|}~".contains(char) => char,
            char => return Err(format!("~{char} is not a valid escape")),
        })
    }

    fn quantifier(&mut self) -> Result<(), String> {
        let Some(char) = self.chars.next_if(|char| "*+?{".contains(*char)) else { return Ok(()) };
        if char != '{' {
            self.out.push(char);
            return Ok(());
        }
        let mut inside = String::new();
        loop {
            match self.chars.next().ok_or("a { without its }")? {
                '}' => break,
                char if inside.len() < 8 => inside.push(char),
                _ => return Err("a repeat count is too long".to_owned()),
            }
        }
        let number = |text: &str| -> Result<u32, String> {
            let number = text.parse().ok().filter(|number: &u32| *number <= COUNT_MAX);
            number.ok_or(format!("{{{inside}}} is not a count of at most {COUNT_MAX}"))
        };
        let counted = match inside.split_once(',') {
            None => format!("{{{}}}", number(&inside)?),
            Some((from, "")) => format!("{{{},}}", number(from)?),
            Some((from, to)) => {
                let (from, to) = (number(from)?, number(to)?);
                if from > to {
                    return Err(format!("{{{inside}}} is not in ascending order"));
                }
                format!("{{{from},{to}}}")
            }
        };
        self.out.push_str(&counted);
        Ok(())
    }

    /// Parses a class after its `[`: `"[" [ "^" ] ( "-" / CCE1 ) *CCE1 [ "-" ] "]"` (RFC 9485 §3).
    fn class(&mut self) -> Result<(), String> {
        const OPEN: &str = "a [ without its ]";
        self.out.push('[');
        if self.chars.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        let mut is_first = true;
        loop {
            let from = match self.chars.next().ok_or(OPEN)? {
                ']' if is_first => return Err("a character class is empty".to_owned()),
                ']' => break,
                '-' if is_first || self.chars.peek() == Some(&']') => '-',
                char => self.member(char)?,
            };
            is_first = false;
            self.literal(from);
            if from == '-' || self.chars.peek() != Some(&'-') {
                continue;
            }
            self.chars.next();
            match self.chars.next().ok_or(OPEN)? {
                // It was the last one, which is a hyphen.
                ']' => {
                    self.literal('-');
                    break;
                }
                char => {
                    let to = self.member(char)?;
                    if to < from {
                        return Err(format!("{from}-{to} is not in ascending order"));
                    }
                    self.out.push('-');
                    self.literal(to);
                }
            }
        }
        self.out.push(']');
        Ok(())
    }

    fn member(&mut self, char: char) -> Result<char, String> {
        match char {
            '~' => self.escaped(),
            '-' | '[' | ']' => Err(format!("write ~{char} instead of {char} in a class")),
            char => Ok(char),
        }
    }
}
