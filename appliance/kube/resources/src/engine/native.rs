//! Times and integers of Kubernetes' own kinds, in the form that Go's decoder can read. A typed Go
//! client cannot read a list at all if one value in the list is invalid.

use go_text::quoted;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use schema::Node;
use serde_json::{Value, json};

use crate::definition::ResourceDefinition;

/// Names of the fields of type `meta/v1 MicroTime`; other times are `meta/v1 Time`. The OpenAPI
/// format does not distinguish the two types.
const MICRO_TIMES: [&str; 4] = ["acquireTime", "eventTime", "lastObservedTime", "renewTime"];
const TIME_LAYOUT: &str = "2006-01-02T15:04:05Z07:00";
const MICRO_TIME_LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";
/// Maximum fraction digits of a second (nanoseconds); further digits are ignored.
const NANO_DIGITS: usize = 9;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Time,
    MicroTime,
    Int32,
    Int64,
}

impl Form {
    fn of(node: &Node, name: &str) -> Option<Self> {
        match (node.kind(), node.format()) {
            ("string", "date-time") if MICRO_TIMES.contains(&name) => Some(Self::MicroTime),
            ("string", "date-time") => Some(Self::Time),
            ("integer", "int32") => Some(Self::Int32),
            ("integer", "int64") => Some(Self::Int64),
            _ => None,
        }
    }

    /// Returns the value as Go writes it; `None` if the value stays. The error is Go's type name or
    /// message for an invalid value.
    fn canonical(self, value: &Value) -> Result<Option<Value>, String> {
        match (self, value) {
            (Self::Time | Self::MicroTime, Value::String(text)) => {
                let is_micro = self == Self::MicroTime;
                read_time(text, is_micro).map(|time| Some(json!(time_text(time, is_micro))))
            }
            (Self::Int32, Value::Number(number)) => match number.as_i64() {
                Some(whole) if i32::try_from(whole).is_ok() => Ok(None),
                _ => Err("int32".to_owned()),
            },
            (Self::Int64, Value::Number(number)) if number.as_i64().is_none() => {
                Err("int64".to_owned())
            }
            _ => Ok(None),
        }
    }
}

/// Returns true if the schema `node` contains a time or an integer. `name` is the field's name.
pub(in crate::engine) fn has_forms(node: &Node, name: &str) -> bool {
    let fields = || node.properties().iter().any(|(name, below)| has_forms(below, name));
    let items = || node.items().is_some_and(|items| has_forms(items, ""));
    Form::of(node, name).is_some() || fields() || items()
}

/// Rewrites every time as Go does: in UTC, with the number of fraction digits of its type (0 or 6).
///
/// # Errors
/// Returns the message of Go's decoder about the first value that Go cannot read.
pub(in crate::engine) fn canonical(
    definition: &ResourceDefinition,
    object: &mut Value,
) -> Result<(), String> {
    let Some(schema) = &definition.schema else { return Ok(()) };
    let mut failed = Ok(());
    walk(schema.root(), "", &mut String::new(), object, &mut |form, path, value| {
        match form.canonical(value) {
            Ok(Some(text)) => *value = text,
            Ok(None) => {}
            Err(why) if failed.is_ok() => failed = Err(told(definition, form, path, value, why)),
            Err(_) => {}
        }
        true
    });
    failed
}

/// Makes a stored object readable: rewrites times as Go does, and removes values that Go cannot
/// read. Returns true if the object changed.
pub(in crate::engine) fn mend(definition: &ResourceDefinition, object: &mut Value) -> bool {
    let Some(schema) = &definition.schema else { return false };
    let mut changed = false;
    walk(schema.root(), "", &mut String::new(), object, &mut |form, _, value| {
        // A time with another number of digits is still readable as a time.
        let read = form.canonical(value).or_else(|why| match (form, value.as_str()) {
            (Form::MicroTime, Some(text)) => {
                read_time(text, false).map(|time| Some(json!(time_text(time, true))))
            }
            _ => Err(why),
        });
        match read {
            Ok(Some(text)) if text == *value => true,
            Ok(None) => true,
            Ok(Some(text)) => {
                (changed, *value) = (true, text);
                true
            }
            Err(_) => {
                changed = true;
                false
            }
        }
    });
    changed
}

fn told(
    definition: &ResourceDefinition,
    form: Form,
    path: &str,
    value: &Value,
    why: String,
) -> String {
    if matches!(form, Form::Time | Form::MicroTime) {
        return why;
    }
    let place = decoded_field(definition, path);
    format!("json: cannot unmarshal number {value} into Go struct field {place} of type {why}")
}

/// Returns the name of a field in messages of Go's JSON decoder: kind and struct fields, without
/// map keys and list indexes.
pub(in crate::engine) fn decoded_field(definition: &ResourceDefinition, path: &str) -> String {
    let mut named = definition.kind.clone();
    let mut node = definition.schema.as_ref().map(|schema| schema.root());
    for step in path.split('.') {
        let (name, item) = step.split_once('[').map_or((step, false), |(name, _)| (name, true));
        let Some(next) = node.and_then(|node| node.properties().get(name)) else { break };
        named = format!("{named}.{name}");
        node = if item { next.items() } else { Some(next) };
    }
    named
}

/// Calls `act` for each time and integer, with its path. If `act` returns false, the field is
/// removed.
fn walk(
    node: &Node,
    name: &str,
    path: &mut String,
    value: &mut Value,
    act: &mut impl FnMut(Form, &str, &mut Value) -> bool,
) -> bool {
    if let Some(form) = Form::of(node, name) {
        return act(form, path, value);
    }
    let length = path.len();
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            let Some(below) = node.properties().get(name) else { return true };
            if length > 0 {
                path.push('.');
            }
            path.push_str(name);
            let stays = walk(below, name, path, value, act);
            path.truncate(length);
            stays
        }),
        Value::Array(items) => {
            let Some(below) = node.items() else { return true };
            for (index, item) in items.iter_mut().enumerate() {
                path.push_str(&format!("[{index}]"));
                walk(below, "", path, item, act);
                path.truncate(length);
            }
        }
        _ => {}
    }
    true
}

/// Formats a time as Go does: RFC 3339 in UTC, in whole seconds or with exactly six decimal digits.
fn time_text(time: Timestamp, is_micro: bool) -> String {
    let utc = Offset::UTC.to_datetime(time);
    let (year, month, day) = (utc.year(), utc.month(), utc.day());
    let (hour, minute, second) = (utc.hour(), utc.minute(), utc.second());
    let whole = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    match is_micro {
        true => format!("{whole}.{:06}Z", utc.subsec_nanosecond() / 1000),
        false => format!("{whole}Z"),
    }
}

/// Parses a time as Go's `time.Parse` does, by the layout of `Time`, or of `MicroTime` (exactly six
/// fraction digits) if `is_micro`. The error is Go's message.
fn read_time(text: &str, is_micro: bool) -> Result<Timestamp, String> {
    let layout = if is_micro { MICRO_TIME_LAYOUT } else { TIME_LAYOUT };
    let whole = quoted(text);
    let misfit = |rest: &str, element: &str| {
        let (rest, layout) = (quoted(rest), quoted(layout));
        format!("parsing time {whole} as {layout}: cannot parse {rest} as {}", quoted(element))
    };
    let mut reader = Reader { rest: text };
    let mut numbers = [0_i16; 6];
    let elements = [("2006", "-"), ("01", "-"), ("02", "T"), ("15", ":"), ("04", ":"), ("05", "")];
    for (number, (element, behind)) in numbers.iter_mut().zip(elements) {
        let read = match element {
            "15" => reader.number(2).or_else(|| reader.number(1)),
            element => reader.number(element.len()),
        };
        *number = read.ok_or_else(|| misfit(reader.rest, element))?;
        reader.word(behind).ok_or_else(|| misfit(reader.rest, behind))?;
    }
    let nanos = match (is_micro, reader.fraction()) {
        (true, Some((6, nanos))) => nanos,
        (true, _) => return Err(misfit(behind_seconds(text), ".000000")),
        (false, read) => read.map_or(0, |(_, nanos)| nanos),
    };
    let offset = reader.zone().ok_or_else(|| misfit(reader.rest, "Z07:00"))?;
    if !reader.rest.is_empty() {
        return Err(format!("parsing time {whole}: extra text: {}", quoted(reader.rest)));
    }
    let [year, month, day, hour, minute, second] = numbers;
    let parts = [month, day, hour, minute, second].map(|part| i8::try_from(part).unwrap_or(-1));
    let [month, day, hour, minute, second] = parts;
    let out_of_range = |what: &str| format!("parsing time {whole}: {what} out of range");
    for (value, limit, what) in
        [(month, 1..=12, "month"), (hour, 0..=23, "hour"), (minute, 0..=59, "minute")]
    {
        if !limit.contains(&value) {
            return Err(out_of_range(what));
        }
    }
    if !(0..=59).contains(&second) {
        return Err(out_of_range("second"));
    }
    let civil = DateTime::new(year, month, day, hour, minute, second, nanos);
    let civil = civil.map_err(|_| out_of_range("day"))?;
    offset.to_timestamp(civil).map_err(|_| out_of_range("year"))
}

/// Returns the part of a time after the seconds: fraction and time zone.
fn behind_seconds(text: &str) -> &str {
    const SECONDS_END: usize = "2006-01-02T15:04:05".len();
    text.get(SECONDS_END..).unwrap_or_default()
}

/// Parser of a time's text; `rest` is the unparsed part.
struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn number(&mut self, digits: usize) -> Option<i16> {
        let (number, rest) = self.rest.split_at_checked(digits)?;
        let plain = number.bytes().all(|byte| byte.is_ascii_digit());
        let number = plain.then(|| number.parse().ok()).flatten()?;
        self.rest = rest;
        Some(number)
    }

    fn word(&mut self, word: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(word)?;
        Some(())
    }

    /// Parses a fraction after a point or comma; returns the number of digits, and nanoseconds.
    fn fraction(&mut self) -> Option<(usize, i32)> {
        let behind = self.rest.strip_prefix(['.', ','])?;
        let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
        let number = behind.get(..digits.min(NANO_DIGITS)).filter(|number| !number.is_empty())?;
        let nanos = number.parse::<i32>().ok()?;
        let scale = u32::try_from(NANO_DIGITS - number.len()).ok()?;
        self.rest = behind.get(digits..)?;
        Some((digits, nanos * 10_i32.pow(scale)))
    }

    fn zone(&mut self) -> Option<Offset> {
        if self.word("Z").is_some() {
            return Some(Offset::UTC);
        }
        let mut reader = Reader { rest: self.rest.strip_prefix(['+', '-'])? };
        let (hours, minutes) = (reader.number(2)?, reader.word(":").and(reader.number(2))?);
        let sign = if self.rest.starts_with('-') { -1 } else { 1 };
        let seconds = (i32::from(hours) * 60 + i32::from(minutes)) * 60 * sign;
        let offset = Offset::from_seconds(seconds).ok().filter(|_| hours <= 24 && minutes <= 60)?;
        self.rest = reader.rest;
        Some(offset)
    }
}

#[cfg(test)]
mod tests;
