//! Positions of names and operators in a rule's text. The parser does not store positions of valid
//! expressions, so this module searches the text again.

/// Position in the text of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::rules) struct Position {
    /// Number of the line, from 1.
    pub line: usize,
    /// Number of the column, from 1.
    pub column: usize,
}

impl Position {
    /// Position of the first character.
    pub const START: Self = Self { line: 1, column: 1 };
}

/// Token whose position is searched.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Mark {
    /// Name of a variable.
    Name(String),
    /// Name of a field; the position is at the dot before it.
    Field(String),
    /// Name of a function; the position is at the parenthesis after it.
    Call(String),
    /// Operator as written in the text.
    Operator(&'static str),
    /// Number, word, or contents of a string.
    Literal(String),
}

impl Mark {
    /// Returns the operator for a function name in the parser's tree: `_==_` is `==`.
    pub fn operator(name: &str) -> Option<Self> {
        const OPERATORS: [(&str, &str); 18] = [
            ("_==_", "=="),
            ("_!=_", "!="),
            ("_<=_", "<="),
            ("_>=_", ">="),
            ("_<_", "<"),
            ("_>_", ">"),
            ("_+_", "+"),
            ("_-_", "-"),
            ("_*_", "*"),
            ("_/_", "/"),
            ("_%_", "%"),
            ("_&&_", "&&"),
            ("_||_", "||"),
            ("!_", "!"),
            ("-_", "-"),
            ("_?_:_", "?"),
            ("_[_]", "["),
            ("@in", "in"),
        ];
        let found = OPERATORS.iter().find(|(function, _)| *function == name);
        found.map(|(_, sign)| Self::Operator(sign))
    }
}

/// Returns the position of occurrence `nth`, from 0; of the last one if there are fewer.
pub(super) fn place_of(source: &str, mark: &Mark, nth: usize) -> Position {
    let tokens = tokens(source);
    let is_mark = |index: usize| {
        let text = |at: usize| tokens.get(at).map(|(_, text)| *text);
        let before = index.checked_sub(1).and_then(text);
        match mark {
            Mark::Name(name) => text(index) == Some(name) && before != Some("."),
            Mark::Field(name) => text(index) == Some(name) && before == Some("."),
            Mark::Call(name) => text(index) == Some(name) && text(index + 1) == Some("("),
            Mark::Operator(sign) => text(index) == Some(sign),
            Mark::Literal(inner) => text(index)
                .is_some_and(|token| token == inner || token.trim_matches(['\'', '"']) == inner),
        }
    };
    let found: Vec<usize> = (0..tokens.len()).filter(|index| is_mark(*index)).collect();
    let Some(index) = found.get(nth).or(found.last()) else { return Position::START };
    let index = match mark {
        Mark::Field(_) => index - 1,
        Mark::Call(_) => index + 1,
        Mark::Name(_) | Mark::Operator(_) | Mark::Literal(_) => *index,
    };
    let offset = tokens.get(index).map_or(0, |(offset, _)| *offset);
    let before = &source[..offset];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
    Position { line, column }
}

/// Splits a rule into names, numbers, strings and signs, with their byte offsets.
fn tokens(source: &str) -> Vec<(usize, &str)> {
    let mut tokens = Vec::new();
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let offset = source.len() - rest.len();
        let is_word = |c: char| c == '_' || c.is_ascii_alphanumeric();
        let length = if is_word(c) {
            rest.find(|c: char| !is_word(c)).unwrap_or(rest.len())
        } else if matches!(c, '\'' | '"') {
            text_length(rest, c)
        } else {
            let two = ["==", "!=", "<=", ">=", "&&", "||"];
            if two.iter().any(|sign| rest.starts_with(sign)) { 2 } else { c.len_utf8() }
        };
        let (token, after) = rest.split_at(length);
        if !token.trim().is_empty() {
            tokens.push((offset, token));
        }
        rest = after;
    }
    tokens
}

fn text_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_where_cel_tells_of_them() {
        let source = "self.a > foo(self.b)\n && 'x' in self.list";
        for (mark, nth, (line, column)) in [
            (Mark::Name("self".to_owned()), 1, (1, 14)),
            (Mark::Field("b".to_owned()), 0, (1, 18)),
            (Mark::Call("foo".to_owned()), 0, (1, 13)),
            (Mark::Operator(">"), 0, (1, 8)),
            (Mark::Operator("in"), 0, (2, 9)),
            (Mark::Name("absent".to_owned()), 0, (1, 1)),
        ] {
            assert_eq!(place_of(source, &mark, nth), Position { line, column }, "{mark:?}");
        }
    }
}
