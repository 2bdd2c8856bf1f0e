//! Quantities such as `1.5Gi` (apimachinery `pkg/api/resource`), with checked arithmetic.

use std::cmp::Ordering;

/// Number `mantissa * 10^scale`. The mantissa does not end in zero; the number zero has scale 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::rules) struct Quantity {
    mantissa: i128,
    scale: i64,
}

/// Suffixes with their multipliers: a power of ten and a factor.
const SUFFIXES: [(&str, i64, i128); 16] = [
    ("", 0, 1),
    ("n", -9, 1),
    ("u", -6, 1),
    ("m", -3, 1),
    ("k", 3, 1),
    ("M", 6, 1),
    ("G", 9, 1),
    ("T", 12, 1),
    ("P", 15, 1),
    ("E", 18, 1),
    ("Ki", 0, 1 << 10),
    ("Mi", 0, 1 << 20),
    ("Gi", 0, 1 << 30),
    ("Ti", 0, 1 << 40),
    ("Pi", 0, 1 << 50),
    ("Ei", 0, 1 << 60),
];

impl Quantity {
    /// Parses a quantity; `None` if the text is invalid or has too many digits.
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let is_digit = |c: char| c.is_ascii_digit();
        let (whole, rest) = split_where(unsigned, |c| !is_digit(c));
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => split_where(rest, |c| !is_digit(c)),
            None => ("", rest),
        };
        let known = SUFFIXES.iter().find(|(known, ..)| *known == suffix);
        let (power, factor) = match known {
            Some((_, power, factor)) => (*power, *factor),
            None => {
                let exponent = suffix.strip_prefix(['e', 'E'])?;
                (i64::from(exponent.parse::<i32>().ok()?), 1)
            }
        };
        let digits = format!("{whole}{fraction}");
        let digits = digits.trim_start_matches('0');
        let number = if digits.is_empty() { 0 } else { digits.parse::<i128>().ok()? };
        let number = if negative { -number } else { number };
        let places = i64::try_from(fraction.len()).ok()?;
        Some(Self::new(number.checked_mul(factor)?, power - places))
    }

    fn new(mut mantissa: i128, mut scale: i64) -> Self {
        while mantissa != 0 && mantissa % 10 == 0 {
            mantissa /= 10;
            scale += 1;
        }
        Self { mantissa, scale: if mantissa == 0 { 0 } else { scale } }
    }

    /// Returns the mantissa at a smaller scale; `None` on overflow.
    fn at_scale(self, scale: i64) -> Option<i128> {
        let power = u32::try_from(self.scale - scale).ok()?;
        self.mantissa.checked_mul(10_i128.checked_pow(power)?)
    }

    /// Returns the sum of two quantities; `None` if it has too many digits.
    pub fn plus(self, other: Self) -> Option<Self> {
        let scale = match (self.mantissa, other.mantissa) {
            (0, _) => other.scale,
            (_, 0) => self.scale,
            _ => self.scale.min(other.scale),
        };
        let at_scale = |one: Self| if one.mantissa == 0 { Some(0) } else { one.at_scale(scale) };
        Some(Self::new(at_scale(self)?.checked_add(at_scale(other)?)?, scale))
    }

    pub fn negated(self) -> Option<Self> {
        Some(Self { mantissa: self.mantissa.checked_neg()?, ..self })
    }

    pub fn sign(self) -> i64 {
        i64::try_from(self.mantissa.signum()).unwrap_or_default()
    }

    pub fn integer(self) -> Option<i64> {
        i64::try_from(self.at_scale(0)?).ok()
    }

    pub fn is_integer(self) -> bool {
        self.integer().is_some()
    }

    #[expect(clippy::cast_precision_loss, reason = "an approximation is asked for")]
    pub fn float(self) -> f64 {
        let scale = i32::try_from(self.scale).unwrap_or(i32::MAX);
        self.mantissa as f64 * 10_f64.powi(scale)
    }
}

impl From<i64> for Quantity {
    fn from(number: i64) -> Self {
        Self::new(i128::from(number), 0)
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_sign = self.sign().cmp(&other.sign());
        if by_sign.is_ne() || self.mantissa == 0 {
            return by_sign;
        }
        // For equal signs, the number with more digits before its point is farther from zero.
        let digits = |one: &Self| {
            let digits = one.mantissa.unsigned_abs().checked_ilog10().unwrap_or_default();
            i64::from(digits) + one.scale
        };
        let farther = digits(self).cmp(&digits(other)).then_with(|| {
            let scale = self.scale.min(other.scale);
            let at_scale = |one: &Self| one.at_scale(scale).map(i128::unsigned_abs);
            match (at_scale(self), at_scale(other)) {
                (Some(one), Some(other)) => one.cmp(&other),
                // Only the mantissa with the greater scale can overflow.
                _ => self.scale.cmp(&other.scale),
            }
        });
        if self.mantissa < 0 { farther.reverse() } else { farther }
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn split_where(text: &str, is_end: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(is_end).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_of_any_size_are_compared() {
        let rising = [
            "-1e2147483647",
            "-1Gi",
            "-1",
            "-1e-2147483648",
            "0",
            "1.5e-2147483648",
            "1n",
            "0.5",
            "999m",
            "1",
            "1001m",
            "1k",
            "1Ki",
            "1.5Gi",
            "170141183460469231731687303715884105727",
            "9e38",
            "1e99",
            "1e2147483647",
        ];
        let parsed: Vec<_> =
            rising.iter().map(|text| Quantity::parse(text).expect("a quantity")).collect();
        for (at, one) in parsed.iter().enumerate() {
            for (after, other) in parsed.iter().enumerate() {
                assert_eq!(one.cmp(other), at.cmp(&after), "{} {}", rising[at], rising[after]);
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_none() {
        let of = |text| Quantity::parse(text);
        assert_eq!(of("1.5Gi").and_then(Quantity::integer), Some(1_610_612_736));
        assert_eq!(of("1000m"), of("1"));
        assert_eq!(of("0.0e9"), of("0"));
        assert_eq!(of("1500m").and_then(Quantity::integer), None);
        assert_eq!(of("1e99").and_then(Quantity::integer), None);
        let (large, small) = (of("1e99").expect("large"), of("1").expect("small"));
        assert_eq!(large.plus(small), None);
        assert_eq!(small.plus(small), of("2"));
        assert_eq!(of("1k").and_then(|one| one.plus(small.negated()?)), of("999"));
        // Missing digits count as zero.
        assert_eq!(of("Gi"), of("0"));
        for wrong in ["", "1e", "1e99999999999", "1 Gi", "1gi", "--1", "1e5Gi", " 1"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
