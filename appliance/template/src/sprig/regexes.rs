//! Regular expressions (Go `regexp`).

use regex::Regex;

use super::pattern::compiled;
use crate::function::Type::{Int, Text};
use crate::function::{Answer, Args, Function, exact};
use crate::limits::LIST_ITEMS_MAX;
use crate::value::{Element, Value, may_make};

/// The table; only `regexMatch` takes a bad pattern for one that matches nothing.
pub static FUNCTIONS: &[Function] = &[
    exact("regexMatch", &[Text, Text], |args| match pattern(args, args.text(1)) {
        Ok(pattern) => Ok(Value::Bool(pattern.is_match(args.text(1)))),
        Err(Bad::Pattern(_)) => Ok(Value::Bool(false)),
        Err(Bad::Limit(error)) => Err(error),
    }),
    exact("mustRegexMatch", &[Text, Text], |args| {
        Ok(Value::Bool(pattern(args, args.text(1))?.is_match(args.text(1))))
    }),
    exact("regexFind", &[Text, Text], find),
    exact("mustRegexFind", &[Text, Text], find),
    exact("regexFindAll", &[Text, Text, Int], find_all),
    exact("mustRegexFindAll", &[Text, Text, Int], find_all),
    exact("regexReplaceAll", &[Text, Text, Text], |args| replace(args, true)),
    exact("mustRegexReplaceAll", &[Text, Text, Text], |args| replace(args, true)),
    exact("regexReplaceAllLiteral", &[Text, Text, Text], |args| replace(args, false)),
    exact("mustRegexReplaceAllLiteral", &[Text, Text, Text], |args| replace(args, false)),
    exact("regexSplit", &[Text, Text, Int], split),
    exact("mustRegexSplit", &[Text, Text, Int], split),
    exact("regexQuoteMeta", &[Text], |args| {
        let quoted = args.text(0).chars().flat_map(|c| {
            ["\\.+*?()|[]{}^$".contains(c).then_some('\\'), Some(c)].into_iter().flatten()
        });
        args.made(quoted.collect::<String>())
    }),
];

enum Bad {
    Pattern(String),
    Limit(String),
}

impl From<Bad> for String {
    fn from(bad: Bad) -> Self {
        match bad {
            Bad::Pattern(error) | Bad::Limit(error) => error,
        }
    }
}

/// The first argument as a pattern that is held against `text`.
fn pattern(args: &Args, text: &str) -> Result<Regex, Bad> {
    let steps = crate::limits::PATTERN_STEPS + text.len() / 8;
    args.heap.step(steps).map_err(Bad::Limit)?;
    compiled(args.text(0)).map_err(Bad::Pattern)
}

fn find(args: &Args) -> Answer {
    let pattern = pattern(args, args.text(1))?;
    args.made(pattern.find(args.text(1)).map_or("", |found| found.as_str()))
}

/// At most this many: none for 0, all below.
fn most(count: i64) -> usize {
    usize::try_from(count).unwrap_or(LIST_ITEMS_MAX + 1)
}

fn find_all(args: &Args) -> Answer {
    let pattern = pattern(args, args.text(1))?;
    let found: Vec<&str> =
        pattern.find_iter(args.text(1)).take(most(args.int(2))).map(|it| it.as_str()).collect();
    if found.is_empty() {
        return args.heap.nil_list(Element::Text);
    }
    args.heap.texts(found)
}

fn replace(args: &Args, expands: bool) -> Answer {
    let (text, with) = (args.text(1), args.text(2));
    let pattern = pattern(args, text)?;
    let (mut made, mut end) = (String::new(), 0);
    for found in pattern.captures_iter(text) {
        args.heap.step(1)?;
        let whole = found.get_match();
        made.push_str(&text[end..whole.start()]);
        // At worst every `$1` is the whole match.
        let references = with.matches('$').count();
        may_make(made.len() + with.len() + references.saturating_mul(whole.len()))?;
        if expands {
            found.expand(with, &mut made);
        } else {
            made.push_str(with);
        }
        end = whole.end();
    }
    made.push_str(&text[end..]);
    args.made(made)
}

fn split(args: &Args) -> Answer {
    let (text, count) = (args.text(1), args.int(2));
    let pattern = pattern(args, text)?;
    if count == 0 {
        return args.heap.nil_list(Element::Text);
    }
    if !args.text(0).is_empty() && text.is_empty() {
        return args.heap.texts([""]);
    }
    let (mut pieces, mut begin, mut end) = (Vec::new(), 0, 0);
    for found in pattern.find_iter(text).take(most(count)) {
        if count > 0 && pieces.len() + 1 == most(count) {
            break;
        }
        end = found.start();
        if found.end() != 0 {
            pieces.push(&text[begin..end]);
        }
        begin = found.end();
    }
    if end != text.len() {
        pieces.push(&text[begin..]);
    }
    args.heap.texts(pieces)
}
