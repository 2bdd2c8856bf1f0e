//! Functions that search, truncate, pad and quote texts.

pub mod cases;
pub mod pieces;
pub mod regexes;
pub mod wrap;

use crate::function::Type::{Any, Int, Text};
use crate::function::{Answer, Args, Function, exact, variadic};
use crate::print;
use crate::value::{Value, may_make};

/// Sprig functions that this file implements.
pub static FUNCTIONS: &[Function] = &[
    exact("hello", &[], |args| args.made("Hello!")),
    exact("trim", &[Text], |args| args.made(args.text(0).trim())),
    exact("trimAll", &[Text, Text], trim_all),
    exact("trimall", &[Text, Text], trim_all),
    exact("trimSuffix", &[Text, Text], |args| {
        args.made(args.text(1).strip_suffix(args.text(0)).unwrap_or(args.text(1)))
    }),
    exact("trimPrefix", &[Text, Text], |args| {
        args.made(args.text(1).strip_prefix(args.text(0)).unwrap_or(args.text(1)))
    }),
    exact("contains", &[Text, Text], |args| {
        args.heap.step(args.text(1).len() / crate::limits::STEP_BYTES)?;
        Ok(Value::Bool(args.text(1).contains(args.text(0))))
    }),
    exact("hasPrefix", &[Text, Text], |args| {
        Ok(Value::Bool(args.text(1).starts_with(args.text(0))))
    }),
    exact("hasSuffix", &[Text, Text], |args| Ok(Value::Bool(args.text(1).ends_with(args.text(0))))),
    exact("repeat", &[Int, Text], |args| repeated(args.int(0), args.text(1), args)),
    exact("replace", &[Text, Text, Text], replace),
    exact("substr", &[Int, Int, Text], substr),
    exact("trunc", &[Int, Text], trunc),
    exact("indent", &[Int, Text], |args| args.made(indent(args)?)),
    exact("nindent", &[Int, Text], |args| args.made(format!("\n{}", indent(args)?))),
    exact("plural", &[Text, Text, Int], |args| {
        args.made(args.text(if args.int(2) == 1 { 0 } else { 1 }))
    }),
    exact("toString", &[Any], |args| args.made(print::plain(args.heap, args.any(0))?)),
    variadic("quote", &[], Any, |args| {
        joined(args, |args, value| Ok(go_text::quoted(&print::plain(args.heap, value)?)))
    }),
    variadic("squote", &[], Any, |args| {
        joined(args, |args, value| Ok(format!("'{}'", print::plain(args.heap, value)?)))
    }),
    variadic("cat", &[], Any, |args| joined(args, |args, value| print::plain(args.heap, value))),
];

/// Joins all values except nil as texts, with spaces.
fn joined(args: &Args, make: impl Fn(&Args, &Value) -> Result<String, String>) -> Answer {
    let mut text = String::new();
    for (at, value) in args.values.iter().filter(|value| !value.is_nil()).enumerate() {
        let made = make(args, value)?;
        may_make(text.len() + made.len() + 1)?;
        if at > 0 {
            text.push(' ');
        }
        text.push_str(&made);
    }
    args.made(text)
}

fn trim_all(args: &Args) -> Answer {
    let set = args.text(0);
    args.made(args.text(1).trim_matches(|c| set.contains(c)))
}

fn repeated(count: i64, text: &str, args: &Args) -> Answer {
    let count = usize::try_from(count).map_err(|_| "negative Repeat count".to_owned())?;
    may_make(count.saturating_mul(text.len()))?;
    args.made(text.repeat(count))
}

fn replace(args: &Args) -> Answer {
    let (old, new, text) = (args.text(0), args.text(1), args.text(2));
    let found = if old.is_empty() { text.chars().count() + 1 } else { text.matches(old).count() };
    may_make(text.len().saturating_add(new.len().saturating_mul(found)))?;
    args.made(text.replace(old, new))
}

fn indent(args: &Args) -> Result<String, String> {
    let text = args.text(1);
    let width = usize::try_from(args.int(0)).map_err(|_| "negative Repeat count".to_owned())?;
    let lines = text.matches('\n').count() + 1;
    may_make(text.len().saturating_add(width.saturating_mul(lines)))?;
    let pad = " ".repeat(width);
    Ok(format!("{pad}{}", text.replace('\n', &format!("\n{pad}"))))
}

/// Returns the text from byte `from` to byte `to`.
///
/// # Errors
/// The text is too short, or a character would be split.
pub fn cut(text: &str, from: i64, to: i64) -> Result<&str, String> {
    let out_of_range = || "slice bounds out of range".to_owned();
    let from = usize::try_from(from).map_err(|_| out_of_range())?;
    let to = usize::try_from(to).map_err(|_| out_of_range())?;
    if from > to || to > text.len() {
        return Err(out_of_range());
    }
    text.get(from..to).ok_or_else(|| "this would cut a character in two".to_owned())
}

fn length(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}

fn substr(args: &Args) -> Answer {
    let (start, end, text) = (args.int(0), args.int(1), args.text(2));
    args.made(match (start, end) {
        (..0, end) => cut(text, 0, end)?,
        (start, end) if end < 0 || end > length(text) => cut(text, start, length(text))?,
        (start, end) => cut(text, start, end)?,
    })
}

fn trunc(args: &Args) -> Answer {
    let (count, text) = (args.int(0), args.text(1));
    args.made(match count {
        ..0 if length(text).saturating_add(count) > 0 => {
            cut(text, length(text) + count, length(text))?
        }
        0.. if length(text) > count => cut(text, 0, count)?,
        _ => text,
    })
}
