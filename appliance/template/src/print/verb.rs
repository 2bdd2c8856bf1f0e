//! Formatting of integers, strings and floats by their verbs.

use go_text::quoted;

use super::{Printer, float};
use crate::limits::WIDTH_MAX;
use crate::value::Value;

impl Printer<'_> {
    /// Writes an integer with the absolute value `size`.
    pub(super) fn integer(
        &mut self,
        size: u64,
        negative: bool,
        verb: char,
        value: &Value,
    ) -> Result<(), String> {
        let (digits, prefix) = match verb {
            'v' | 'd' => (size.to_string(), ""),
            'b' => (format!("{size:b}"), if self.flags.sharp { "0b" } else { "" }),
            'o' => (format!("{size:o}"), if self.flags.sharp { "0" } else { "" }),
            'O' => (format!("{size:o}"), "0o"),
            'x' => (format!("{size:x}"), if self.flags.sharp { "0x" } else { "" }),
            'X' => (format!("{size:X}"), if self.flags.sharp { "0X" } else { "" }),
            'c' | 'q' | 'U' => return self.character(size, negative, verb),
            _ => return self.bad_verb(value, verb),
        };
        let flags = self.flags;
        let sign = match (negative, flags.plus, flags.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (.., true) => " ",
            _ => "",
        };
        let wanted = match (flags.precision, flags.width) {
            (Some(0), _) if size == 0 => return self.blank(),
            (Some(precision), _) => precision,
            (None, Some(width)) if flags.zero && !flags.minus => width - sign.len().min(width),
            _ => 0,
        };
        let zeros = "0".repeat(wanted.saturating_sub(digits.len()));
        // An octal number that begins with a zero needs no other.
        let has_zero = !zeros.is_empty() || digits.starts_with('0');
        let mut prefix = if prefix == "0" && has_zero { "" } else { prefix }.to_owned();
        if verb == 'O' && flags.sharp && !has_zero {
            prefix.push('0');
        }
        let text = format!("{sign}{prefix}{zeros}{digits}");
        self.without_zeros(&text)
    }

    /// Writes only spaces, up to the width.
    fn blank(&mut self) -> Result<(), String> {
        let zero = std::mem::replace(&mut self.flags.zero, false);
        self.fill(self.flags.width.unwrap_or(0))?;
        self.flags.zero = zero;
        Ok(())
    }

    /// Pads with spaces only.
    fn without_zeros(&mut self, text: &str) -> Result<(), String> {
        let zero = std::mem::replace(&mut self.flags.zero, false);
        self.pad(text)?;
        self.flags.zero = zero;
        Ok(())
    }

    fn character(&mut self, size: u64, negative: bool, verb: char) -> Result<(), String> {
        let code = if negative { u64::MAX } else { size };
        let found = u32::try_from(code).ok().and_then(char::from_u32);
        let c = found.unwrap_or(char::REPLACEMENT_CHARACTER);
        match verb {
            'c' => self.pad(&c.to_string()),
            'q' => {
                let text = match c {
                    '\'' => "'\\''".to_owned(),
                    '"' => "'\"'".to_owned(),
                    c => {
                        let text = self.quote(&c.to_string());
                        format!("'{}'", &text[1..text.len() - 1])
                    }
                };
                self.pad(&text)
            }
            _ => {
                let size = if negative { (size as i64).wrapping_neg() as u64 } else { size };
                let digits = self.flags.precision.unwrap_or(0).clamp(4, WIDTH_MAX);
                let mut text = format!("U+{size:0digits$X}");
                if let Some(c) = found.filter(|c| self.flags.sharp && go_text::is_printable(*c)) {
                    text.push_str(&format!(" '{c}'"));
                }
                self.without_zeros(&text)
            }
        }
    }

    fn quote(&self, text: &str) -> String {
        let text = quoted(text);
        if !self.flags.plus {
            return text;
        }
        let escaped = text.chars().map(|c| match u32::from(c) {
            0..=0x7f => c.to_string(),
            code @ 0x80..=0xffff => format!("\\u{code:04x}"),
            code => format!("\\U{code:08x}"),
        });
        escaped.collect()
    }

    pub(super) fn string(&mut self, text: &str, verb: char, value: &Value) -> Result<(), String> {
        self.heap.step(text.len() / crate::limits::STEP_BYTES)?;
        let cut: &str = match self.flags.precision {
            Some(chars) => match text.char_indices().nth(chars) {
                Some((end, _)) => &text[..end],
                None => text,
            },
            None => text,
        };
        match verb {
            'v' if !self.flags.go_syntax => self.pad(cut),
            's' => self.pad(cut),
            'v' | 'q' => {
                let is_raw =
                    |c: char| c == '\t' || !(c.is_ascii_control() || "`\u{feff}".contains(c));
                if self.flags.sharp && cut.chars().all(is_raw) {
                    return self.pad(&format!("`{cut}`"));
                }
                let text = self.quote(cut);
                self.pad(&text)
            }
            'x' => self.hex(text, false),
            'X' => self.hex(text, true),
            _ => self.bad_verb(value, verb),
        }
    }

    fn hex(&mut self, text: &str, upper: bool) -> Result<(), String> {
        let bytes = &text.as_bytes()[..self.flags.precision.unwrap_or(text.len()).min(text.len())];
        if bytes.is_empty() {
            return self.fill(self.flags.width.unwrap_or(0));
        }
        let prefix = match (self.flags.sharp, upper) {
            (false, _) => "",
            (true, false) => "0x",
            (true, true) => "0X",
        };
        let parts = bytes.iter().map(|byte| match upper {
            true => format!("{byte:02X}"),
            false => format!("{byte:02x}"),
        });
        let separator = if self.flags.space { format!(" {prefix}") } else { String::new() };
        let text = format!("{prefix}{}", parts.collect::<Vec<_>>().join(&separator));
        self.pad(&text)
    }

    pub(super) fn float(&mut self, number: f64, verb: char, value: &Value) -> Result<(), String> {
        let flags = self.flags;
        let precision = flags.precision;
        let mut text = match verb {
            'v' | 'g' => float::general(number.abs(), precision),
            'G' => float::general(number.abs(), precision).to_uppercase(),
            'e' => float::exponent(number.abs(), precision.unwrap_or(6)),
            'E' => float::exponent(number.abs(), precision.unwrap_or(6)).to_uppercase(),
            'f' | 'F' => format!("{:.*}", precision.unwrap_or(6), number.abs()),
            'b' => float::binary(number.abs()),
            'x' | 'X' if precision.is_some() && flags.sharp => {
                return Err(format!("%#.{verb} of a float is not supported"));
            }
            'x' => float::hexadecimal(number.abs(), precision),
            'X' => float::hexadecimal(number.abs(), precision).to_uppercase(),
            _ => return self.bad_verb(value, verb),
        };
        let is_number = number.is_finite();
        let negative = number.is_sign_negative() && !number.is_nan();
        if !is_number {
            text = if number.is_nan() { "NaN" } else { "Inf" }.to_owned();
        } else if flags.sharp && !matches!(verb, 'b' | 'x' | 'X') {
            text = float::with_point(&text, verb, precision);
        }
        let sign = match (negative, flags.plus, flags.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (.., true) => " ",
            // An infinity keeps its sign.
            _ => "",
        };
        let sign = if number == f64::INFINITY && sign.is_empty() { "+" } else { sign };
        if !is_number {
            return self.without_zeros(&format!("{sign}{text}"));
        }
        let width = flags.width.unwrap_or(0);
        if flags.zero && !flags.minus && !sign.is_empty() && width > text.len() + 1 {
            let zeros = "0".repeat(width - text.len() - 1);
            return self.write(&format!("{sign}{zeros}{text}"));
        }
        self.pad(&format!("{sign}{text}"))
    }
}
