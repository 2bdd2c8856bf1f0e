//! Literals: types, sizes, and checks that functions can parse them.

use kube_cel::cel::common::ast::LiteralValue;

use super::estimate::{Estimate, Size};
use super::kind::Kind;
use crate::rules::eval::library;
use crate::text::pattern::Pattern;

/// Returns true if a string literal has the syntax that the function `name` parses.
pub(super) fn reads(name: &str, text: &str) -> bool {
    match name {
        "matches" => Pattern::new(text).error().is_none(),
        "duration" | "timestamp" => library::convert(name, text).is_some(),
        _ => true,
    }
}

/// Returns the text of a literal as in the source, without quotes and escapes.
pub(super) fn text(literal: &LiteralValue) -> String {
    match literal {
        LiteralValue::Boolean(flag) => flag.inner().to_string(),
        LiteralValue::Bytes(bytes) => String::from_utf8_lossy(bytes.inner()).into_owned(),
        LiteralValue::Double(number) => number.inner().to_string(),
        LiteralValue::Int(number) => number.inner().to_string(),
        LiteralValue::Null => "null".to_owned(),
        LiteralValue::String(text) => text.inner().to_owned(),
        LiteralValue::UInt(number) => format!("{}u", number.inner()),
    }
}

/// Returns type and size of a literal.
pub(super) fn known<'a>(literal: &LiteralValue) -> Estimate<'a> {
    let (kind, size) = match literal {
        LiteralValue::Boolean(_) => (Kind::Bool, 1),
        LiteralValue::Bytes(bytes) => (Kind::Bytes, bytes.inner().len() as u64),
        LiteralValue::Double(_) => (Kind::Double, 1),
        LiteralValue::Int(_) => (Kind::Int, 1),
        LiteralValue::Null => (Kind::Null, 1),
        LiteralValue::String(text) => (Kind::Text, text.inner().chars().count() as u64),
        LiteralValue::UInt(_) => (Kind::Uint, 1),
    };
    let number = match literal {
        LiteralValue::Int(number) => u64::try_from(*number.inner()).ok(),
        _ => None,
    };
    Estimate { size: Some(Size::fixed(size)), number, ..Estimate::of(kind, 0) }
}
