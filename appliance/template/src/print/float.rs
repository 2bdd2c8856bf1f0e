//! Formatting of floats without sign (Go `strconv.FormatFloat`); the caller writes the sign.

/// Power of ten below which `%g` writes an exponent.
const SMALL_EXPONENT: i32 = -4;
/// Power of ten from which `%g` without a precision writes an exponent.
const LARGE_EXPONENT: i32 = 6;
/// Number of digits of `%#g` without a precision.
const SHARP_DIGITS: usize = 6;

/// Formats as `%g`: the shortest digits that read back the same, or at most `precision` digits.
pub fn general(number: f64, precision: Option<usize>) -> String {
    let (digits, exponent) = match precision {
        None => scientific(&format!("{number:e}")),
        Some(precision) => scientific(&format!("{number:.*e}", precision.max(1) - 1)),
    };
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let limit = match precision {
        None => LARGE_EXPONENT,
        Some(precision) => {
            let precision = i32::try_from(precision.max(1)).unwrap_or(i32::MAX);
            if precision > count && count > exponent { count } else { precision }
        }
    };
    if exponent < SMALL_EXPONENT || exponent >= limit {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        return format!("{first}{point}{rest}{}", power(exponent));
    }
    plain(&digits, exponent)
}

/// Formats a float as `%e`.
pub fn exponent(number: f64, precision: usize) -> String {
    let text = format!("{number:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{mantissa}{}", power(exponent.parse().unwrap_or_default()))
}

fn power(exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("e{sign}{:02}", exponent.unsigned_abs())
}

/// Formats as `%b`: the mantissa as an integer, and the power of two.
pub fn binary(number: f64) -> String {
    let (mantissa, exponent) = parts(number);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}p{sign}{}", exponent.unsigned_abs())
}

/// Formats as `%x`: hexadecimal digits, one before the point and `precision` after it; without a
/// precision, as many as needed.
pub fn hexadecimal(number: f64, precision: Option<usize>) -> String {
    let (mut mantissa, mut exponent) = parts(number);
    if mantissa == 0 {
        exponent = 0;
    } else {
        // The leading one at bit 52, so that thirteen digits follow it.
        let shift = mantissa.leading_zeros() - 11;
        mantissa <<= shift;
        exponent += 52 - shift as i32;
    }
    if let Some(places) = precision.filter(|places| *places < HEX_PLACES) {
        let dropped = 4 * (HEX_PLACES - places);
        let (rest, half) = (mantissa & ((1 << dropped) - 1), 1 << (dropped - 1));
        mantissa >>= dropped;
        // Half goes to the even digit.
        mantissa += u64::from(rest > half || (rest == half && mantissa & 1 == 1));
        mantissa <<= dropped;
        if mantissa >> 53 == 1 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    let digits = format!("{mantissa:014x}");
    let (first, rest) = digits.split_at(1);
    let rest = match precision {
        None => rest.trim_end_matches('0').to_owned(),
        Some(places) => {
            let zeros = "0".repeat(places.saturating_sub(HEX_PLACES));
            format!("{}{zeros}", &rest[..places.min(HEX_PLACES)])
        }
    };
    let point = if rest.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("0x{first}{point}{rest}p{sign}{:02}", exponent.unsigned_abs())
}

/// Maximum number of hexadecimal digits after the point of a float64.
const HEX_PLACES: usize = 13;

/// Returns mantissa and power of two of a positive float (IEEE 754).
fn parts(number: f64) -> (u64, i32) {
    let bits = number.to_bits();
    let (fraction, exponent) = (bits & ((1 << 52) - 1), (bits >> 52 & 0x7ff) as i32);
    if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) }
}

/// Returns the digits without point and trailing zeros, and the power of ten of the first digit.
fn scientific(text: &str) -> (String, i32) {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let digits = mantissa.replace('.', "");
    let digits = digits.trim_end_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };
    (digits.to_owned(), exponent.parse().unwrap_or_default())
}

/// Formats digits with a decimal point, without an exponent.
fn plain(digits: &str, exponent: i32) -> String {
    if exponent < 0 {
        let zeros = usize::try_from(-exponent - 1).unwrap_or(0);
        return format!("0.{}{digits}", "0".repeat(zeros));
    }
    let whole = usize::try_from(exponent).unwrap_or(0) + 1;
    if digits.len() <= whole {
        return format!("{digits}{}", "0".repeat(whole - digits.len()));
    }
    format!("{}.{}", &digits[..whole], &digits[whole..])
}

/// Applies the flag `#`: adds a decimal point if missing, and the trailing zeros that `%g` drops.
pub fn with_point(text: &str, verb: char, precision: Option<usize>) -> String {
    let (number, tail) = match text.find(['e', 'E']) {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let mut number = number.to_owned();
    let is_general = matches!(verb, 'v' | 'g' | 'G');
    let mut missing = if is_general { precision.unwrap_or(SHARP_DIGITS) } else { 0 };
    let significant = number.replace('.', "");
    missing = missing.saturating_sub(significant.trim_start_matches('0').len());
    if !number.contains('.') {
        if number == "0" {
            missing = missing.saturating_sub(1);
        }
        number.push('.');
    }
    format!("{number}{}{tail}", "0".repeat(missing))
}
