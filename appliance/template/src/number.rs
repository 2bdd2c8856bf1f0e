//! Number literals of a template (Go `strconv`), as integers and as floats.

/// Number literal: an integer, a float, or both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number {
    /// Value as an integer; `None` if it is not a whole number, or too large.
    pub int: Option<i64>,
    /// Value as a float.
    pub float: f64,
    /// True if written as a float; its type is then `float64` in a place without an expected type.
    pub is_float: bool,
    /// True for an integer that is too large for `int`.
    pub overflows: bool,
}

impl Number {
    /// Creates the number of a character literal.
    pub fn of_char(number: i64) -> Number {
        Number { int: Some(number), float: number as f64, is_float: false, overflows: false }
    }
}

/// Parses a number literal in Go's syntax.
///
/// # Errors
/// The text is not a valid number, or too large for any type.
pub fn from_text(text: &str) -> Result<Number, String> {
    if text.ends_with('i') && !is_hex(text) {
        return Err(format!("{text:?}: complex numbers are not supported"));
    }
    if let Some((negative, size)) = unsigned(text) {
        let int = match (negative, size) {
            (false, size) => i64::try_from(size).ok(),
            (true, size) => 0_i64.checked_sub_unsigned(size),
        };
        // A sign makes it no uint: what does not fit int then is out of range.
        if int.is_some() || !text.starts_with(['+', '-']) {
            let float = int.map_or(size as f64, |int| int as f64);
            return Ok(Number { int, float, is_float: false, overflows: int.is_none() });
        }
    }
    let float = float(text).ok_or_else(|| format!("illegal number syntax: {text:?}"))?;
    if !text.contains(['.', 'e', 'E', 'p', 'P']) {
        return Err(format!("integer overflow: {text:?}"));
    }
    // Go converts and converts back, so only what fits comes out the same.
    let fits = float.trunc() == float && (-(2f64.powi(63))..2f64.powi(63)).contains(&float);
    let looks_hex = is_hex(text) && !text.contains(['p', 'P']);
    let int = fits.then_some(float as i64);
    Ok(Number { int, float, is_float: !looks_hex, overflows: looks_hex && int.is_none() })
}

fn is_hex(text: &str) -> bool {
    text.len() > 2 && (text.starts_with("0x") || text.starts_with("0X"))
}

/// Returns the sign (true: minus) and the absolute value, as `strconv.ParseUint` with base 0.
fn unsigned(text: &str) -> Option<(bool, u64)> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, prefixed, body) = match lower.get(..2) {
        Some("0x") => (16, true, &lower[2..]),
        Some("0o") => (8, true, &lower[2..]),
        Some("0b") => (2, true, &lower[2..]),
        _ if lower.len() > 1 && lower.starts_with('0') => (8, true, &lower[1..]),
        _ => (10, false, lower.as_str()),
    };
    let plain = without_underscores(body, prefixed)?;
    u64::from_str_radix(&plain, radix).ok().map(|size| (negative, size))
}

/// Removes underscores; `None` unless each is between digits or after a prefix.
fn without_underscores(body: &str, prefixed: bool) -> Option<String> {
    let after_prefix = if prefixed { body.strip_prefix('_').unwrap_or(body) } else { body };
    let parts: Vec<&str> = after_prefix.split('_').collect();
    let is_sound = parts.iter().all(|part| !part.is_empty());
    let has_sign = after_prefix.starts_with(['+', '-']);
    (is_sound && !has_sign).then(|| parts.concat())
}

/// Parses a float in Go's syntax: decimal, or hexadecimal with a power of two.
fn float(text: &str) -> Option<f64> {
    let (negative, body) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let size = if is_hex(body) { hex_float(body)? } else { decimal_float(body)? };
    Some(if negative { -size } else { size })
}

fn decimal_float(body: &str) -> Option<f64> {
    let is_plain = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-' | '_');
    if !body.chars().all(is_plain) || !body.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    // An underscore stands between digits.
    let bytes = body.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let between = |at: usize| at > 0 && is_digit(at - 1) && is_digit(at + 1);
    if body.match_indices('_').any(|(at, _)| !between(at)) {
        return None;
    }
    body.replace('_', "").parse::<f64>().ok().filter(|float| float.is_finite())
}

fn hex_float(body: &str) -> Option<f64> {
    let (digits, exponent) = body[2..].split_once(['p', 'P'])?;
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let exponent: i32 = exponent.parse().ok()?;
    let digits = without_underscores(&format!("{whole}{part}"), true)?;
    if digits.len() > 13 {
        return None;
    }
    let mantissa = u64::from_str_radix(&digits, 16).ok()? as f64;
    let shift = exponent.checked_sub(4 * i32::try_from(part.len()).ok()?)?;
    let float = mantissa * 2f64.powi(shift);
    float.is_finite().then_some(float)
}

/// Parses an int as `strconv.ParseInt` with base 0; `None` if invalid.
pub fn int_from_text(text: &str) -> Option<i64> {
    match unsigned(text)? {
        (false, size) => i64::try_from(size).ok(),
        (true, size) => 0_i64.checked_sub_unsigned(size),
    }
}

/// Parses a float, as `strconv.ParseFloat` does.
pub fn float_from_text(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text).to_ascii_lowercase();
    let size = match unsigned.as_str() {
        "inf" | "infinity" => f64::INFINITY,
        "nan" => f64::NAN,
        _ => return float(text),
    };
    Some(if text.starts_with('-') { -size } else { size })
}
