//! Regular expressions (Go `regexp`).

use std::rc::Rc;

use regex::Captures;

use crate::function::Type::{Int, Text};
use crate::function::{Answer, Args, Function, exact};
use crate::limits::{
    LARGE_PATTERN_STEPS, LIST_ITEMS_MAX, PATTERN_BYTES_MAX, PATTERN_STEPS, SMALL_PATTERN_BYTES,
};
use crate::pattern::{self, Pattern, compiled};
use crate::value::{Element, Value, may_make};

/// Maximum digits of a group number such as `$12`; a longer number counts as a group name.
const GROUP_DIGITS_MAX: usize = 8;

/// Sprig functions of this file. For `regexMatch`, an invalid pattern never matches.
pub static FUNCTIONS: &[Function] = &[
    exact("regexMatch", &[Text, Text], |args| match pattern(args, args.text(1)) {
        Ok(pattern) => Ok(Value::Bool(pattern.regex.is_match(args.text(1)))),
        Err(Bad::Pattern(_)) => Ok(Value::Bool(false)),
        Err(Bad::Limit(error)) => Err(error),
    }),
    exact("mustRegexMatch", &[Text, Text], |args| {
        Ok(Value::Bool(pattern(args, args.text(1))?.regex.is_match(args.text(1))))
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

/// Returns the first argument as a compiled pattern; charges steps for compiling and matching.
fn pattern(args: &Args, text: &str) -> Result<Rc<Pattern>, Bad> {
    let source = args.text(0);
    args.heap.step(1 + (text.len() + source.len()) / 8).map_err(Bad::Limit)?;
    if let Some(known) = args.heap.patterns.get(source) {
        return known.map_err(Bad::Pattern);
    }
    args.heap.step(PATTERN_STEPS).map_err(Bad::Limit)?;
    let small = match compiled(source, SMALL_PATTERN_BYTES) {
        Ok(pattern) => Ok(Rc::new(pattern)),
        Err(pattern::Bad::Syntax(error)) => Err(error),
        Err(pattern::Bad::Large) => return large(args),
    };
    args.heap.patterns.keep(source, &small);
    small.map_err(Bad::Pattern)
}

/// Compiles a pattern that is too large for the cache.
fn large(args: &Args) -> Result<Rc<Pattern>, Bad> {
    args.heap.step(LARGE_PATTERN_STEPS).map_err(Bad::Limit)?;
    compiled(args.text(0), PATTERN_BYTES_MAX).map(Rc::new).map_err(|bad| match bad {
        pattern::Bad::Syntax(error) => Bad::Pattern(error),
        pattern::Bad::Large => {
            Bad::Limit(format!("a pattern that takes more than {PATTERN_BYTES_MAX} bytes"))
        }
    })
}

fn find(args: &Args) -> Answer {
    let pattern = pattern(args, args.text(1))?;
    args.made(pattern.regex.find(args.text(1)).map_or("", |found| found.as_str()))
}

/// Converts a limit of matches: 0 allows no match, a negative number all.
fn most(count: i64) -> usize {
    usize::try_from(count).unwrap_or(LIST_ITEMS_MAX + 1)
}

fn find_all(args: &Args) -> Answer {
    let pattern = pattern(args, args.text(1))?;
    let found: Vec<&str> = pattern
        .regex
        .find_iter(args.text(1))
        .take(most(args.int(2)))
        .map(|it| it.as_str())
        .collect();
    if found.is_empty() {
        return args.heap.nil_list(Element::Text);
    }
    args.heap.texts(found)
}

fn replace(args: &Args, expands: bool) -> Answer {
    let (text, with) = (args.text(1), args.text(2));
    let pattern = pattern(args, text)?;
    let (mut made, mut end) = (String::new(), 0);
    for found in pattern.regex.captures_iter(text) {
        args.heap.step(1)?;
        let whole = found.get_match();
        made.push_str(&text[end..whole.start()]);
        // At worst every `$1` is the whole match.
        let references = with.matches('$').count();
        may_make(made.len() + with.len() + references.saturating_mul(whole.len()))?;
        if expands {
            expand(&pattern, &found, with, &mut made);
        } else {
            made.push_str(with);
        }
        end = whole.end();
    }
    made.push_str(&text[end..]);
    args.made(made)
}

/// Appends `with` to `made`, as `Regexp.Expand`: `$1` and `${name}` become the text of the group.
fn expand(pattern: &Pattern, found: &Captures<'_>, with: &str, made: &mut String) {
    let mut rest = with;
    while let Some((before, after)) = rest.split_once('$') {
        made.push_str(before);
        rest = after;
        if let Some(after) = rest.strip_prefix('$') {
            made.push('$');
            rest = after;
            continue;
        }
        let Some((name, after)) = reference(rest) else {
            made.push('$');
            continue;
        };
        rest = after;
        let is_number =
            name.len() <= GROUP_DIGITS_MAX && name.bytes().all(|it| it.is_ascii_digit());
        let group = match name.parse::<usize>() {
            Ok(number) if is_number && (name == "0" || !name.starts_with('0')) => {
                found.get(number).map(|group| group.as_str())
            }
            _ => pattern.named(found, name),
        };
        made.push_str(group.unwrap_or_default());
    }
    made.push_str(rest);
}

/// Splits off a group name after `$`, with or without braces; `None` if it is invalid.
fn reference(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('{').unwrap_or(text);
    let end = inner.find(|c: char| !(c == '_' || c.is_alphanumeric())).unwrap_or(inner.len());
    let (name, rest) = inner.split_at(end);
    let rest = if inner.len() < text.len() { rest.strip_prefix('}')? } else { rest };
    (!name.is_empty()).then_some((name, rest))
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
    for found in pattern.regex.find_iter(text).take(most(count)) {
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
