//! Lexer of templates (Go `text/template/parse`, lex.go): tokens of text and of actions.

use crate::RenderError;

/// Kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    LeftDelim,
    RightDelim,
    LeftParen,
    RightParen,
    Space,
    Pipe,
    Assign,
    Declare,
    Comma,
    Dot,
    Field,
    Variable,
    Bool,
    Number,
    Complex,
    Char,
    String,
    Keyword,
    Identifier,
    Eof,
}

/// Token with its text and its first line.
#[derive(Debug, Clone, Copy)]
pub struct Token<'a> {
    pub kind: Kind,
    pub text: &'a str,
    pub line: usize,
}

const LEFT: &str = "{{";
const RIGHT: &str = "}}";
const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];
const KEYWORDS: [&str; 11] = [
    "block", "break", "continue", "define", "else", "end", "if", "nil", "range", "template", "with",
];

/// Returns the tokens of a template; the last one is [`Kind::Eof`].
pub fn lex(text: &str) -> Result<Vec<Token<'_>>, RenderError> {
    let mut lexer = Lexer { text, at: 0, line: 1, depth: 0, tokens: Vec::new() };
    lexer.outside()?;
    Ok(lexer.tokens)
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// Line number at `at`.
    line: usize,
    /// Number of open parentheses.
    depth: usize,
    tokens: Vec<Token<'a>>,
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphabetic() || c.is_numeric()
}

fn is_trimmed_left(text: &str) -> bool {
    text.strip_prefix('-').is_some_and(|rest| rest.starts_with(SPACES))
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip(&mut self, bytes: usize) {
        let end = self.at + bytes;
        self.line += self.text[self.at..end].matches('\n').count();
        self.at = end;
    }

    fn emit(&mut self, kind: Kind, bytes: usize) {
        let token = Token { kind, text: &self.text[self.at..self.at + bytes], line: self.line };
        self.tokens.push(token);
        self.skip(bytes);
    }

    fn fail<T>(&self, message: impl Into<String>) -> Result<T, RenderError> {
        Err(RenderError::new(self.line, message))
    }

    fn outside(&mut self) -> Result<(), RenderError> {
        while let Some(found) = self.rest().find(LEFT) {
            let before = &self.rest()[..found];
            let after = &self.rest()[found + LEFT.len()..];
            let is_trimmed = is_trimmed_left(after);
            let kept = if is_trimmed { before.trim_end_matches(SPACES).len() } else { found };
            if kept > 0 {
                self.emit(Kind::Text, kept);
            }
            self.skip(found - kept);
            let marker = if is_trimmed { 2 } else { 0 };
            if after[marker..].starts_with("/*") {
                self.skip(LEFT.len() + marker);
                self.comment()?;
            } else {
                self.emit(Kind::LeftDelim, LEFT.len());
                self.skip(marker);
                self.depth = 0;
                while self.inside()? {}
            }
        }
        if !self.rest().is_empty() {
            self.emit(Kind::Text, self.rest().len());
        }
        self.emit(Kind::Eof, 0);
        Ok(())
    }

    /// Returns the length of a closing delimiter here, and true if it trims the space after it.
    fn closing(&self) -> Option<(usize, bool)> {
        let rest = self.rest();
        if rest.starts_with(RIGHT) {
            return Some((RIGHT.len(), false));
        }
        let marked = rest.strip_prefix(SPACES)?.strip_prefix('-')?;
        marked.starts_with(RIGHT).then_some((2 + RIGHT.len(), true))
    }

    fn trim_after(&mut self, is_trimmed: bool) {
        if is_trimmed {
            let rest = self.rest();
            self.skip(rest.len() - rest.trim_start_matches(SPACES).len());
        }
    }

    fn comment(&mut self) -> Result<(), RenderError> {
        let Some(end) = self.rest()[2..].find("*/") else {
            return self.fail("unclosed comment");
        };
        self.skip(end + 4);
        let Some((length, is_trimmed)) = self.closing() else {
            return self.fail("comment ends before closing delimiter");
        };
        self.skip(length);
        self.trim_after(is_trimmed);
        Ok(())
    }

    /// Reads one token of an action; returns false after the closing delimiter.
    fn inside(&mut self) -> Result<bool, RenderError> {
        if let Some((length, is_trimmed)) = self.closing() {
            if self.depth > 0 {
                return self.fail("unclosed left paren");
            }
            self.emit(Kind::RightDelim, length);
            self.trim_after(is_trimmed);
            return Ok(false);
        }
        let rest = self.rest();
        let Some(c) = rest.chars().next() else { return self.fail("unclosed action") };
        match c {
            ' ' | '\t' | '\r' | '\n' => self.space(),
            '=' => self.emit(Kind::Assign, 1),
            ':' if rest.starts_with(":=") => self.emit(Kind::Declare, 2),
            ':' => return self.fail("expected :="),
            '|' => self.emit(Kind::Pipe, 1),
            ',' => self.emit(Kind::Comma, 1),
            '"' | '\'' => self.quoted(c)?,
            '`' => match rest[1..].find('`') {
                Some(end) => self.emit(Kind::String, end + 2),
                None => return self.fail("unterminated raw quoted string"),
            },
            '(' => {
                self.depth += 1;
                self.emit(Kind::LeftParen, 1);
            }
            ')' => {
                let Some(depth) = self.depth.checked_sub(1) else {
                    return self.fail("unexpected right paren");
                };
                self.depth = depth;
                self.emit(Kind::RightParen, 1);
            }
            '$' => self.named(Kind::Variable)?,
            '.' if !rest[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                self.named(Kind::Field)?;
            }
            '.' | '+' | '-' | '0'..='9' => self.number()?,
            c if is_word(c) => self.named(Kind::Identifier)?,
            c => return self.fail(format!("unexpected {c:?} in action")),
        }
        Ok(true)
    }

    /// Reads a run of spaces, without the space that belongs to a trimming delimiter.
    fn space(&mut self) {
        let rest = self.rest();
        let mut length = rest.len() - rest.trim_start_matches(SPACES).len();
        if rest[length..].strip_prefix('-').is_some_and(|rest| rest.starts_with(RIGHT)) {
            length -= 1;
        }
        if length > 0 {
            self.emit(Kind::Space, length);
        }
    }

    fn quoted(&mut self, quote: char) -> Result<(), RenderError> {
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' if chars.next().is_some_and(|(_, c)| c != '\n') => {}
                '\\' | '\n' => break,
                c if c == quote => {
                    let kind = if quote == '"' { Kind::String } else { Kind::Char };
                    self.emit(kind, at + 1);
                    return Ok(());
                }
                _ => {}
            }
        }
        self.fail("unterminated quoted string or character constant")
    }

    /// Reads a field, a variable or a word.
    fn named(&mut self, kind: Kind) -> Result<(), RenderError> {
        let rest = self.rest();
        let mark = usize::from(kind != Kind::Identifier);
        let word = rest[mark..].find(|c| !is_word(c)).unwrap_or(rest.len() - mark);
        let length = mark + word;
        let after = &rest[length..];
        let ends = after.is_empty()
            || after.starts_with(SPACES)
            || after.starts_with(['.', ',', '|', ':', ')', '('])
            || after.starts_with(RIGHT);
        if !ends {
            let c = after.chars().next().unwrap_or_default();
            return self.fail(format!("bad character {c:?} after {:?}", &rest[..length]));
        }
        let kind = match (kind, &rest[..length]) {
            (Kind::Field, ".") => Kind::Dot,
            (Kind::Identifier, word) if KEYWORDS.contains(&word) => Kind::Keyword,
            (Kind::Identifier, "true" | "false") => Kind::Bool,
            (kind, _) => kind,
        };
        self.emit(kind, length);
        Ok(())
    }

    fn number(&mut self) -> Result<(), RenderError> {
        let rest = self.rest();
        let bad = |length: usize| format!("bad number syntax: {:?}", &rest[..length]);
        let Some(mut length) = scan_number(rest) else { return self.fail(bad(rest.len().min(1))) };
        let mut kind = Kind::Number;
        if rest[length..].starts_with(['+', '-']) {
            length += match scan_number(&rest[length..]) {
                Some(more) if rest[..length + more].ends_with('i') => more,
                _ => return self.fail(bad(length)),
            };
            kind = Kind::Complex;
        }
        self.emit(kind, length);
        Ok(())
    }
}

/// Returns the length of the number at the beginning of `text`; `None` if a letter follows it.
fn scan_number(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let has = |at: usize, set: &[u8]| bytes.get(at).is_some_and(|byte| set.contains(byte));
    let mut at = usize::from(has(0, b"+-"));
    let mut digits: &[u8] = b"0123456789_";
    if has(at, b"0") {
        at += 1;
        let set: Option<&[u8]> = match bytes.get(at) {
            Some(b'x' | b'X') => Some(b"0123456789abcdefABCDEF_"),
            Some(b'o' | b'O') => Some(b"01234567_"),
            Some(b'b' | b'B') => Some(b"01_"),
            _ => None,
        };
        if let Some(set) = set {
            digits = set;
            at += 1;
        }
    }
    let run = |mut at: usize, set: &[u8]| {
        while has(at, set) {
            at += 1;
        }
        at
    };
    at = run(at, digits);
    if has(at, b".") {
        at = run(at + 1, digits);
    }
    let exponent: &[u8] = match digits.len() {
        11 => b"eE",
        23 => b"pP",
        _ => b"",
    };
    if has(at, exponent) {
        at += 1;
        at += usize::from(has(at, b"+-"));
        at = run(at, b"0123456789_");
    }
    at += usize::from(has(at, b"i"));
    (!text[at..].starts_with(is_word)).then_some(at)
}
