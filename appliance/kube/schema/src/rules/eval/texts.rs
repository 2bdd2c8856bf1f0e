//! String functions that in a library would use more time or memory than their cost covers.

use super::operator::Words;
use super::val::Val;

/// Maximum number of decimals that `format` prints.
const MAX_PRECISION: u64 = 1_000;

/// Maximum number of characters before the decimal point of a float printed without an exponent.
const FLOAT_CHARACTERS: u64 = 310;

/// Calls a method of a string; `None` if there is no string method `name`.
pub(in crate::rules) fn method<'a>(
    name: &str,
    text: &str,
    args: &[Val<'a>],
) -> Option<Result<Val<'a>, Words>> {
    Some(match (name, args) {
        ("contains", [Val::Text(part)]) => Ok(Val::Bool(text.contains(&**part))),
        ("startsWith", [Val::Text(part)]) => Ok(Val::Bool(text.starts_with(&**part))),
        ("endsWith", [Val::Text(part)]) => Ok(Val::Bool(text.ends_with(&**part))),
        ("indexOf", [Val::Text(part)]) => Ok(Val::Int(index_of(text, part, 0))),
        ("indexOf", [Val::Text(part), Val::Int(from)]) => {
            at_least_zero(part, *from).map(|from| Val::Int(index_of(text, part, from)))
        }
        ("lastIndexOf", [Val::Text(part)]) => {
            let end = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
            let last = if part.is_empty() { end } else { (end - 1).max(0) };
            Ok(Val::Int(last_index_of(text, part, last)))
        }
        ("lastIndexOf", [Val::Text(part), Val::Int(to)]) => {
            at_least_zero(part, *to).map(|to| Val::Int(last_index_of(text, part, to)))
        }
        ("split", [Val::Text(separator)]) => Ok(split(text, separator, -1)),
        ("split", [Val::Text(separator), Val::Int(most)]) => Ok(split(text, separator, *most)),
        _ => return None,
    })
}

/// Returns `index`; an error if it is negative, unless the searched string is empty.
fn at_least_zero(part: &str, index: i64) -> Result<i64, Words> {
    match index < 0 && !part.is_empty() {
        true => Err(format!("index out of range: {index}")),
        false => Ok(index),
    }
}

fn index_of(text: &str, part: &str, from: i64) -> i64 {
    if part.is_empty() {
        return from;
    }
    let skipped = usize::try_from(from).unwrap_or(usize::MAX);
    let Some((start, _)) = text.char_indices().nth(skipped) else { return -1 };
    let found = text[start..].find(part).map(|at| text[start..start + at].chars().count());
    found.and_then(|at| i64::try_from(at).ok()).map_or(-1, |at| from + at)
}

/// Returns the character position of the last occurrence at or before `to`; -1 if none.
fn last_index_of(text: &str, part: &str, to: i64) -> i64 {
    if part.is_empty() {
        return to;
    }
    let last = usize::try_from(to).unwrap_or(usize::MAX);
    let Some((last, _)) = text.char_indices().nth(last) else { return -1 };
    let found = text[..text.floor_char_boundary(last + part.len())]
        .rfind(part)
        .map(|at| text[..at].chars().count());
    found.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1)
}

/// Splits a string into at most `most` parts, of which the last has the rest; a negative `most`
/// means no limit. An empty separator splits into characters.
fn split<'a>(text: &str, separator: &str, most: i64) -> Val<'a> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let parts = match (most, separator.is_empty()) {
        (0, _) => Vec::new(),
        (most, false) => text.splitn(most, separator).map(Val::text).collect(),
        (most, true) => {
            let cut = text.char_indices().nth(most - 1).map_or(text.len(), |(at, _)| at);
            let (single, rest) = text.split_at(cut);
            let rest = Some(rest).filter(|rest| !rest.is_empty());
            let mut buffer = [0; 4];
            let mut parts: Vec<_> =
                single.chars().map(|c| Val::text(c.encode_utf8(&mut buffer))).collect();
            parts.extend(rest.map(Val::text));
            parts
        }
    };
    Val::list(parts)
}

/// Returns the maximum number of parts that `split` creates.
pub(in crate::rules) fn parts(text: &str, separator: &str) -> u64 {
    match separator.is_empty() {
        true => text.len() as u64,
        false => text.matches(separator).count() as u64 + 1,
    }
}

/// Returns the maximum number of characters that the numbers in a format print.
pub(in crate::rules) fn formatted(format: &str) -> Result<u64, Words> {
    let mut characters = 0_u64;
    let mut rest = format;
    while let Some((_, verb)) = rest.split_once('%') {
        let digits = verb.strip_prefix('.').map(|verb| {
            let end = verb.find(|c: char| !c.is_ascii_digit()).unwrap_or(verb.len());
            verb.split_at(end)
        });
        rest = match digits {
            None => {
                characters += if verb.starts_with(['f', 'e']) { FLOAT_CHARACTERS } else { 0 };
                let mut verb = verb.chars();
                let _ = verb.next();
                verb.as_str()
            }
            Some((digits, rest)) => {
                let precision = digits.parse().unwrap_or(u64::MAX);
                if precision > MAX_PRECISION {
                    return Err(format!("precision {digits} is greater than {MAX_PRECISION}"));
                }
                characters += precision + FLOAT_CHARACTERS;
                rest
            }
        };
    }
    Ok(characters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_by_their_characters() {
        for (text, part, first, last) in
            [("añña", "ñ", 1, 2), ("añña", "a", 0, 3), ("ab", "abc", -1, -1), ("", "a", -1, -1)]
        {
            let ask = |name| match method(name, text, &[Val::text(part)]) {
                Some(Ok(Val::Int(at))) => at,
                other => panic!("{name} of {text}: {other:?}"),
            };
            assert_eq!((ask("indexOf"), ask("lastIndexOf")), (first, last), "{part} in {text}");
        }
        assert_eq!(index_of("añaña", "ñ", 2), 3);
        assert_eq!(last_index_of("añaña", "ñ", 2), 1);
        assert_eq!(last_index_of("añaña", "ñaña", 1), 1);
        assert_eq!(index_of("a", "a", 5), -1);
    }

    #[test]
    fn texts_are_split_as_by_go() {
        for (text, separator, most, count) in [
            ("a,b,c", ",", -1, 3),
            ("a,b,c", ",", 2, 2),
            ("a,b,c", ",", 0, 0),
            ("añb", "", -1, 3),
            ("añb", "", 2, 2),
            ("", "", -1, 0),
            ("", ",", -1, 1),
        ] {
            assert_eq!(split(text, separator, most).size(), Some(count), "{text} by {separator}");
        }
    }
}
