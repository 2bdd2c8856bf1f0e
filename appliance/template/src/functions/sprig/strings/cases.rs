//! Upper and lower case, and names in other spellings (`xstrings`, `goutils`).

use crate::function::Type::Text;
use crate::function::{Function, exact};

/// Sprig functions that this file implements.
pub static FUNCTIONS: &[Function] = &[
    exact("upper", &[Text], |args| args.made(args.text(0).chars().map(upper).collect::<String>())),
    exact("lower", &[Text], |args| args.made(args.text(0).chars().map(lower).collect::<String>())),
    exact("title", &[Text], |args| args.made(title(args.text(0)))),
    exact("untitle", &[Text], |args| args.made(untitle(args.text(0)))),
    exact("swapcase", &[Text], |args| args.made(swapcase(args.text(0)))),
    exact("camelcase", &[Text], |args| args.made(pascal(args.text(0)))),
    exact("snakecase", &[Text], |args| args.made(connected(args.text(0), '_'))),
    exact("kebabcase", &[Text], |args| args.made(connected(args.text(0), '-'))),
];

/// Returns the upper case of `c`; `c` itself if its upper case has several characters.
fn upper(c: char) -> char {
    let mut all = c.to_uppercase();
    if all.len() == 1 { all.next().unwrap_or(c) } else { c }
}

fn lower(c: char) -> char {
    let mut all = c.to_lowercase();
    if all.len() == 1 { all.next().unwrap_or(c) } else { c }
}

fn title(text: &str) -> String {
    let mut before = ' ';
    let titled = text.chars().map(|c| {
        let is_separator = match before {
            '_' => false,
            before if before.is_ascii() => !before.is_ascii_alphanumeric(),
            before => !before.is_alphanumeric() && before.is_whitespace(),
        };
        before = c;
        if is_separator { upper(c) } else { c }
    });
    titled.collect()
}

fn untitle(text: &str) -> String {
    let mut is_next = true;
    let changed = text.chars().map(|c| {
        if c.is_whitespace() {
            is_next = true;
            return c;
        }
        if std::mem::take(&mut is_next) { lower(c) } else { c }
    });
    changed.collect()
}

fn swapcase(text: &str) -> String {
    let changed = text.chars().map(|c| match c {
        c if c.is_uppercase() => lower(c),
        c if c.is_lowercase() => upper(c),
        c => c,
    });
    changed.collect()
}

fn is_connector(c: char) -> bool {
    matches!(c, '-' | '_') || c.is_whitespace()
}

/// Converts `http_server` to `HttpServer`. Connectors at the beginning stay.
fn pascal(text: &str) -> String {
    let start = text.find(|c| !is_connector(c)).unwrap_or(text.len());
    let (head, body) = text.split_at(start);
    let mut chars = body.chars();
    let Some(first) = chars.next() else {
        // xstrings writes the last connector of a text that has nothing else once more.
        return text.chars().chain(text.chars().next_back()).collect();
    };
    let mut out = head.to_owned();
    let mut was_upper = first.is_uppercase();
    let mut current = upper(first);
    for c in chars {
        let last = current;
        current = c;
        if is_connector(current) && is_connector(last) {
            out.push(last);
            continue;
        }
        if is_connector(last) {
            was_upper = current.is_uppercase();
            current = upper(current);
            continue;
        }
        if was_upper {
            if current.is_uppercase() {
                current = lower(current);
            } else {
                was_upper = false;
            }
        }
        out.push(last);
    }
    out.push(current);
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    End,
    Number,
    Upper,
    Letters,
    Connector,
    Punctuation,
    Other,
}

fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation() && !"$+<=>^`|~".contains(c)
        || matches!(c, '¡' | '§' | '«' | '¶' | '·' | '»' | '¿' | '\u{2010}'..='\u{2027}')
}

/// Returns the kind of the first word, the word, and the rest of the text.
fn word(text: &str) -> (Word, &str, &str) {
    let mut chars = text.chars();
    let Some(first) = chars.next() else { return (Word::End, "", "") };
    let run = |is: &dyn Fn(char) -> bool| text.find(|c| !is(c)).unwrap_or(text.len());
    let small = |from: usize| {
        let rest = &text[from..];
        from + rest.find(|c: char| !c.is_alphabetic() || c.is_uppercase()).unwrap_or(rest.len())
    };
    let (kind, end) = match first {
        c if is_connector(c) => (Word::Connector, run(&is_connector)),
        c if is_punctuation(c) => (Word::Punctuation, run(&is_punctuation)),
        c if c.is_uppercase() => {
            let uppers = run(&char::is_uppercase);
            let after = text[uppers..].chars().next();
            let is_one = uppers == first.len_utf8();
            let end = match after {
                Some(c) if c.is_alphabetic() && is_one => small(uppers),
                // The last capital of many begins the next word.
                Some(c) if c.is_alphabetic() => {
                    text[..uppers].char_indices().last().map_or(uppers, |(at, _)| at)
                }
                _ => uppers,
            };
            (Word::Upper, end)
        }
        c if c.is_alphabetic() => (Word::Letters, small(0)),
        c if c.is_numeric() => (Word::Number, run(&char::is_numeric)),
        _ => {
            let is_other = |c: char| {
                !is_connector(c) && !c.is_alphabetic() && !c.is_numeric() && !is_punctuation(c)
            };
            (Word::Other, run(&is_other))
        }
    };
    (kind, &text[..end], &text[end..])
}

/// Converts `HTTPServer` to `http_server`, with `connector` for `_`.
fn connected(text: &str, connector: char) -> String {
    let mut out = String::new();
    let put = |out: &mut String, kind: Word, word: &str| match kind {
        Word::Upper | Word::Connector => out.extend(word.chars().map(|c| match c {
            c if is_connector(c) => connector,
            c => lower(c),
        })),
        _ => out.push_str(word),
    };
    let breaks = |kind: Word| !matches!(kind, Word::Punctuation | Word::Connector);
    let (mut kind, mut text, mut rest) = word(text);
    while !rest.is_empty() {
        if kind != Word::Connector {
            put(&mut out, kind, text);
        }
        let (before, last) = (kind, text);
        (kind, text, rest) = word(rest);
        match before {
            Word::Number => {
                while matches!(kind, Word::Letters | Word::Number) {
                    put(&mut out, kind, text);
                    (kind, text, rest) = word(rest);
                }
                if kind != Word::End && breaks(kind) {
                    out.push(connector);
                }
            }
            Word::Connector => put(&mut out, before, last),
            Word::Punctuation => {}
            _ if kind != Word::Number => {
                if breaks(kind) {
                    out.push(connector);
                }
            }
            _ if rest.is_empty() => {}
            _ => {
                // A number belongs to the word before it, unless small letters follow.
                let number = text;
                (kind, text, rest) = word(rest);
                if kind != Word::Letters {
                    put(&mut out, Word::Number, number);
                    if breaks(kind) {
                        out.push(connector);
                    }
                    continue;
                }
                out.push(connector);
                put(&mut out, Word::Number, number);
                while matches!(kind, Word::Letters | Word::Number) {
                    put(&mut out, kind, text);
                    (kind, text, rest) = word(rest);
                }
                if kind != Word::End && breaks(kind) {
                    out.push(connector);
                }
            }
        }
    }
    put(&mut out, kind, text);
    out
}
