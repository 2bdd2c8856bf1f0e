//! Escaping of text for HTML, JavaScript and URLs: `html`, `js` and `urlquery`.

use crate::function::{Answer, Args};
use crate::print;
use crate::value::{Value, may_make};

/// Returns the arguments as one text; nil becomes `<no value>`.
fn text(args: &Args) -> Result<String, String> {
    let shown = args.values.iter().map(|value| match value {
        value if value.is_nil() => Value::Text("<no value>".into()),
        value => value.clone(),
    });
    print::sprint(args.heap, &shown.collect::<Vec<_>>())
}

fn mapped(args: &Args, map: impl Fn(char, &mut String)) -> Answer {
    let text = text(args)?;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        map(c, &mut out);
        may_make(out.len())?;
    }
    args.made(out)
}

pub fn html(args: &Args) -> Answer {
    mapped(args, |c, out| match c {
        '\0' => out.push('\u{fffd}'),
        '"' => out.push_str("&#34;"),
        '\'' => out.push_str("&#39;"),
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        c => out.push(c),
    })
}

pub fn js(args: &Args) -> Answer {
    mapped(args, |c, out| match c {
        '\\' => out.push_str("\\\\"),
        '\'' => out.push_str("\\'"),
        '"' => out.push_str("\\\""),
        '<' | '>' | '&' | '=' | '\0'..='\u{1f}' => {
            out.push_str(&format!("\\u{:04X}", u32::from(c)));
        }
        c if c.is_ascii() || go_text::is_printable(c) => out.push(c),
        c => out.push_str(&format!("\\u{:04X}", u32::from(c))),
    })
}

pub fn urlquery(args: &Args) -> Answer {
    mapped(args, |c, out| match c {
        ' ' => out.push('+'),
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' | '~' => out.push(c),
        c => {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                out.push_str(&format!("%{byte:02X}"));
            }
        }
    })
}
