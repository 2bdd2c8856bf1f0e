//! Parser of Go's string and character literals (`strconv.Unquote`).

/// Returns the text of a string literal; `literal` includes the quotes.
///
/// # Errors
/// The literal is malformed, or its bytes are not valid UTF-8.
pub fn string(literal: &str) -> Result<String, String> {
    let mut chars = literal.chars();
    let quote = chars.next();
    chars.next_back();
    let inner = chars.as_str();
    if quote == Some('`') {
        return Ok(inner.replace('\r', ""));
    }
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while !rest.is_empty() {
        let (unit, after) = unit(rest, '"')?;
        match unit {
            Unit::Byte(byte) => bytes.push(byte),
            Unit::Char(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| "a string constant is not UTF-8".to_owned())
}

/// Returns the code of a character literal; `literal` includes the quotes.
///
/// # Errors
/// The literal is malformed.
pub fn char(literal: &str) -> Result<i64, String> {
    let inner = literal.strip_prefix('\'').unwrap_or(literal);
    match unit(inner, '\'')? {
        (Unit::Byte(byte), "'") => Ok(i64::from(byte)),
        (Unit::Char(c), "'") => Ok(i64::from(u32::from(c))),
        _ => Err("malformed character constant".to_owned()),
    }
}

enum Unit {
    Byte(u8),
    Char(char),
}

/// Returns the first character or byte of `text`, and the rest.
fn unit(text: &str, quote: char) -> Result<(Unit, &str), String> {
    let bad = || "invalid syntax in a quoted constant".to_owned();
    let mut chars = text.chars();
    let first = chars.next().ok_or_else(bad)?;
    if first == quote {
        return Err(bad());
    }
    if first != '\\' {
        return Ok((Unit::Char(first), chars.as_str()));
    }
    let escape = chars.next().ok_or_else(bad)?;
    let rest = chars.as_str();
    let plain = |c: char| Ok((Unit::Char(c), rest));
    let number = |digits: usize, radix: u32, from: usize| {
        let start = text.get(from..from + digits).ok_or_else(bad)?;
        if !start.chars().all(|c| c.is_digit(radix)) {
            return Err(bad());
        }
        let number = u32::from_str_radix(start, radix).map_err(|_| bad())?;
        Ok((number, &text[from + digits..]))
    };
    match escape {
        'a' => plain('\u{7}'),
        'b' => plain('\u{8}'),
        'f' => plain('\u{c}'),
        'n' => plain('\n'),
        'r' => plain('\r'),
        't' => plain('\t'),
        'v' => plain('\u{b}'),
        '\\' => plain('\\'),
        c if c == quote => plain(c),
        'x' | '0'..='7' => {
            let (digits, radix, from) = if escape == 'x' { (2, 16, 2) } else { (3, 8, 1) };
            let (number, rest) = number(digits, radix, from)?;
            Ok((Unit::Byte(u8::try_from(number).map_err(|_| bad())?), rest))
        }
        'u' | 'U' => {
            let (number, rest) = number(if escape == 'u' { 4 } else { 8 }, 16, 2)?;
            Ok((Unit::Char(char::from_u32(number).ok_or_else(bad)?), rest))
        }
        _ => Err(bad()),
    }
}
