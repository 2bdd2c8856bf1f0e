//! Go's `printf` verbs that templates use: `%s %v %d %q %t %x %%` with width, `-` and `0`.

use serde_json::Value;

use super::eval::print;

/// The widest field.
const WIDTH_MAX: usize = 1000;

/// Format `arguments`.
///
/// # Errors
/// A verb that is not known here; too few or too many arguments.
pub fn printf(format: &str, arguments: &[Value]) -> Result<Value, String> {
    let mut output = String::new();
    let mut arguments = arguments.iter();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            output.push(c);
            continue;
        }
        let (mut left, mut zero, mut width) = (false, false, 0_usize);
        while let Some(flag) = chars.next_if(|c| matches!(c, '-' | '0')) {
            left |= flag == '-';
            zero |= flag == '0';
        }
        while let Some(digit) = chars.next_if(char::is_ascii_digit) {
            width = (width * 10 + digit.to_digit(10).unwrap_or(0) as usize).min(WIDTH_MAX);
        }
        let verb = chars.next().ok_or("printf: % at the end")?;
        if verb == '%' {
            output.push('%');
            continue;
        }
        let argument = arguments.next().ok_or("printf: too few arguments")?;
        let text = verb_text(verb, argument)?;
        let pad = width.saturating_sub(text.chars().count());
        match (left, zero && !left) {
            (true, _) => output.push_str(&format!("{text}{}", " ".repeat(pad))),
            (_, true) => output.push_str(&format!("{}{text}", "0".repeat(pad))),
            _ => output.push_str(&format!("{}{text}", " ".repeat(pad))),
        }
    }
    if arguments.next().is_some() {
        return Err("printf: too many arguments".to_owned());
    }
    Ok(output.into())
}

fn verb_text(verb: char, argument: &Value) -> Result<String, String> {
    match (verb, argument) {
        ('s' | 'v', _) => Ok(print(argument)),
        ('q', _) => Ok(Value::String(print(argument)).to_string()),
        ('t', Value::Bool(bool)) => Ok(bool.to_string()),
        ('d', Value::Number(number)) if number.is_i64() || number.is_u64() => {
            Ok(number.to_string())
        }
        ('x', Value::Number(number)) if number.is_u64() => {
            Ok(format!("{:x}", number.as_u64().unwrap_or(0)))
        }
        ('x', Value::String(text)) => Ok(stdx::hex(text.as_bytes())),
        _ => Err(format!("printf: %{verb} of {} is not supported", print(argument))),
    }
}
