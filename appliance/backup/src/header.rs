//! Header of a backup: two readable lines at the beginning of the file.

use std::fmt;
use std::io::BufRead;

use jiff::Timestamp;
use semver::Version;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::Error;

/// Format number that this release writes, and the highest that this release reads.
pub const FORMAT: u32 = 1;
/// Oldest release that reads the format of this release.
pub const NEEDS: &str = "0.1.0";
/// Maximum length of both lines together in bytes.
pub const HEADER_BYTES_MAX: usize = 64 << 10;

/// Beginning of the first line in every format version; the format number follows.
const WORDS: &str = "TINBOX BACKUP ";
/// Maximum length of the first line in bytes.
const FIRST_LINE_MAX: usize = 32;

/// Number of digits of the payload size: fixed, because the size is overwritten at the end.
const SIZE_DIGITS: usize = 12;

/// Description of a backup, in the second line of the file as JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Header {
    /// Bytes of the payload; 0 in the archive's own copy. A shorter file is reported as truncated
    /// instead of changed. The size is not authenticated.
    #[serde(serialize_with = "size_to", deserialize_with = "size_from")]
    pub size: u64,
    /// Name of the box.
    pub name: String,
    /// Release that made the backup.
    pub version: String,
    /// Oldest release that reads the backup.
    pub needs: String,
    /// Time at which the backup was made.
    pub made: Timestamp,
    /// Certificate pin of the box. A restored box gets this pin.
    pub pin: String,
    /// Protection of the payload: `passphrase`, `recipients` or `none`.
    pub encryption: String,
    /// Public keys that the backup is encrypted for; empty with a passphrase.
    pub key_ids: Vec<String>,
    /// Revision of the store in the backup.
    pub revision: u64,
    /// Numbers of objects, leases and files in the backup.
    pub contents: Contents,
}

/// Numbers of parts in a backup.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Contents {
    /// Number of all objects of the API.
    pub objects: u64,
    /// Number of Hardware objects.
    pub hardware: u64,
    /// Number of Secrets among the objects.
    pub secrets: u64,
    /// Number of interfaces whose leases are included.
    pub leases: u64,
    /// Number of files of the state folder: keys, tokens, settings.
    pub files: u64,
    /// True if `box.toml` is included.
    pub settings: bool,
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { objects, hardware, secrets, leases, files, settings } = self;
        let settings = if *settings { "settings" } else { "no settings" };
        write!(
            f,
            "{objects} objects ({hardware} Hardware, {secrets} Secrets), leases of {leases} \
             interfaces, {files} files, {settings}"
        )
    }
}

impl Header {
    /// Encodes the two lines at the beginning of a backup.
    ///
    /// # Errors
    /// The lines are longer than any reader accepts.
    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = format!("{WORDS}{FORMAT}\n").into_bytes();
        let line = serde_json::to_vec(self).map_err(|error| Error::Unkept {
            what: "its header".to_owned(),
            why: error.to_string(),
        })?;
        bytes.extend(line);
        bytes.push(b'\n');
        if bytes.len() > HEADER_BYTES_MAX {
            return Err(Error::TooLarge { limit: format!("{HEADER_BYTES_MAX} bytes of header") });
        }
        Ok(bytes)
    }

    /// Returns the offset of the size's digits in the file, and the digits of `size`.
    pub(crate) fn size_at(size: u64) -> (u64, String) {
        let before = format!("{WORDS}{FORMAT}\n{{\"size\":\"");
        (before.len() as u64, digits(size))
    }

    /// Returns both lines with zeros as size, as the archive stores them.
    pub(crate) fn unsized_lines(lines: &[u8]) -> Vec<u8> {
        let mut lines = lines.to_vec();
        let (at, digits) = Self::size_at(0);
        let place = usize::try_from(at).ok().and_then(|at| lines.get_mut(at..at + SIZE_DIGITS));
        if let Some(place) = place {
            place.copy_from_slice(digits.as_bytes());
        }
        lines
    }

    /// Reads both lines, for a reader of the version `own`. Returns the header and the bytes of
    /// both lines. The payload is the rest of `input`.
    ///
    /// # Errors
    /// [`Error::NotOne`], [`Error::Newer`], [`Error::Truncated`], [`Error::Damaged`].
    pub(crate) fn decode(input: &mut impl BufRead, own: &str) -> Result<(Self, Vec<u8>), Error> {
        let mut bytes = line(input, FIRST_LINE_MAX)?;
        let number = std::str::from_utf8(&bytes).ok().and_then(|it| it.strip_prefix(WORDS));
        let number = number.ok_or(Error::NotOne)?;
        if !number.ends_with('\n') && bytes.len() < FIRST_LINE_MAX {
            return Err(Error::Truncated);
        }
        let format: u32 = number.trim_end().parse().map_err(|_| Error::NotOne)?;
        let second = line(input, HEADER_BYTES_MAX - bytes.len())?;
        // The second line of a later format may have any content, and may exceed the limit.
        let newer = |needs: String| Error::Newer { needs, own: own.to_owned() };
        if format > FORMAT {
            let header: Value = serde_json::from_slice(&second).unwrap_or_default();
            let needs = header["needs"].as_str().filter(|needs| !needs.is_empty());
            let number = || format!("that supports format {format}");
            return Err(newer(needs.map_or_else(number, str::to_owned)));
        }
        if format == 0 || bytes.len() + second.len() == HEADER_BYTES_MAX {
            return Err(Error::damaged("its header is not valid"));
        }
        if !second.ends_with(b"\n") {
            return Err(Error::Truncated);
        }
        let header: Self = serde_json::from_slice(&second)
            .map_err(|error| Error::damaged(format!("its header was changed: {error}")))?;
        if is_above(&header.needs, own)? {
            return Err(newer(header.needs));
        }
        bytes.extend(second);
        Ok((header, bytes))
    }
}

fn digits(size: u64) -> String {
    format!("{size:0SIZE_DIGITS$}")
}

fn size_to<S: Serializer>(size: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&digits(*size))
}

fn size_from<'a, D: Deserializer<'a>>(from: D) -> Result<u64, D::Error> {
    String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
}

fn is_above(needs: &str, own: &str) -> Result<bool, Error> {
    let wanted = Version::parse(needs)
        .map_err(|error| Error::damaged(format!("invalid version {needs:?}: {error}")))?;
    // An `own` version that is not valid is a mistake of the build. The backup is still accepted.
    Ok(Version::parse(own).is_ok_and(|own| wanted > own))
}

/// Reads a line with its line feed. The line feed is missing if the stream or the limit ends first.
fn line(input: &mut impl BufRead, limit: usize) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let mut part = std::io::Read::take(input, limit as u64);
    part.read_until(b'\n', &mut bytes).map_err(Error::read)?;
    Ok(bytes)
}
