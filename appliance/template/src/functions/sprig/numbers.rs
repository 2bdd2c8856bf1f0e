//! Arithmetic. Integers have 64 bits and wrap around, as in Go.

pub mod cast;
mod decimal;

use crate::function::Type::{Any, Float, Int, Text};
use crate::function::{Answer, Args, Function, exact, variadic};
use crate::limits::LIST_ITEMS_MAX;
use crate::print;
use crate::value::{Element, Value};
use cast::{float, int};
use decimal::Decimal;

/// Sprig functions that this file implements.
pub static FUNCTIONS: &[Function] = &[
    exact("atoi", &[Text], |args| Ok(Value::Int(atoi(args.text(0))))),
    exact("int", &[Any], |args| Ok(Value::Int(int(args.any(0))))),
    exact("int64", &[Any], |args| Ok(Value::Int64(int(args.any(0))))),
    exact("float64", &[Any], |args| Ok(Value::Float(float(args.any(0))))),
    exact("toDecimal", &[Any], |args| {
        let text = print::plain(args.heap, args.any(0))?;
        Ok(Value::Int64(i64::from_str_radix(&text, 8).unwrap_or(0)))
    }),
    exact("add1", &[Any], |args| Ok(Value::Int64(int(args.any(0)).wrapping_add(1)))),
    variadic("add", &[], Any, |args| {
        Ok(Value::Int64(args.values.iter().map(int).fold(0, i64::wrapping_add)))
    }),
    exact("sub", &[Any, Any], |args| {
        Ok(Value::Int64(int(args.any(0)).wrapping_sub(int(args.any(1)))))
    }),
    exact("div", &[Any, Any], |args| divided(args, i64::wrapping_div)),
    exact("mod", &[Any, Any], |args| divided(args, i64::wrapping_rem)),
    variadic("mul", &[Any], Any, |args| {
        Ok(Value::Int64(args.values.iter().map(int).fold(1, i64::wrapping_mul)))
    }),
    variadic("max", &[Any], Any, |args| extreme(args, |a, b| b > a)),
    variadic("biggest", &[Any], Any, |args| extreme(args, |a, b| b > a)),
    variadic("min", &[Any], Any, |args| extreme(args, |a, b| b < a)),
    variadic("maxf", &[Any], Any, |args| extreme_float(args, f64::INFINITY, |a, b| b > a)),
    variadic("minf", &[Any], Any, |args| extreme_float(args, f64::NEG_INFINITY, |a, b| b < a)),
    exact("add1f", &[Any], |args| {
        let one = Decimal::new(1.0)?;
        decimal(Decimal::new(float(args.any(0)))?.add(one)?)
    }),
    variadic("addf", &[], Any, |args| {
        let sum = args
            .values
            .iter()
            .try_fold(Decimal::new(0.0)?, |sum, value| sum.add(Decimal::new(float(value))?));
        decimal(sum?)
    }),
    variadic("subf", &[Any], Any, |args| chained(args, Decimal::sub)),
    variadic("mulf", &[Any], Any, |args| chained(args, Decimal::mul)),
    variadic("divf", &[Any], Any, |args| chained(args, Decimal::div)),
    exact("floor", &[Any], |args| Ok(Value::Float(float(args.any(0)).floor()))),
    exact("ceil", &[Any], |args| Ok(Value::Float(float(args.any(0)).ceil()))),
    variadic("round", &[Any, Int], Float, round),
    exact("until", &[Int], |args| {
        let count = args.int(0);
        counted(args, 0, count, if count < 0 { -1 } else { 1 }).and_then(|all| ints(args, all))
    }),
    exact("untilStep", &[Int, Int, Int], |args| {
        counted(args, args.int(0), args.int(1), args.int(2)).and_then(|all| ints(args, all))
    }),
    variadic("seq", &[], Int, seq),
];

/// Parses an int. A number out of range becomes the nearest int; a text that is not a number
/// becomes 0.
fn atoi(text: &str) -> i64 {
    match text.parse::<i64>() {
        Ok(number) => number,
        Err(error) => match error.kind() {
            std::num::IntErrorKind::PosOverflow => i64::MAX,
            std::num::IntErrorKind::NegOverflow => i64::MIN,
            _ => 0,
        },
    }
}

fn divided(args: &Args, divide: fn(i64, i64) -> i64) -> Answer {
    match int(args.any(1)) {
        0 => Err("integer divide by zero".to_owned()),
        divisor => Ok(Value::Int64(divide(int(args.any(0)), divisor))),
    }
}

fn extreme(args: &Args, replaces: fn(i64, i64) -> bool) -> Answer {
    let numbers = args.values.iter().map(int);
    let found = numbers.reduce(|a, b| if replaces(a, b) { b } else { a });
    Ok(Value::Int64(found.unwrap_or(0)))
}

/// Returns the extreme of floats. `limit` (±infinity) wins over NaN, and NaN over other numbers.
fn extreme_float(args: &Args, limit: f64, replaces: fn(f64, f64) -> bool) -> Answer {
    let numbers = args.values.iter().map(float);
    let found = numbers.reduce(|a, b| match (a, b) {
        (a, b) if a == limit || b == limit => limit,
        (a, b) if a.is_nan() || b.is_nan() => f64::NAN,
        (a, b) if a == 0.0 && b == 0.0 => {
            let is_negative = if limit > 0.0 {
                a.is_sign_negative() && b.is_sign_negative()
            } else {
                a.is_sign_negative() || b.is_sign_negative()
            };
            if is_negative { -0.0 } else { 0.0 }
        }
        (a, b) if replaces(a, b) => b,
        (a, _) => a,
    });
    Ok(Value::Float(found.unwrap_or(0.0)))
}

fn decimal(number: Decimal) -> Answer {
    Ok(Value::Float(number.float()))
}

fn chained(args: &Args, op: fn(Decimal, Decimal) -> Result<Decimal, String>) -> Answer {
    let mut number = Decimal::new(float(args.any(0)))?;
    for value in args.from(1) {
        number = op(number, Decimal::new(float(value))?)?;
    }
    decimal(number)
}

fn round(args: &Args) -> Answer {
    let round_on = if args.from(2).is_empty() { 0.5 } else { args.float(2) };
    let power = power_of_ten(args.int(1));
    let digit = power * float(args.any(0));
    let part = if digit.is_infinite() { f64::NAN } else { digit - digit.trunc() };
    let rounded = if part >= round_on { digit.ceil() } else { digit.floor() };
    Ok(Value::Float(rounded / power))
}

/// Returns 10^`exponent` with the steps of Go's `math.Pow`, so that the last digit is equal.
fn power_of_ten(exponent: i64) -> f64 {
    /// Exponent above which (or below minus which) a power of two is infinite (or zero).
    const FAR: i64 = 4096;
    let (mut base, mut base_twos) = (0.625, 4_i64);
    let (mut power, mut twos) = (1.0, 0);
    let mut rest = exponent.unsigned_abs();
    while rest != 0 {
        if base_twos > FAR {
            twos += base_twos;
            break;
        }
        if rest % 2 == 1 {
            power *= base;
            twos += base_twos;
        }
        base *= base;
        base_twos *= 2;
        if base < 0.5 {
            base *= 2.0;
            base_twos -= 1;
        }
        rest /= 2;
    }
    if exponent < 0 {
        (power, twos) = (1.0 / power, -twos);
    }
    let twos = i32::try_from(twos.clamp(-FAR, FAR)).unwrap_or_default();
    // In two steps, because 2^1100 is infinite and 2^-1070 has lost its digits.
    let half = twos / 2;
    power * 2f64.powi(half) * 2f64.powi(twos - half)
}

/// Returns the numbers from `start` to `stop`, without `stop`.
fn counted(args: &Args, start: i64, stop: i64, step: i64) -> Result<Vec<i64>, String> {
    let mut all = Vec::new();
    let is_down = stop < start;
    if step == 0 || is_down != (step < 0) {
        return Ok(all);
    }
    let mut at = start;
    while (is_down && at > stop) || (!is_down && at < stop) {
        if all.len() >= LIST_ITEMS_MAX {
            return Err(format!("a list of more than {LIST_ITEMS_MAX} elements"));
        }
        all.push(at);
        let Some(next) = at.checked_add(step) else { break };
        at = next;
    }
    args.heap.step(all.len())?;
    Ok(all)
}

fn ints(args: &Args, all: Vec<i64>) -> Answer {
    args.heap.list(Element::Int, all.into_iter().map(Value::Int).collect())
}

/// Returns the numbers that the shell command `seq` prints; the last number is included.
fn seq(args: &Args) -> Answer {
    let given: Vec<i64> = (0..args.values.len()).map(|at| args.int(at)).collect();
    let (start, step, end) = match given.as_slice() {
        [end] => (1, None, *end),
        [start, end] => (*start, None, *end),
        [start, step, end] => (*start, Some(*step), *end),
        _ => return args.made(""),
    };
    let direction = if end < start { -1 } else { 1 };
    if direction < 0 && step.is_some_and(|step| step > 0) {
        return args.made("");
    }
    let all = counted(args, start, end.wrapping_add(direction), step.unwrap_or(direction))?;
    let texts: Vec<String> = all.iter().map(i64::to_string).collect();
    args.made(texts.join(" "))
}

#[cfg(test)]
mod tests {
    use super::power_of_ten;

    /// Results of `math.Float64bits(math.Pow(10, x))` in Go 1.26 on amd64.
    #[test]
    fn powers_are_those_of_go() {
        for (exponent, bits) in [
            (0, 0x3ff0_0000_0000_0000),
            (1, 0x4024_0000_0000_0000),
            (-1, 0x3fb9_9999_9999_999a),
            (22, 0x4480_f0cf_064d_d592),
            (97, 0x5412_ba09_5dc7_701f),
            (200, 0x6974_e718_d7d7_625d),
            (308, 0x7fe1_ccf3_85eb_c8a3),
            (-308, 0x0007_30d6_7819_e8d1),
            (-320, 0x0000_0000_0000_07e8),
            (309, f64::INFINITY.to_bits()),
            (i64::MAX, f64::INFINITY.to_bits()),
            (-400, 0),
            (i64::MIN, 0),
        ] {
            assert_eq!(power_of_ten(exponent).to_bits(), bits, "{exponent}");
        }
    }
}
