//! Format strings of `printf`: flags, argument indexes, width, precision and verbs, with Go's
//! messages for mistakes.

use super::{Flags, Printer};
use crate::limits::WIDTH_MAX;
use crate::value::Value;

/// Position in a format string.
struct Reader<'a> {
    rest: &'a str,
    values: &'a [Value],
    /// Index of the next argument.
    at: usize,
    /// True if an explicit index `[n]` was used.
    reordered: bool,
    good: bool,
    /// True directly after an explicit index `[n]`.
    after_index: bool,
}

impl Printer<'_> {
    pub(super) fn format(&mut self, format: &str, values: &[Value]) -> Result<(), String> {
        let mut reader = Reader {
            rest: format,
            values,
            at: 0,
            reordered: false,
            good: true,
            after_index: false,
        };
        while !reader.rest.is_empty() {
            let text = reader.rest.find('%').unwrap_or(reader.rest.len());
            self.write(&reader.rest[..text])?;
            reader.rest = &reader.rest[text..];
            let Some(rest) = reader.rest.strip_prefix('%') else { break };
            reader.rest = rest;
            self.heap.step(1)?;
            self.directive(&mut reader)?;
        }
        if reader.reordered || reader.at >= values.len() {
            return Ok(());
        }
        self.flags = Flags::default();
        self.write("%!(EXTRA ")?;
        for (at, value) in values[reader.at..].iter().enumerate() {
            if at > 0 {
                self.write(", ")?;
            }
            if value.is_nil() {
                self.write("<nil>")?;
                continue;
            }
            self.write(&format!("{}=", value.type_name()))?;
            self.argument(value, 'v')?;
        }
        self.write(")")
    }

    /// Formats one directive after its `%`: flags, indexes, width, precision and verb.
    fn directive(&mut self, reader: &mut Reader<'_>) -> Result<(), String> {
        reader.good = true;
        self.flags = Flags::default();
        reader.flags(&mut self.flags);
        // A plain verb is taken at once: what the last directive left does not matter to it.
        let is_plain = reader.rest.starts_with(|c: char| c.is_ascii_lowercase());
        if !(is_plain && reader.at < reader.values.len()) {
            reader.index();
            self.width(reader)?;
            self.precision(reader)?;
            if !reader.after_index {
                reader.index();
            }
        }
        let Some(verb) = reader.rest.chars().next() else { return self.write("%!(NOVERB)") };
        reader.rest = &reader.rest[verb.len_utf8()..];
        if verb == '%' {
            return self.write("%");
        }
        if !reader.good {
            return self.write(&format!("%!{verb}(BADINDEX)"));
        }
        let Some(value) = reader.values.get(reader.at) else {
            return self.write(&format!("%!{verb}(MISSING)"));
        };
        if matches!(verb, 'v' | 'w') {
            self.flags.go_syntax = std::mem::take(&mut self.flags.sharp);
            self.flags.plus = false;
        }
        reader.at += 1;
        self.argument(value, verb)
    }

    fn width(&mut self, reader: &mut Reader<'_>) -> Result<(), String> {
        if let Some(rest) = reader.rest.strip_prefix('*') {
            reader.rest = rest;
            match reader.number_argument()? {
                None => self.write("%!(BADWIDTH)")?,
                Some(width) => {
                    self.flags.minus |= width < 0;
                    self.flags.zero &= width >= 0;
                    self.flags.width = usize::try_from(width.unsigned_abs()).ok();
                }
            }
            reader.after_index = false;
            return Ok(());
        }
        self.flags.width = reader.number()?;
        if reader.after_index && self.flags.width.is_some() {
            reader.good = false;
        }
        Ok(())
    }

    fn precision(&mut self, reader: &mut Reader<'_>) -> Result<(), String> {
        // A point that ends the format is taken for a verb.
        let Some(rest) = reader.rest.strip_prefix('.').filter(|rest| !rest.is_empty()) else {
            return Ok(());
        };
        reader.rest = rest;
        if reader.after_index {
            reader.good = false;
        }
        reader.index();
        if let Some(rest) = reader.rest.strip_prefix('*') {
            reader.rest = rest;
            let precision = reader.number_argument()?;
            self.flags.precision = precision.and_then(|number| usize::try_from(number).ok());
            if self.flags.precision.is_none() {
                self.write("%!(BADPREC)")?;
            }
            reader.after_index = false;
            return Ok(());
        }
        self.flags.precision = Some(reader.number()?.unwrap_or(0));
        Ok(())
    }
}

impl Reader<'_> {
    fn flags(&mut self, flags: &mut Flags) {
        while let Some(c) = self.rest.chars().next() {
            match c {
                '#' => flags.sharp = true,
                '0' => flags.zero = true,
                '+' => flags.plus = true,
                '-' => flags.minus = true,
                ' ' => flags.space = true,
                _ => break,
            }
            self.rest = &self.rest[1..];
        }
    }

    /// Reads an explicit index `[n]` of the next argument, if there is one.
    fn index(&mut self) {
        self.after_index = false;
        let Some(inner) = self.rest.strip_prefix('[') else { return };
        self.reordered = true;
        let close = if self.rest.len() < 3 { None } else { inner.find(']') };
        let Some(close) = close else {
            self.good = false;
            self.rest = inner;
            return;
        };
        let (digits, rest) = (&inner[..close], &inner[close + 1..]);
        self.rest = rest;
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.parse::<usize>().ok().filter(|_| is_number);
        match number {
            Some(number) if (1..=self.values.len()).contains(&number) => {
                self.at = number - 1;
                self.after_index = true;
            }
            number => {
                self.good = false;
                self.after_index = number.is_some();
            }
        }
    }

    /// Reads a decimal number for width or precision; `None` without digits.
    fn number(&mut self) -> Result<Option<usize>, String> {
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        if end == 0 {
            return Ok(None);
        }
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        let number = digits.parse().unwrap_or(usize::MAX);
        if number > WIDTH_MAX {
            return Err(format!("printf: a width or precision of more than {WIDTH_MAX}"));
        }
        Ok(Some(number))
    }

    /// Reads a width or precision `*` from the next argument; `None` if it is not an int.
    fn number_argument(&mut self) -> Result<Option<i64>, String> {
        let Some(value) = self.values.get(self.at) else { return Ok(None) };
        self.at += 1;
        let number = match value {
            Value::Int(number) | Value::Int64(number) => *number,
            Value::Byte(byte) => i64::from(*byte),
            Value::Word(number) => match i64::try_from(*number) {
                Ok(number) => number,
                Err(_) => return Ok(None),
            },
            _ => return Ok(None),
        };
        if number.unsigned_abs() > WIDTH_MAX as u64 {
            return Err(format!("printf: a width or precision of more than {WIDTH_MAX}"));
        }
        Ok(Some(number))
    }
}
