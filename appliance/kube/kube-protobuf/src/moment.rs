//! Conversion of times: seconds and nanoseconds in protobuf, RFC 3339 in JSON.

use jiff::civil::{DateTime, date};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::Error;
use crate::wire::{Content, Reader, put_number};

/// Go's zero time (January 1 of the year 1) in Unix seconds; means that the time was never set.
const NEVER: i64 = -62_135_596_800;
/// Last second of the year 9999 in Unix seconds, the last time that RFC 3339 can express.
const LAST: i64 = 253_402_300_799;

const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);

/// Precision of a time in JSON.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exact {
    /// Seconds, as in `metav1.Time`.
    Second,
    /// Microseconds, as in `metav1.MicroTime`.
    Microsecond,
}

/// Decodes a time; null if the time was never set.
pub(crate) fn read(bytes: &[u8], exact: Exact) -> Result<Value, Error> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanoseconds) = (0_i64, 0_i64);
    let mut reader = Reader(bytes);
    while let Some((number, content)) = reader.next()? {
        match (number, content) {
            (1, Content::Varint(value)) => seconds = value.cast_signed(),
            (2, Content::Varint(value)) => nanoseconds = value.cast_signed(),
            (1 | 2, _) => {
                return Err(Error::Malformed("seconds or nanos of a Time are not a varint"));
            }
            _ => {}
        }
    }
    if exact == Exact::Second {
        nanoseconds = 0;
    }
    let micros = i32::try_from(nanoseconds / 1000 * 1000).ok();
    let wrong = || Error::Malformed("a time outside the years 1 to 9999");
    if !(NEVER..=LAST).contains(&seconds) || !(0..1_000_000_000).contains(&nanoseconds) {
        return Err(wrong());
    }
    let micros = micros.ok_or_else(wrong)?;
    if seconds == NEVER && micros == 0 {
        return Ok(Value::Null);
    }
    // Civil time covers the whole year 9999, a jiff timestamp does not.
    let since = SignedDuration::new(seconds, micros);
    let moment = EPOCH.checked_add(since).map_err(|_| wrong())?;
    Ok(Value::String(match exact {
        Exact::Second => format!("{moment}Z"),
        Exact::Microsecond => format!("{moment:.6}Z"),
    }))
}

/// Encodes an RFC 3339 time as a message; `None` if `text` is not a time.
pub(crate) fn write(text: &str, exact: Exact) -> Option<Vec<u8>> {
    let since = match text.strip_suffix('Z') {
        Some(civil) => civil.parse::<DateTime>().ok()?.duration_since(EPOCH),
        None => text.parse::<Timestamp>().ok()?.as_duration(),
    };
    let mut out = Vec::new();
    let seconds = since.as_nanos().div_euclid(1_000_000_000);
    put_number(&mut out, 1, i64::try_from(seconds).ok()?.cast_unsigned());
    if exact == Exact::Microsecond {
        let rest = since.as_nanos().rem_euclid(1_000_000_000) / 1000 * 1000;
        put_number(&mut out, 2, u64::try_from(rest).ok()?);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::{Exact, LAST, NEVER, read, write};
    use crate::wire::put_number;
    use serde_json::{Value, json};

    fn message(seconds: i64, nanoseconds: u64) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(&mut out, 1, seconds.cast_unsigned());
        put_number(&mut out, 2, nanoseconds);
        out
    }

    #[test]
    fn moments() {
        let second = |seconds| read(&message(seconds, 999_999_999), Exact::Second);
        assert_eq!(second(0).unwrap(), json!("1970-01-01T00:00:00Z"));
        assert_eq!(second(LAST).unwrap(), json!("9999-12-31T23:59:59Z"));
        assert_eq!(second(NEVER).unwrap(), Value::Null);
        assert_eq!(read(&[], Exact::Second).unwrap(), Value::Null);
        assert!(second(LAST + 1).is_err() && second(NEVER - 1).is_err());
        let micro = |seconds, nanos| read(&message(seconds, nanos), Exact::Microsecond);
        assert_eq!(micro(1, 5_999).unwrap(), json!("1970-01-01T00:00:01.000005Z"));
        assert_eq!(micro(-1, 500_000_000).unwrap(), json!("1969-12-31T23:59:59.500000Z"));
        assert!(micro(1, 1_000_000_000).is_err() && micro(1, u64::MAX).is_err());
        let back = write("1969-12-31T23:59:59.500000Z", Exact::Microsecond).unwrap();
        assert_eq!(back, message(-1, 500_000_000));
    }
}
