//! Wrapping and abbreviation of texts (`goutils`). Upstream counts bytes as characters; so does
//! this module unless it would split a character.

use super::cut;
use crate::function::Type::{Int, Text};
use crate::function::{Answer, Args, Function, exact};
use crate::limits::STEP_BYTES;
use crate::value::may_make;

/// Minimum width of `abbrev`: an ellipsis of three dots and one letter.
const ABBREVIATED_MIN: i64 = 4;
/// Minimum width of `abbrevboth` with text cut at both ends: two ellipses and one letter.
const ABBREVIATED_BOTH_MIN: i64 = 7;

/// Sprig functions that this file implements.
pub static FUNCTIONS: &[Function] = &[
    exact("abbrev", &[Int, Text], |args| {
        let (width, text) = (args.int(0), args.text(1));
        if width < ABBREVIATED_MIN {
            return args.made(text);
        }
        args.made(abbreviated(text, 0, width)?)
    }),
    exact("abbrevboth", &[Int, Int, Text], |args| {
        let (left, right, text) = (args.int(0), args.int(1), args.text(2));
        if right < ABBREVIATED_MIN || left > 0 && right < ABBREVIATED_BOTH_MIN {
            return args.made(text);
        }
        args.made(abbreviated(text, left, right)?)
    }),
    exact("initials", &[Text], |args| args.made(initials(args.text(0)))),
    exact("nospace", &[Text], |args| args.made(nospace(args.text(0)))),
    exact("wrap", &[Int, Text], |args| wrapped(args, args.int(0), "\n", false, args.text(1))),
    exact("wrapWith", &[Int, Text, Text], |args| {
        let separator = if args.text(1).is_empty() { "\n" } else { args.text(1) };
        wrapped(args, args.int(0), separator, true, args.text(2))
    }),
];

fn abbreviated(text: &str, offset: i64, width: i64) -> Result<String, String> {
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    if width < ABBREVIATED_MIN {
        return Ok(String::new());
    }
    if length <= width {
        return Ok(text.to_owned());
    }
    let room = width - 3;
    let offset = offset.min(length);
    let offset = if length - offset < room { length - room } else { offset };
    if offset <= 4 {
        return Ok(format!("{}...", cut(text, 0, room)?));
    }
    if width < ABBREVIATED_BOTH_MIN {
        return Ok(String::new());
    }
    if offset + room < length {
        return Ok(format!("...{}", abbreviated(cut(text, offset, length)?, 0, room)?));
    }
    Ok(format!("...{}", cut(text, length - room, length)?))
}

/// Returns the first byte of each word, as the character with its number, as upstream.
fn initials(text: &str) -> String {
    let mut after_gap = true;
    let mut out = String::new();
    for c in text.bytes().map(char::from) {
        if c.is_whitespace() {
            after_gap = true;
        } else if std::mem::take(&mut after_gap) {
            out.push(c);
        }
    }
    out
}

fn nospace(text: &str) -> String {
    if !text.bytes().any(|byte| char::from(byte).is_whitespace()) {
        return text.to_owned();
    }
    text.bytes().map(char::from).filter(|c| !c.is_whitespace()).collect()
}

fn wrapped(args: &Args, width: i64, separator: &str, breaks: bool, text: &str) -> Answer {
    let width = usize::try_from(width.max(1)).unwrap_or(usize::MAX);
    let bytes = text.as_bytes();
    let mut out: Vec<u8> = Vec::new();
    let mut at = 0;
    while bytes.len() - at > width {
        args.heap.step(1 + width / STEP_BYTES)?;
        may_make(out.len() + separator.len() + width)?;
        if bytes[at] == b' ' {
            at += 1;
            continue;
        }
        let window = &bytes[at..at + width + 1];
        let (end, next) = match window.iter().rposition(|byte| *byte == b' ') {
            Some(space) => (at + space, at + space + 1),
            None if breaks => (at + width, at + width),
            None => match bytes[at + width..].iter().position(|byte| *byte == b' ') {
                Some(space) => (at + width + space, at + width + space + 1),
                None => {
                    out.extend_from_slice(&bytes[at..]);
                    at = bytes.len();
                    break;
                }
            },
        };
        out.extend_from_slice(&bytes[at..end]);
        out.extend_from_slice(separator.as_bytes());
        at = next;
    }
    out.extend_from_slice(&bytes[at..]);
    args.made(String::from_utf8(out).map_err(|_| "this would cut a character in two".to_owned())?)
}
