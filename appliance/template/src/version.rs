//! Semantic versions as `Masterminds/semver` 3.3 parses and orders them: a leading `v` and missing
//! numbers are accepted.

use std::cmp::Ordering;
use std::fmt;
use std::rc::Rc;

/// Semantic version, as Go's `semver` parses it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Version {
    /// Major number: incompatible changes.
    pub major: u64,
    /// Minor number: compatible additions.
    pub minor: u64,
    /// Patch number: compatible corrections.
    pub patch: u64,
    /// Prerelease, such as `rc.1`; empty for a release.
    pub pre: String,
    /// Text after the plus; ignored in comparisons.
    pub metadata: String,
    /// Text that the version was parsed from; for a computed version, its normal text.
    pub original: String,
}

/// Version as a template value.
#[derive(Clone)]
pub struct VersionRef {
    /// Version that the value refers to.
    pub version: Rc<Version>,
    /// True for Go's `*semver.Version`. The results of methods are not pointers, and lack the
    /// methods of pointers.
    pub is_pointer: bool,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.pre.is_empty() {
            write!(f, "-{}", self.pre)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

impl Version {
    /// Parses a version such as `v1.2.3-rc.1+build`; only the major number is required.
    ///
    /// # Errors
    /// The text is not a valid version, or a number is too large.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bad = || "Invalid Semantic Version".to_owned();
        let (major, rest) = digits(text.strip_prefix('v').unwrap_or(text)).ok_or_else(bad)?;
        let dotted = |rest| digits(str::strip_prefix(rest, '.')?);
        let (minor, rest) = dotted(rest).unwrap_or(("0", rest));
        let (patch, rest) = dotted(rest).unwrap_or(("0", rest));
        let (pre, rest) = tail(rest, '-');
        let (metadata, rest) = tail(rest, '+');
        if !rest.is_empty() {
            return Err(bad());
        }
        let number = |digits: &str| {
            digits.parse::<u64>().map_err(|_| "a number of the version is too large".to_owned())
        };
        let (major, minor, patch) = (number(major)?, number(minor)?, number(patch)?);
        check_pre(pre)?;
        let [pre, metadata, original] = [pre, metadata, text].map(str::to_owned);
        Ok(Self { major, minor, patch, pre, metadata, original })
    }

    /// Returns the length of the version's texts, in bytes.
    pub fn size(&self) -> usize {
        self.pre.len() + self.metadata.len() + self.original.len()
    }

    /// Compares by version precedence: a release is higher than its pre-releases.
    pub fn order(&self, other: &Self) -> Ordering {
        let numbers = |it: &Self| (it.major, it.minor, it.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| {
            match (self.pre.is_empty(), other.pre.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => order_of_pre(&self.pre, &other.pre),
            }
        })
    }

    /// Returns a copy changed by `change`. Its text begins with `v` if this version's text does.
    pub fn changed(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut next = self.clone();
        change(&mut next);
        let v = if self.original.starts_with('v') { "v" } else { "" };
        next.original = format!("{v}{next}");
        next
    }
}

fn is_identifier(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-'
}

/// Splits off the digits at the beginning; `None` if there is no digit.
fn digits(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// Splits off the dotted identifiers after `sign`; returns them (empty if none) and the rest.
fn tail(text: &str, sign: char) -> (&str, &str) {
    let Some(after) = text.strip_prefix(sign) else { return ("", text) };
    let end = after.find(|c| !(is_identifier(c) || c == '.')).unwrap_or(after.len());
    let (found, rest) = after.split_at(end);
    if found.split('.').any(str::is_empty) { ("", text) } else { (found, rest) }
}

/// Checks the pre-release of a version: the text after `-`.
///
/// # Errors
/// The text is not valid.
pub fn check_pre(pre: &str) -> Result<(), String> {
    for part in pre.split('.') {
        let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
        if is_number && part.len() > 1 && part.starts_with('0') {
            return Err("Version segment starts with 0".to_owned());
        }
        if !part.chars().all(is_identifier) {
            return Err("Invalid Prerelease string".to_owned());
        }
    }
    Ok(())
}

/// Checks the metadata of a version: the text after `+`.
///
/// # Errors
/// The text is not valid.
pub fn check_metadata(metadata: &str) -> Result<(), String> {
    match metadata.split('.').all(|part| part.chars().all(is_identifier)) {
        true => Ok(()),
        false => Err("Invalid Metadata string".to_owned()),
    }
}

/// Compares pre-releases part by part; a missing part is lower than any part.
pub fn order_of_pre(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a.split('.'), b.split('.'));
    loop {
        let (a, b) = match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (a, b) => (a.unwrap_or_default(), b.unwrap_or_default()),
        };
        let order = order_of_parts(a, b);
        if order.is_ne() {
            return order;
        }
    }
}

/// Compares two parts of pre-releases: missing part < number < word.
fn order_of_parts(a: &str, b: &str) -> Ordering {
    let number = |part: &str| part.parse::<u64>().ok();
    match (number(a), number(b)) {
        _ if a == b => Ordering::Equal,
        _ if a.is_empty() => Ordering::Less,
        _ if b.is_empty() => Ordering::Greater,
        (None, None) => a.cmp(b),
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(a), Some(b)) => a.cmp(&b),
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::Version;

    #[test]
    fn versions_are_read_leniently() {
        for (text, want) in [
            ("1", "1.0.0"),
            ("v1.2", "1.2.0"),
            ("1.2.3-rc.1+b.07", "1.2.3-rc.1+b.07"),
            ("01.002.3", "1.2.3"),
            ("1.2-a-b", "1.2.0-a-b"),
            ("1+x", "1.0.0+x"),
        ] {
            assert_eq!(Version::parse(text).unwrap().to_string(), want, "{text}");
        }
        for text in
            ["", "v", "V1", "1.", "1.x", "1.2.3.4", "1-", "1-a..b", "1-01", "1+", " 1", "1\n"]
        {
            assert!(Version::parse(text).is_err(), "{text:?}");
        }
        assert!(Version::parse("18446744073709551616").is_err());
    }

    #[test]
    fn their_order_is_that_of_semantic_versioning() {
        let sorted = [
            "1.0.0-1",
            "1.0.0-1.1",
            "1.0.0-9",
            "1.0.0-10",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-rc.1",
            "1.0.0",
            "1.0.1-0",
            "1.10.0",
            "2.0.0",
        ];
        for pair in sorted.windows(2) {
            let [a, b] = [pair[0], pair[1]].map(|text| Version::parse(text).unwrap());
            assert_eq!((a.order(&b), b.order(&a)), (Ordering::Less, Ordering::Greater), "{pair:?}");
        }
        let [a, b] = ["1.0.0+a", "v1+b"].map(|text| Version::parse(text).unwrap());
        assert_eq!(a.order(&b), Ordering::Equal);
    }
}
