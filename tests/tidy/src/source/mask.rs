//! Blanking of comments and literals.

use std::ops::Range;

/// Returns the code alone: the contents of comments, string and character literals become spaces.
/// Line breaks stay, and every byte keeps its offset.
pub fn mask(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = literal_end(text, at);
        if let Some(end) = end {
            blank(&mut code[at..end]);
            at = end;
        } else {
            at += 1;
        }
    }
    // Only whole literals were overwritten, with ASCII, so the text is still valid UTF-8.
    String::from_utf8(code).unwrap_or_default()
}

/// The string literals of a text, with their quotes.
pub fn strings(text: &str) -> Vec<Range<usize>> {
    literals(text, |first| !matches!(first, b'/' | b'\''))
}

/// The comments of a text, each line comment by itself, with their slashes.
pub fn comments(text: &str) -> Vec<Range<usize>> {
    literals(text, |first| first == b'/')
}

/// The comments and literals whose first byte is wanted.
fn literals(text: &str, is_wanted: impl Fn(u8) -> bool) -> Vec<Range<usize>> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let Some(end) = literal_end(text, at) else {
            at += 1;
            continue;
        };
        if is_wanted(text.as_bytes()[at]) {
            found.push(at..end.min(text.len()));
        }
        at = end;
    }
    found
}

fn blank(bytes: &mut [u8]) {
    bytes.iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
}

/// The end of the comment or literal that begins at `at`, if there is one.
fn literal_end(text: &str, at: usize) -> Option<usize> {
    let rest = &text.as_bytes()[at..];
    match rest {
        [b'/', b'/', ..] => Some(find(text, at, "\n").unwrap_or(text.len())),
        [b'/', b'*', ..] => Some(block_comment_end(text.as_bytes(), at)),
        [b'"', ..] => Some(string_end(text.as_bytes(), at + 1)),
        [b'r', b'"' | b'#', ..] if begins_word(text.as_bytes(), at) => raw_string_end(text, at + 1),
        [b'b' | b'c', b'r', ..] if begins_word(text.as_bytes(), at) => raw_string_end(text, at + 2),
        [b'\'', ..] => character_end(text, at),
        _ => None,
    }
}

fn find(text: &str, from: usize, what: &str) -> Option<usize> {
    let rest = text.as_bytes().get(from..)?;
    let found = rest.windows(what.len()).position(|window| window == what.as_bytes())?;
    Some(from + found)
}

fn begins_word(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| bytes.get(before));
    !before.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// The end of a block comment, which may contain others (Rust nests them).
fn block_comment_end(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0;
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}

/// Offset after the closing quote of a string whose content begins at `at`.
fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The end of a raw string; `at` is after the `r`. A raw string has hashes, a quote, and a closing
/// quote with the same number of hashes. A raw identifier (`r#fn`) has no quote.
fn raw_string_end(text: &str, at: usize) -> Option<usize> {
    let hashes = text.as_bytes()[at..].iter().take_while(|byte| **byte == b'#').count();
    let inside = at + hashes;
    if text.as_bytes().get(inside) != Some(&b'"') {
        return None;
    }
    let close = format!("\"{}", "#".repeat(hashes));
    Some(find(text, inside + 1, &close).map_or(text.len(), |end| end + close.len()))
}

/// The end of a character literal; `None` for a lifetime.
fn character_end(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    if bytes.get(at + 1) == Some(&b'\\') {
        // The escaped character may itself be a quote.
        return Some(find(text, at + 3, "'").map_or(text.len(), |end| end + 1));
    }
    let close = at + 1 + text.get(at + 1..)?.chars().next()?.len_utf8();
    (bytes.get(close) == Some(&b'\'')).then_some(close + 1)
}

#[cfg(test)]
mod tests {
    use super::{mask, strings};

    #[test]
    fn only_code_stays() {
        for (text, code) in [
            ("a // b { \n c", "a c"),
            ("a /* b /* c */ \n } */ d", "a d"),
            (r#"f("{ \" }") g"#, "f( ) g"),
            (r##"f(r#"a " { "#) g"##, "f( ) g"),
            (r##"f(br"\") g"##, "f( ) g"),
            (r#"f(b"{") g"#, "f(b ) g"),
            ("m('{', '\\'', 'é', b'\"')", "m( , , , b )"),
            ("fn a<'a>(b: &'a str) {}", "fn a<'a>(b: &'a str) {}"),
            ("r#fn + for\"x\"", "r#fn + for"),
            ("'\\u{7d}' }", "}"),
            ("\"\\\\\" }", "}"),
        ] {
            let masked = mask(text);
            let words: Vec<&str> = masked.split_whitespace().collect();
            assert_eq!(words.join(" "), code, "{text}");
            assert_eq!(masked.len(), text.len(), "{text}");
            assert_eq!(masked.lines().count(), text.lines().count(), "{text}");
        }
    }

    #[test]
    fn strings_are_found() {
        let text = "a(\"b\", 'c', b\"d\", r#\"e\"#) // \"f\"\n";
        let found: Vec<&str> = strings(text).into_iter().map(|range| &text[range]).collect();
        assert_eq!(found, ["\"b\"", "\"d\"", "r#\"e\"#"]);
    }

    #[test]
    fn what_is_cut_off_is_read_to_its_end() {
        for text in ["\"abc", "/* abc", "r#\"abc\"", "'\\", "\"\\", "b'", "'", "r", "br"] {
            assert_eq!(mask(text).len(), text.len(), "{text}");
        }
    }
}
