//! Values of plain (unquoted) YAML scalars.

use serde_json::{Number, Value};

/// Returns the value of a plain scalar; `None` for a number that is not finite, such as `.inf`.
pub fn resolve(text: &str) -> Option<Value> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(Value::Null),
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Some(Value::Bool(true));
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Some(Value::Bool(false));
        }
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF"
        | "-.inf" | "-.Inf" | "-.INF" => return None,
        _ => {}
    }
    let numeric = match text.as_bytes().first() {
        Some(b'.') => float(text),
        Some(b'+' | b'-' | b'0'..=b'9') => {
            let plain = text.replace('_', "");
            integer(&plain).map(Some).or_else(|| float(&plain))
        }
        _ => None,
    };
    match numeric {
        Some(Some(number)) => Some(Value::Number(number)),
        Some(None) => None,
        None => Some(Value::from(text)),
    }
}

/// Parses an integer with Go's prefixes: `0x`, `0o`, `0b`, and `0` for octal.
fn integer(plain: &str) -> Option<Number> {
    let (negative, digits) = match plain.as_bytes().first()? {
        b'-' => (true, plain.get(1..)?),
        b'+' => (false, plain.get(1..)?),
        _ => (false, plain),
    };
    let prefix = digits.get(..2).map(str::to_ascii_lowercase);
    let (base, digits) = match prefix.as_deref() {
        Some("0x") => (16, digits.get(2..)?),
        Some("0o") => (8, digits.get(2..)?),
        Some("0b") => (2, digits.get(2..)?),
        Some(two) if two.starts_with('0') && two != "0." => (8, digits.get(1..)?),
        _ => (10, digits),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(base)) {
        return None;
    }
    let value = u64::from_str_radix(digits, base).ok()?;
    if !negative {
        return Some(Number::from(value));
    }
    0_i64.checked_sub_unsigned(value).map(Number::from)
}

/// Parses a decimal fraction; `None` for other texts, `Some(None)` if the number is too large. A
/// whole number becomes an integer, as in Go's conversion to JSON.
#[allow(clippy::cast_possible_truncation)] // compared with what it was made from
fn float(plain: &str) -> Option<Option<Number>> {
    let unsigned = plain.strip_prefix(['+', '-']).unwrap_or(plain);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (unsigned.get(..at)?, Some(unsigned.get(at + 1..)?)),
        None => (unsigned, None),
    };
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let shaped =
        all_digits(whole) && all_digits(fraction) && !(whole.is_empty() && fraction.is_empty());
    let exponent_shaped = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && all_digits(digits)
    });
    if !(shaped && exponent_shaped) {
        return None;
    }
    let value: f64 = plain.parse().ok()?;
    let whole = value as i64;
    #[allow(clippy::cast_precision_loss, clippy::float_cmp)]
    // The conversion is exact for every number below the limit.
    let is_whole = value.abs() < 9e15 && whole as f64 == value;
    Some(if is_whole { Some(Number::from(whole)) } else { Number::from_f64(value) })
}
