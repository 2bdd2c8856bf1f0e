//! String formats that are checked (kube-openapi `pkg/validation/strfmt`, apiextensions
//! `pkg/apiserver/validation/formats.go`). All other formats are ignored.

mod address;
mod checksum;
mod mail;
mod time;
mod uri;

use std::sync::LazyLock;

use regex::Regex;

/// Maximum length of a hostname, in bytes.
const MAX_HOSTNAME: usize = 255;
/// Maximum length of a label in a name, in bytes.
const MAX_LABEL: usize = 63;
/// Maximum length of a `k8s-long-name`, in bytes.
const MAX_LONG_NAME: usize = 253;

/// String format that is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    BsonObjectId,
    Uri,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    Cidr,
    Mac,
    /// UUID; with a digit, only UUIDs of this version.
    Uuid(Option<char>),
    Isbn,
    Isbn10,
    Isbn13,
    CreditCard,
    Ssn,
    HexColor,
    RgbColor,
    Byte,
    Password,
    Date,
    Duration,
    DateTime,
    ShortName,
    LongName,
}

impl Format {
    /// Returns the format `name`; `None` if unknown. Ignores dashes: `date-time` is `datetime`.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name.replace('-', "").as_str() {
            "bsonobjectid" => Self::BsonObjectId,
            "uri" => Self::Uri,
            "email" => Self::Email,
            "hostname" => Self::Hostname,
            "ipv4" => Self::Ipv4,
            "ipv6" => Self::Ipv6,
            "cidr" => Self::Cidr,
            "mac" => Self::Mac,
            "uuid" => Self::Uuid(None),
            "uuid3" => Self::Uuid(Some('3')),
            "uuid4" => Self::Uuid(Some('4')),
            "uuid5" => Self::Uuid(Some('5')),
            "isbn" => Self::Isbn,
            "isbn10" => Self::Isbn10,
            "isbn13" => Self::Isbn13,
            "creditcard" => Self::CreditCard,
            "ssn" => Self::Ssn,
            "hexcolor" => Self::HexColor,
            "rgbcolor" => Self::RgbColor,
            "byte" => Self::Byte,
            "password" => Self::Password,
            "date" => Self::Date,
            "duration" => Self::Duration,
            "datetime" => Self::DateTime,
            "k8sshortname" => Self::ShortName,
            "k8slongname" => Self::LongName,
            _ => return None,
        })
    }

    /// Returns true if `text` is valid for the format.
    pub fn accepts(self, text: &str) -> bool {
        match self {
            Self::BsonObjectId => text.len() == 24 && is_hex(text),
            Self::Uri => uri::is_request_uri(text),
            Self::Email => mail::is_address(text),
            Self::Hostname => is_hostname(text),
            Self::Ipv4 => address::is_ipv4(text),
            Self::Ipv6 => address::is_ipv6(text),
            Self::Cidr => address::is_cidr(text),
            Self::Mac => address::is_mac(text),
            Self::Uuid(version) => is_uuid(text, version),
            Self::Isbn => checksum::is_isbn10(text) || checksum::is_isbn13(text),
            Self::Isbn10 => checksum::is_isbn10(text),
            Self::Isbn13 => checksum::is_isbn13(text),
            Self::CreditCard => checksum::is_credit_card(text),
            Self::Ssn => is_ssn(text),
            Self::HexColor => {
                let digits = text.strip_prefix('#').unwrap_or(text);
                matches!(digits.len(), 3 | 6) && is_hex(digits)
            }
            Self::RgbColor => is_rgb_color(text),
            Self::Byte => is_base64(text),
            Self::Password => true,
            Self::Date => time::is_date(text),
            Self::Duration => time::is_duration(text),
            Self::DateTime => time::is_date_time(text),
            Self::ShortName => is_short_name(text),
            Self::LongName => text.len() <= MAX_LONG_NAME && text.split('.').all(is_name_segment),
        }
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Symbols and letters of any script, as in upstream's hostname pattern.
static SYMBOL_OR_LETTER: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^[\p{S}\p{L}]$").ok());
static LETTER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\p{L}$").ok());

fn matches(class: &Option<Regex>, c: char) -> bool {
    class.as_ref().is_some_and(|class| class.is_match(c.encode_utf8(&mut [0; 4])))
}

fn is_hostname(text: &str) -> bool {
    if text.len() > MAX_HOSTNAME || text.split('.').any(|label| label.len() > MAX_LABEL) {
        return false;
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches(&SYMBOL_OR_LETTER, c);
    let Some((labels, top)) = text.rsplit_once('.') else {
        // A name of one label: only its second character may be a dash.
        let mut chars = text.chars();
        return chars.next().is_some_and(is_part)
            && chars.enumerate().all(|(index, c)| is_part(c) || (index == 0 && c == '-'));
    };
    let is_letter = |c: char| c.is_ascii_alphabetic() || matches(&LETTER, c);
    let is_label = |label: &str| {
        label.chars().next().is_some_and(is_part)
            && label.chars().next_back().is_some_and(is_part)
            && label.chars().all(|c| c == '-' || is_part(c))
    };
    top.chars().count() >= 2 && top.chars().all(is_letter) && labels.split('.').all(is_label)
}

fn is_short_name(text: &str) -> bool {
    text.len() <= MAX_LABEL && is_name_segment(text)
}

/// Returns true if the text matches `[a-z0-9]([-a-z0-9]*[a-z0-9])?`.
fn is_name_segment(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && !text.starts_with('-') && !text.ends_with('-') && text.bytes().all(is_inner)
}

/// Returns true for groups of 8, 4, 4, 4 and 12 hex digits; each dash between them is optional.
fn is_uuid(text: &str, version: Option<char>) -> bool {
    let mut rest = text;
    let mut groups = [""; 5];
    for (index, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((group, after)) = rest.split_at_checked(length) else { return false };
        if !is_hex(group) {
            return false;
        }
        groups[index] = group;
        rest = after;
    }
    let variant_fits = match version {
        Some('4' | '5') => groups[3].starts_with(['8', '9', 'a', 'b', 'A', 'B']),
        _ => true,
    };
    rest.is_empty() && version.is_none_or(|digit| groups[2].starts_with(digit)) && variant_fits
}

/// Returns true for `ddd-dd-dddd`, with dashes or spaces.
fn is_ssn(text: &str) -> bool {
    let fits = |(index, byte): (usize, u8)| match index {
        3 | 6 => matches!(byte, b'-' | b' '),
        _ => byte.is_ascii_digit(),
    };
    text.len() == 11 && text.bytes().enumerate().all(fits)
}

/// Returns true for `rgb(r, g, b)`, each number from 0 to 255 without leading zeros.
fn is_rgb_color(text: &str) -> bool {
    let inner = text.strip_prefix("rgb(").and_then(|text| text.strip_suffix(')'));
    let is_space = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}');
    let is_shade = |part: &str| {
        let digits = part.trim_matches(is_space);
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        plain && digits.parse::<u8>().is_ok() && (digits == "0" || !digits.starts_with('0'))
    };
    inner.is_some_and(|inner| inner.split(',').count() == 3 && inner.split(',').all(is_shade))
}

/// Returns true for standard base64 with padding; false for an empty text, as upstream.
fn is_base64(text: &str) -> bool {
    let data = text.trim_end_matches('=');
    let padding = text.len() - data.len();
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !data.is_empty() && text.len().is_multiple_of(4) && padding <= 2 && data.bytes().all(is_digit)
}

#[cfg(test)]
mod tests;
