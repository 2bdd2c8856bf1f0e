//! Splits a template into text and the tokens of its actions (Go `text/template/parse`, lex.go).

use super::RenderError;

/// A token with its line.
#[derive(Debug, Clone, PartialEq)]
pub struct Token {
    /// Line, from 1.
    pub line: usize,
    /// What it is.
    pub kind: Kind,
}

/// What a token is.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Text outside actions, trimmed where markers say so.
    Text(String),
    /// `{{`.
    Open,
    /// `}}`.
    Close,
    /// `name`.
    Ident(String),
    /// `.name`, directly after what it belongs to or on its own.
    Field(String, Joined),
    /// `.` alone.
    Dot,
    /// `$name` or `$`.
    Variable(String),
    /// A quoted text.
    Str(String),
    /// A whole number.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// `|`, `(`, `)`, `:=`, `=` or `,`.
    Mark(&'static str),
}

/// Whether a field follows its owner without a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joined {
    /// `x.name`.
    Yes,
    /// ` .name`.
    No,
}

/// Split a template.
pub fn lex(text: &str) -> Result<Vec<Token>, RenderError> {
    let mut tokens = Vec::new();
    let mut rest = text;
    let mut line = 1;
    let mut trim_next = false;
    while let Some(open) = rest.find("{{") {
        let (before, after) = rest.split_at(open);
        let action = &after[2..];
        let (trim_left, action) = match action.strip_prefix('-') {
            Some(inner) if inner.starts_with(char::is_whitespace) => (true, inner),
            _ => (false, action),
        };
        push_text(&mut tokens, before, line, trim_next, trim_left);
        line += newlines(before);
        if let Some(comment) = action.trim_start().strip_prefix("/*") {
            let (end, trim) = comment_end(comment, line)?;
            line += newlines(&rest[open..rest.len() - end.len()]);
            (rest, trim_next) = (end, trim);
            continue;
        }
        tokens.push(Token { line, kind: Kind::Open });
        let mut scanner = Scanner { rest: action, line, tokens: &mut tokens };
        trim_next = scanner.action()?;
        (rest, line) = (scanner.rest, scanner.line);
    }
    push_text(&mut tokens, rest, line, trim_next, false);
    Ok(tokens)
}

fn comment_end(comment: &str, line: usize) -> Result<(&str, bool), RenderError> {
    let unclosed = || RenderError { line, message: "unclosed comment".into() };
    let (_, after) = comment.split_once("*/").ok_or_else(unclosed)?;
    let tail = after.trim_start();
    if let Some(end) = after.strip_prefix("}}") {
        return Ok((end, false));
    }
    tail.strip_prefix("-}}").map(|end| (end, true)).ok_or_else(|| RenderError {
        line,
        message: "comment ends before closing delimiter".into(),
    })
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

fn push_text(tokens: &mut Vec<Token>, text: &str, line: usize, left: bool, right: bool) {
    let text = if left { text.trim_start() } else { text };
    let text = if right { text.trim_end() } else { text };
    if !text.is_empty() {
        tokens.push(Token { line, kind: Kind::Text(text.to_owned()) });
    }
}

struct Scanner<'a, 't> {
    rest: &'a str,
    line: usize,
    tokens: &'t mut Vec<Token>,
}

impl Scanner<'_, '_> {
    fn fail<T>(&self, message: impl Into<String>) -> Result<T, RenderError> {
        Err(RenderError { line: self.line, message: message.into() })
    }

    fn push(&mut self, kind: Kind) {
        self.tokens.push(Token { line: self.line, kind });
    }

    fn skip(&mut self, bytes: usize) {
        self.line += newlines(&self.rest[..bytes]);
        self.rest = &self.rest[bytes..];
    }

    /// Up to and with `}}`; tells whether the text after it is trimmed.
    fn action(&mut self) -> Result<bool, RenderError> {
        let mut joined = false;
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.skip(blank);
            joined &= blank == 0;
            if blank > 0 && self.rest.starts_with("-}}") {
                self.push(Kind::Close);
                self.skip(3);
                return Ok(true);
            }
            let Some(first) = self.rest.chars().next() else {
                return self.fail("unclosed action");
            };
            if self.rest.starts_with("}}") {
                self.push(Kind::Close);
                self.skip(2);
                return Ok(false);
            }
            joined = self.token(first, joined)?;
        }
    }

    /// One token; tells whether a field may follow it directly.
    fn token(&mut self, first: char, joined: bool) -> Result<bool, RenderError> {
        for mark in [":=", "=", "|", "(", ")", ","] {
            if self.rest.starts_with(mark) {
                self.push(Kind::Mark(mark));
                self.skip(mark.len());
                return Ok(mark == ")");
            }
        }
        match first {
            '.' => {
                let name = word(&self.rest[1..]);
                if name.is_empty() {
                    self.push(Kind::Dot);
                } else if name.starts_with(|c: char| c.is_ascii_digit()) {
                    return self.number();
                } else {
                    let joined = if joined { Joined::Yes } else { Joined::No };
                    self.push(Kind::Field(name.to_owned(), joined));
                }
                self.skip(1 + name.len());
                Ok(true)
            }
            '$' => {
                let name = word(&self.rest[1..]);
                self.push(Kind::Variable(name.to_owned()));
                self.skip(1 + name.len());
                Ok(true)
            }
            '"' => self.quoted(),
            '`' => {
                let Some(end) = self.rest[1..].find('`') else {
                    return self.fail("unterminated raw quoted string");
                };
                self.push(Kind::Str(self.rest[1..=end].to_owned()));
                self.skip(end + 2);
                Ok(false)
            }
            '0'..='9' | '+' | '-' => self.number(),
            c if c.is_alphabetic() || c == '_' => {
                let name = word(self.rest).to_owned();
                self.skip(name.len());
                self.push(Kind::Ident(name));
                Ok(false)
            }
            c => self.fail(format!("unexpected {c:?} in an action")),
        }
    }

    fn number(&mut self) -> Result<bool, RenderError> {
        let sign = usize::from(self.rest.starts_with(['+', '-']));
        let length = self.rest[sign..]
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '_')
            .map_or(self.rest.len(), |end| end + sign);
        let text = &self.rest[..length];
        let kind = match (integer(text), text.parse::<f64>()) {
            (Some(number), _) => Kind::Int(number),
            (None, Ok(number)) if number.is_finite() => Kind::Float(number),
            _ => return self.fail(format!("bad number {text:?}")),
        };
        self.push(kind);
        self.skip(length);
        Ok(false)
    }

    fn quoted(&mut self) -> Result<bool, RenderError> {
        let mut text = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.push(Kind::Str(text));
                    self.skip(at + 1);
                    return Ok(false);
                }
                '\n' => break,
                '\\' => match chars.next().map(|(_, c)| c) {
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some('r') => text.push('\r'),
                    Some(c @ ('"' | '\\')) => text.push(c),
                    _ => return self.fail("unknown escape in a quoted string"),
                },
                c => text.push(c),
            }
        }
        self.fail("unterminated quoted string")
    }
}

fn integer(text: &str) -> Option<i64> {
    let digits = text.replace('_', "");
    let (sign, bare) = match digits.strip_prefix('-') {
        Some(bare) => (-1, bare),
        None => (1, digits.strip_prefix('+').unwrap_or(&digits)),
    };
    let (radix, bare) = match bare.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &bare[2..]),
        [b'0', b'o' | b'O', ..] => (8, &bare[2..]),
        [b'0', b'b' | b'B', ..] => (2, &bare[2..]),
        [b'0', _, ..] => (8, &bare[1..]),
        _ => (10, bare),
    };
    i64::from_str_radix(bare, radix).ok()?.checked_mul(sign)
}

fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}
