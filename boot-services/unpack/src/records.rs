//! Records of pax headers (POSIX.1-2017, pax, "pax Extended Header") that `tar -x` uses. A record
//! with an empty value cancels a global record; the value of the tar header applies again.

use std::io;

use super::sparse::SparseRecords;
use super::{number, refuse};

/// Key prefix of records for extended attributes.
const XATTR: &[u8] = b"SCHILY.xattr.";

/// Time since the start of 1970, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Time {
    pub(super) seconds: i64,
    /// Nanoseconds to add to `seconds`, 0 to 999,999,999; also before 1970.
    pub(super) nanoseconds: u32,
}

impl Time {
    pub(super) fn of_seconds(seconds: i64) -> Self {
        Self { seconds, nanoseconds: 0 }
    }

    /// Parses decimal seconds, such as `-1.5`. Digits beyond nanoseconds are dropped.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let (is_before, digits) = match text.strip_prefix(b"-") {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let point = digits.iter().position(|byte| *byte == b'.').unwrap_or(digits.len());
        let (whole, fraction) = digits.split_at(point);
        let fraction = fraction.strip_prefix(b".").unwrap_or_default();
        if whole.is_empty() || !fraction.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let seconds = i64::try_from(number(whole)?).ok()?;
        let digit = |at: usize| u32::from(fraction.get(at).map_or(0, |byte| byte - b'0'));
        let nanoseconds = (0..9).fold(0, |sum, at| sum * 10 + digit(at));
        Some(match (is_before, nanoseconds) {
            (false, _) => Self { seconds, nanoseconds },
            (true, 0) => Self { seconds: -seconds, nanoseconds },
            (true, _) => Self { seconds: -seconds - 1, nanoseconds: 1_000_000_000 - nanoseconds },
        })
    }
}

/// Parsed pax records; `None` if there is no record.
#[derive(Debug, Clone, Default)]
pub(super) struct Records {
    pub(super) path: Option<Vec<u8>>,
    pub(super) link: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    pub(super) uid: Option<u64>,
    pub(super) gid: Option<u64>,
    pub(super) modified: Option<Time>,
    pub(super) accessed: Option<Time>,
    /// Records `GNU.sparse.*`. Boxed to save memory, because few files are sparse.
    pub(super) sparse: Option<Box<SparseRecords>>,
    /// Names and values of extended attributes.
    pub(super) attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Records {
    /// Parses records of the form `length key=value\n`. A value may contain newlines. The last
    /// record of a key has precedence.
    pub(super) fn read(&mut self, mut text: &[u8]) -> io::Result<()> {
        // Some programs fill the block with zeros.
        while text.first().is_some_and(|byte| *byte != 0) {
            let (record, rest) = split(text).ok_or_else(|| refuse("a pax record is damaged"))?;
            let equals = record.iter().position(|byte| *byte == b'=');
            let equals = equals.ok_or_else(|| refuse("a pax record is damaged"))?;
            let (key, value) = (&record[..equals], &record[equals + 1..]);
            if self.set(key, value).is_none() {
                let (key, value) = (String::from_utf8_lossy(key), String::from_utf8_lossy(value));
                return Err(refuse(&format!("its pax record {key} cannot be {value:?}")));
            }
            text = rest;
        }
        Ok(())
    }

    /// Stores a record; unknown keys are ignored. Returns `None` for an invalid value.
    fn set(&mut self, key: &[u8], value: &[u8]) -> Option<()> {
        fn set<T>(
            field: &mut Option<T>,
            value: &[u8],
            parse: impl Fn(&[u8]) -> Option<T>,
        ) -> Option<()> {
            *field = if value.is_empty() { None } else { Some(parse(value)?) };
            Some(())
        }
        let bytes = |value: &[u8]| Some(value.to_vec());
        match key {
            b"path" => set(&mut self.path, value, bytes),
            b"linkpath" => set(&mut self.link, value, bytes),
            b"size" => set(&mut self.size, value, number),
            b"uid" => set(&mut self.uid, value, number),
            b"gid" => set(&mut self.gid, value, number),
            b"mtime" => set(&mut self.modified, value, Time::parse),
            b"atime" => set(&mut self.accessed, value, Time::parse),
            _ => {
                if let Some(name) = key.strip_prefix(XATTR) {
                    self.attributes.push((name.to_vec(), value.to_vec()));
                } else if let Some(name) = key.strip_prefix(b"GNU.sparse.") {
                    self.sparse.get_or_insert_default().set(name, value)?;
                }
                Some(())
            }
        }
    }

    /// Removes records that can apply to only one entry: path, link, size, sparse map, attributes.
    pub(super) fn keep_scalars(&mut self) {
        (self.path, self.link, self.size, self.sparse) = (None, None, None, None);
        self.attributes = Vec::new();
    }
}

/// Splits off the first record. Returns its `key=value` and the rest; `None` if the record is
/// damaged.
fn split(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = text.iter().take(20).position(|byte| *byte == b' ')?;
    let length = usize::try_from(number(&text[..space])?).ok()?;
    let (record, rest) = text.split_at_checked(length)?;
    Some((record.get(space + 1..)?.strip_suffix(b"\n")?, rest))
}

#[cfg(test)]
mod tests {
    use super::{Records, Time};

    fn record(key: &str, value: &[u8]) -> Vec<u8> {
        let rest = key.len() + value.len() + 3;
        let length = (rest..).find(|length| length.to_string().len() + rest == *length).unwrap();
        [format!("{length} {key}=").as_bytes(), value, b"\n"].concat()
    }

    #[test]
    fn times_have_fractions_and_may_be_before_1970() {
        for (text, seconds, nanoseconds) in [
            ("1644317623.2803335", 1_644_317_623, 280_333_500),
            ("0", 0, 0),
            ("7.", 7, 0),
            ("1.9999999999", 1, 999_999_999),
            ("-1", -1, 0),
            ("-1.5", -2, 500_000_000),
            ("-0.000000001", -1, 999_999_999),
        ] {
            assert_eq!(Time::parse(text.as_bytes()), Some(Time { seconds, nanoseconds }), "{text}");
        }
        for text in ["", "-", ".5", "1e9", "1.x", "+1", "99999999999999999999"] {
            assert_eq!(Time::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn records_are_told_apart_by_their_lengths() {
        let text = [
            record("path", b"a\nb=c"),
            record("SCHILY.xattr.security.capability", b"\x01\n\n7 a=b\n"),
            record("comment", b""),
            record("uid", b"1"),
            record("uid", b"3000000"),
            record("gid", b"7"),
            record("gid", b""),
        ];
        let mut records = Records::default();
        records.read(&text.concat()).unwrap();
        assert_eq!(records.path.as_deref(), Some(&b"a\nb=c"[..]));
        assert_eq!((records.uid, records.gid), (Some(3_000_000), None));
        let name = b"security.capability".to_vec();
        assert_eq!(records.attributes, [(name, b"\x01\n\n7 a=b\n".to_vec())]);
        for broken in [&b"7 a=bcd\n"[..], b"x a=b\n", b"6 a=b", b"0 a=b\n", b"5 ab\n", b"99 a=b\n"]
        {
            assert!(Records::default().read(broken).is_err(), "{broken:?}");
        }
        let error = Records::default().read(&record("mtime", b"soon")).unwrap_err();
        assert_eq!(error.to_string(), "its pax record mtime cannot be \"soon\"");
    }
}
