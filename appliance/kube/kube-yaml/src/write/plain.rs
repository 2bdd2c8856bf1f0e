//! Rules for the YAML style of a text, so that a YAML 1.1 parser returns the same text.

use std::cmp::Ordering;
use std::sync::LazyLock;

use regex::Regex;

use crate::scalar;

/// Styles in which a YAML parser returns a text unchanged.
pub struct Allowed {
    /// True if the plain style, without quotes, is possible.
    pub plain: bool,
    /// True if single quotes are possible.
    pub single: bool,
    /// True if the literal style, lines below a `|`, is possible.
    pub literal: bool,
}

/// Returns the possible styles of a text.
pub fn allowed(text: &str) -> Allowed {
    let bytes = text.as_bytes();
    let is_blank = |at: usize| bytes.get(at).is_none_or(|byte| matches!(byte, b' ' | b'\t'));
    let mut indicator = text.starts_with("---") || text.starts_with("...");
    let mut after_blank = true;
    for (at, c) in text.char_indices() {
        let before_blank = is_blank(at + c.len_utf8());
        indicator |= match c {
            '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%'
            | '@' | '`'
                if at == 0 =>
            {
                true
            }
            '?' | '-' if at == 0 => before_blank,
            ':' => before_blank,
            '#' => after_blank,
            _ => false,
        };
        after_blank = matches!(c, ' ' | '\t' | '\n' | '\r' | '\0');
    }
    let is_special = text.contains(" \n") || text.chars().any(|c| !is_printable(c));
    let ends_blank = text.ends_with(' ');
    let has_break = text.contains('\n');
    let edges = text.starts_with([' ', '\n']) || ends_blank || text.ends_with('\n');
    let break_space = text.contains("\n ");
    Allowed {
        plain: !(indicator || is_special || edges || has_break),
        single: !(is_special || break_space),
        literal: !(text.is_empty() || is_special || ends_blank),
    }
}

/// Returns true for a character that needs no escape in a YAML document.
fn is_printable(c: char) -> bool {
    matches!(
        u32::from(c),
        0x0a | 0x20..=0x7e | 0xa0..=0xd7ff | 0xe000..=0xfefe | 0xff00..=0xfffd
    )
}

/// Returns the escape sequence of a character in double quotes; `None` if no escape is needed.
pub fn escaped(c: char) -> Option<String> {
    let short = match c {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        c if is_printable(c) => return None,
        c => {
            return Some(match u32::from(c) {
                code @ 0..=0xff => format!("\\x{code:02X}"),
                code @ 0x100..=0xffff => format!("\\u{code:04X}"),
                code => format!("\\U{code:08X}"),
            });
        }
    };
    Some(format!("\\{short}"))
}

static SEXAGESIMAL: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$").ok());
static TIMESTAMP: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let time = r"[0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:\.[0-9]+)?";
    let zone = r"(?:Z|[+-][0-9]{2}:[0-9]{2})";
    Regex::new(&format!("^[0-9]{{4}}-([0-9]{{1,2}})-([0-9]{{1,2}})(?:[Tt]{time}{zone}| +{time})?$"))
        .ok()
});

/// Returns true if a YAML parser reads `text` without quotes as a string.
pub fn resolves_to_text(text: &str) -> bool {
    // A float that JSON cannot express is not a string either.
    let is_string = scalar::resolve(text).is_some_and(|value| value.is_string());
    let is_number = |pattern: &Option<Regex>| pattern.as_ref().is_none_or(|it| it.is_match(text));
    is_string && text != "<<" && !is_number(&SEXAGESIMAL) && !is_date(text)
}

fn is_date(text: &str) -> bool {
    let Some(found) = TIMESTAMP.as_ref().and_then(|pattern| pattern.captures(text)) else {
        return false;
    };
    let part = |at: usize| found.get(at).and_then(|it| it.as_str().parse::<u32>().ok());
    let days = match part(1) {
        Some(2) => 29,
        Some(4 | 6 | 9 | 11) => 30,
        Some(1..=12) => 31,
        _ => 0,
    };
    part(2).is_some_and(|day| (1..=days).contains(&day))
}

/// Compares keys in natural order: digits are compared as numbers, and letters come after all other
/// characters.
pub fn natural_order(a: &str, b: &str) -> Ordering {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let number = |text: &[char], from: usize| {
        let digits = text[from..].iter().take_while(|c| c.is_ascii_digit());
        let value = digits.clone().fold(0_i64, |sum, digit| {
            sum.wrapping_mul(10).wrapping_add(i64::from(digit.to_digit(10).unwrap_or(0)))
        });
        (value, from + digits.count())
    };
    for at in 0..a.len().min(b.len()) {
        if a[at] == b[at] {
            continue;
        }
        match (a[at].is_alphabetic(), b[at].is_alphabetic()) {
            (true, true) => return a[at].cmp(&b[at]),
            (true, false) => return Ordering::Greater,
            (false, true) => return Ordering::Less,
            (false, false) => {}
        }
        let ((value_a, end_a), (value_b, end_b)) = (number(&a, at), number(&b, at));
        // Zeros within a number count; leading zeros do not.
        let mut is_within = false;
        if a[at] == '0' || b[at] == '0' {
            let before = a[..at].iter().rev().take_while(|c| c.is_ascii_digit());
            is_within = before.into_iter().any(|c| *c != '0');
        }
        let order = if is_within { end_a.cmp(&end_b) } else { value_a.cmp(&value_b) };
        let order = order.then(end_a.cmp(&end_b));
        return order.then(a[at].cmp(&b[at]));
    }
    a.len().cmp(&b.len())
}

/// Minimum power of ten for which a float is written with an exponent.
const LARGE_POWER: i32 = 6;

/// Formats a float as Go's `%g` does.
pub fn float(number: f64) -> String {
    let text = format!("{number:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let power: i32 = exponent.parse().unwrap_or_default();
    if (-4..LARGE_POWER).contains(&power) {
        return number.to_string();
    }
    let sign = if power < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", power.abs())
}
