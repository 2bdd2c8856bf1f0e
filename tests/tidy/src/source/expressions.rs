//! Expressions of masked code, found by brackets, commas and operators.

use std::ops::Range;

use super::items::bracketed;

/// An operator that orders two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// `<` or `<=`.
    Less,
    /// `>` or `>=`.
    More,
}

/// The expression around a range: from a bracket, a comma, a semicolon, an assignment, `&&` or `||`
/// to the next such token.
pub fn expression(code: &str, inner: Range<usize>) -> Range<usize> {
    let bytes = code.as_bytes();
    let (mut start, mut depth) = (inner.start, 0_usize);
    while let Some(at) = start.checked_sub(1) {
        match bytes[at] {
            b')' | b']' => depth += 1,
            b'(' | b'[' if depth > 0 => depth -= 1,
            _ if depth > 0 => {}
            b'(' | b'[' | b'{' | b'}' | b',' | b';' => break,
            b'&' | b'|' if at > 0 && bytes[at - 1] == bytes[at] => break,
            b'=' if is_assignment(bytes, at) => break,
            b'>' if at > 0 && bytes[at - 1] == b'=' => break,
            _ => {}
        }
        start = at;
    }
    let mut end = inner.end;
    while let Some(byte) = bytes.get(end) {
        match byte {
            b'(' | b'[' => match bracketed(code, end) {
                Some(inside) => {
                    end = inside.end;
                    continue;
                }
                None => break,
            },
            b')' | b']' | b'{' | b'}' | b',' | b';' => break,
            b'&' | b'|' if bytes.get(end + 1) == Some(byte) => break,
            b'=' if is_assignment(bytes, end) => break,
            _ => {}
        }
        end += 1;
    }
    start..end
}

fn is_assignment(bytes: &[u8], at: usize) -> bool {
    let is_operator = |byte: Option<&u8>| byte.is_some_and(|byte| b"=<>!".contains(byte));
    let before = at.checked_sub(1).and_then(|at| bytes.get(at));
    let arrow = bytes.get(at + 1) == Some(&b'>');
    arrow || !is_operator(before) && bytes.get(at + 1) != Some(&b'=')
}

/// The call or the brackets around an expression; `None` for the brackets of a macro.
pub fn surrounding(code: &str, inner: &Range<usize>) -> Option<Range<usize>> {
    let bytes = code.as_bytes();
    let (mut open, mut depth) = (inner.start, 0_usize);
    loop {
        open = open.checked_sub(1)?;
        match bytes[open] {
            b')' | b']' => depth += 1,
            b'(' | b'[' if depth > 0 => depth -= 1,
            b'(' if bytes.get(open.checked_sub(1)?) != Some(&b'!') => break,
            b'(' | b'[' | b'{' | b'}' | b';' => return None,
            _ => {}
        }
    }
    bracketed(code, open)
}

/// The two sides of the first comparison of an expression, outside brackets.
pub fn comparison(expression: &str) -> Option<(&str, Order, &str)> {
    let bytes = expression.as_bytes();
    let mut depth = 0_usize;
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'<' | b'>' if depth == 0 && at > 0 && bytes[at - 1].is_ascii_whitespace() => {
                let rest = &expression[at + 1..];
                let rest = rest.strip_prefix('=').unwrap_or(rest);
                if rest.starts_with(char::is_whitespace) {
                    let order = if *byte == b'<' { Order::Less } else { Order::More };
                    return Some((expression[..at].trim(), order, rest.trim()));
                }
            }
            _ => {}
        }
    }
    None
}

/// The arguments of the call whose bracket opens at `open`.
pub fn arguments(code: &str, open: usize) -> Vec<Range<usize>> {
    let Some(whole) = bracketed(code, open) else { return Vec::new() };
    let (mut found, mut start, mut depth) = (Vec::new(), open + 1, 0_usize);
    for (at, byte) in code.bytes().enumerate().take(whole.end - 1).skip(open + 1) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                found.push(start..at);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !code[start..whole.end - 1].trim().is_empty() {
        found.push(start..whole.end - 1);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(code: &str, phrase: &str) -> String {
        let at = code.find(phrase).unwrap();
        code[expression(code, at..at + phrase.len())].trim().to_owned()
    }

    #[test]
    fn expressions_end_at_commas_and_assignments() {
        for (code, expected) in [
            ("assert!(a.elapsed() < B, c)", "a.elapsed() < B"),
            ("let a = f(b).elapsed();", "f(b).elapsed()"),
            ("if x && y.elapsed() > z { f() }", "y.elapsed() > z"),
            ("if y.elapsed() > z(1, 2) { f() }", "if y.elapsed() > z(1, 2)"),
            ("a => b.elapsed() <= c,", "b.elapsed() <= c"),
            ("a == b.elapsed()", "a == b.elapsed()"),
        ] {
            assert_eq!(around(code, "elapsed()"), expected, "{code}");
        }
    }

    #[test]
    fn brackets_are_left_but_for_macros() {
        let outer = |code: &str| {
            let at = code.find('x').unwrap();
            surrounding(code, &expression(code, at..at + 1)).map(|range| code[range].to_owned())
        };
        assert_eq!(outer("f(1, g(2), x)"), Some("(1, g(2), x)".to_owned()));
        assert_eq!(outer("assert!(1, x)"), None);
        assert_eq!(outer("{ x }"), None);
    }

    #[test]
    fn comparisons_have_two_sides() {
        assert_eq!(comparison("a < b"), Some(("a", Order::Less, "b")));
        assert_eq!(comparison("f(c < d)\n >= b"), Some(("f(c < d)", Order::More, "b")));
        for text in ["Vec<u8>", "a == b", "a << b", "f(a < b)", "a -> b", "a => b"] {
            assert_eq!(comparison(text), None, "{text}");
        }
    }

    #[test]
    fn arguments_are_apart() {
        let code = "f(a, g(b, c), [d, e],)";
        let found: Vec<_> = arguments(code, 1).into_iter().map(|at| code[at].trim()).collect();
        assert_eq!(found, ["a", "g(b, c)", "[d, e]"]);
        assert_eq!(arguments("f()", 1), []);
    }
}
