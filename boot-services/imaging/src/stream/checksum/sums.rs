//! Parses files of checksums in the styles of publishers, and finds the line of one image.
//!
//! | written by | line |
//! |---|---|
//! | coreutils | `hex  name`, `hex *name`; after a `\`, the name has `\n`, `\r` and `\\` |
//! | BSD, `sha256sum --tag` | `SHA256 (name) = hex` |
//! | OpenSSL 1 and 3 | `SHA256(name)= hex`, `SHA2-256(name)= hex` |
//! | GnuPG | `name: HEX HEX …`, over several lines |
//! | PowerShell | `SHA256  HEX  C:\path\name` |
//! | Debian | `hex size name` |
//! | others | `name hex`, `name: hex`, `name = hex` |
//! | for one image | `hex`, `algorithm:hex`, `hex  -`, `SHA2-256(stdin)= hex` |

use std::borrow::Cow;
use std::cmp::Reverse;

use super::{Algorithm, Checksum};

/// Maximum size of a file of checksums, in bytes; enough for a whole distribution.
pub(in crate::stream) const SUMS_BYTES: u64 = 4 << 20;
/// Unsupported algorithms in headings. Their checksums have the length of a supported algorithm's.
const FOREIGN: [&str; 11] = [
    "blake",
    "b2sum",
    "b3sum",
    "sha3",
    "sha512/256",
    "sha512-256",
    "sm3",
    "whirlpool",
    "keccak",
    "streebog",
    "md4",
];
/// Maximum length of a group of digits in GnuPG's style.
const GROUP: usize = 8;

/// Error of the search for an image's checksum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoSum {
    /// No line matches, or a file without names has different checksums.
    Missing,
    /// Two lines match equally well, but their checksums differ. Values: their file names.
    Several(String, String),
}

/// Parsed line of a file of checksums.
struct Line<'a> {
    sum: Checksum,
    /// File name in the line; `None` if the line has no name.
    name: Option<Cow<'a, str>>,
}

/// Decodes the text of a file of checksums: UTF-8, or UTF-16 as from PowerShell, with or without a
/// byte order mark.
pub(in crate::stream) fn decode(bytes: &[u8]) -> String {
    let wide = |of: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| of([pair[0], pair[1]])).collect();
        String::from_utf16_lossy(&units)
    };
    match bytes {
        [0xff, 0xfe, ..] | [1..=255, 0, 1..=255, 0, ..] => wide(u16::from_le_bytes),
        [0xfe, 0xff, ..] | [0, 1..=255, 0, 1..=255, ..] => wide(u16::from_be_bytes),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// Returns the strongest checksum for the image at `path`, the path of its URL. If several lines
/// have the image's file name, the line with most parent folders in common with `path` counts.
///
/// # Errors
/// [`NoSum::Missing`] if no line matches; [`NoSum::Several`] if two lines contradict each other.
pub fn find_sum(text: &str, path: &str) -> Result<Checksum, NoSum> {
    let text = joined(text);
    let lines = lines(&text);
    let mut fits: Vec<(Fit, &Line<'_>, &str)> = Vec::new();
    for line in &lines {
        let Some(name) = line.name.as_deref() else { continue };
        let fit = fit(name, path).max(unsized_name(name).and_then(|name| fit(name, path)));
        fits.extend(fit.map(|fit| (fit, line, name)));
    }
    fits.sort_by_key(|(fit, line, _)| Reverse((*fit, line.sum.algorithm())));
    let Some((best, line, name)) = fits.first() else { return alone(&lines) };
    let rival = fits.iter().find(|(fit, other, _)| {
        fit == best && other.sum.algorithm() == line.sum.algorithm() && other.sum != line.sum
    });
    match rival {
        Some((_, _, other)) => Err(NoSum::Several((*name).to_owned(), (*other).to_owned())),
        None => Ok(line.sum.clone()),
    }
}

/// Returns the strongest checksum of a file without any file name. [`NoSum::Missing`] if lines
/// differ.
fn alone(lines: &[Line<'_>]) -> Result<Checksum, NoSum> {
    if lines.iter().any(|line| line.name.is_some()) {
        return Err(NoSum::Missing);
    }
    let strongest = lines.iter().map(|line| &line.sum).max_by_key(|sum| sum.algorithm());
    let strongest = strongest.ok_or(NoSum::Missing)?;
    let is_rival =
        |line: &Line<'_>| line.sum.algorithm() == strongest.algorithm() && line.sum != *strongest;
    if lines.iter().any(is_rival) { Err(NoSum::Missing) } else { Ok(strongest.clone()) }
}

/// Number of equal path parts from the end, and true if these are the whole name.
type Fit = (usize, bool);

/// Compares the file name in a line with a URL path; `None` if the last parts differ.
fn fit(name: &str, path: &str) -> Option<Fit> {
    fn parts(path: &str) -> Vec<&str> {
        path.rsplit('/').filter(|part| !matches!(*part, "" | ".")).collect()
    }
    let parts_of_name = parts(name);
    let common = |path: &str| {
        let both = parts_of_name.iter().zip(parts(path));
        both.take_while(|(ours, theirs)| *ours == theirs).count()
    };
    let depth = common(path).max(common(&unescaped_url(path)));
    (depth > 0).then_some((depth, depth == parts_of_name.len()))
}

/// Decodes percent-encoded bytes of a URL path.
fn unescaped_url(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [first, after @ ..] = rest {
        let pair = after.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        match pair.filter(|_| *first == b'%').and_then(stdx::unhex) {
            Some(byte) => {
                bytes.extend(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the file name after a size in bytes (Debian's style); `None` without a size.
fn unsized_name(name: &str) -> Option<&str> {
    let (size, name) = name.split_once(char::is_whitespace)?;
    size.bytes().all(|byte| byte.is_ascii_digit()).then(|| name.trim_start())
}

/// Splits the text into lines, without empty lines. Appends a line with only groups of digits to
/// the line before (GnuPG's style).
fn joined(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.split(['\n', '\r', '\0']) {
        let line = line.trim_start_matches('\u{feff}');
        let mut words = line.split_whitespace().peekable();
        let is_rest = line.starts_with(char::is_whitespace)
            && words.peek().is_some()
            && words.all(|word| word.len() <= GROUP && is_hex(word));
        match lines.last_mut().filter(|_| is_rest) {
            Some(last) => last.push_str(line),
            None if line.trim().is_empty() => {}
            None => lines.push(line.to_owned()),
        }
    }
    lines
}

fn lines(text: &[String]) -> Vec<Line<'_>> {
    let (mut lines, mut is_foreign) = (Vec::new(), false);
    for line in text.iter().map(|line| line.trim()) {
        let is_heading = line.starts_with(['#', ';', '[']) || line.ends_with(':');
        if is_heading {
            is_foreign = heading(line).unwrap_or(is_foreign);
        } else if !is_foreign {
            lines.extend(tagged(line).unwrap_or_else(|| plain(line)));
        } else if let Some(line) = tagged(line) {
            lines.extend(line);
        }
    }
    lines
}

/// Parses a heading: `true` for an unsupported algorithm, `false` for a supported one, `None`
/// without an algorithm.
fn heading(line: &str) -> Option<bool> {
    let line = line.to_ascii_lowercase();
    let rest = FOREIGN.iter().fold(line.clone(), |rest, word| rest.replace(word, " "));
    let mut words = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let is_known = words.any(|word| algorithm(word).is_some());
    (is_known || rest != line).then_some(!is_known)
}

/// Parses an algorithm's name, in any common spelling such as `SHA2-256`; `None` if unsupported.
fn algorithm(name: &str) -> Option<Algorithm> {
    let name = name.to_ascii_lowercase().replace(['-', '_'], "");
    match name.strip_suffix("sum").unwrap_or(&name) {
        "md5" => Some(Algorithm::Md5),
        "sha256" | "sha2256" => Some(Algorithm::Sha256),
        "sha512" | "sha2512" => Some(Algorithm::Sha512),
        _ => None,
    }
}

/// Parses `ALGORITHM (name) = hex`; `None`: another style; `Some(None)`: another algorithm.
fn tagged(line: &str) -> Option<Option<Line<'_>>> {
    let (head, hex) = line.rsplit_once('=')?;
    let (tag, name) = head.trim_end().strip_suffix(')')?.split_once('(')?;
    let (tag, is_escaped) = match tag.strip_prefix('\\') {
        Some(tag) => (tag.trim(), true),
        None => (tag.trim(), false),
    };
    // OpenSSL 1.0 omits the algorithm for its standard input.
    let wanted = if tag.is_empty() { None } else { Some(algorithm(tag)) };
    let sum = digest(hex.trim());
    let sum = sum.filter(|sum| wanted.is_none_or(|wanted| wanted == Some(sum.algorithm())));
    Some(sum.map(|sum| Line { sum, name: named(name, is_escaped) }))
}

/// Parses a line in any other style than [`tagged`]; `None` without a checksum.
fn plain(line: &str) -> Option<Line<'_>> {
    let (line, is_escaped) = match line.strip_prefix('\\') {
        Some(line) => (line, true),
        None => (line, false),
    };
    let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim_start();
    if let Some(sum) = digest(first) {
        let name = rest.strip_prefix('*').unwrap_or(rest);
        return Some(Line { sum, name: named(name, is_escaped) });
    }
    if let Some(wanted) = algorithm(first.trim_end_matches([':', '='])) {
        let rest = rest.trim_start_matches(['=', ' ', '\t']);
        let (hex, name) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let sum = digest(hex).filter(|sum| sum.algorithm() == wanted)?;
        return Some(Line { sum, name: named(name.trim_start(), false) });
    }
    name_first(line)
}

/// Parses the styles `name hex`, `name: HEX HEX`, `name: ALGORITHM = HEX HEX`, `HEX HEX`.
fn name_first(line: &str) -> Option<Line<'_>> {
    let compact = |groups: &str| digest(&groups.split_whitespace().collect::<String>());
    if let Some(sum) = compact(line) {
        return Some(Line { sum, name: None });
    }
    if let Some((name, sum)) = line.rsplit_once(char::is_whitespace)
        && let Some(sum) = digest(sum)
    {
        let name = name.trim_end().trim_end_matches([':', '=']).trim_end();
        return Some(Line { sum, name: named(name, false) });
    }
    let (head, groups) = line.rsplit_once([':', '='])?;
    let sum = compact(groups)?;
    let (name, wanted) = match head.trim_end().rsplit_once(':') {
        Some((name, tag)) if algorithm(tag.trim()).is_some() => (name, algorithm(tag.trim())),
        _ => (head, Some(sum.algorithm())),
    };
    let name = named(name.trim_end(), false);
    (wanted == Some(sum.algorithm())).then_some(Line { sum, name })
}

/// Decodes the file name in a line; `None` for no name and for standard input.
fn named(name: &str, is_escaped: bool) -> Option<Cow<'_, str>> {
    match name {
        // `Hash` is the field's name in PowerShell's `Format-List`.
        "" | "-" | "stdin" | "Hash" => None,
        _ if is_escaped => Some(Cow::Owned(unescaped(name))),
        // Windows programs write no escapes.
        _ if name.contains('\\') => Some(Cow::Owned(name.replace('\\', "/"))),
        _ => Some(Cow::Borrowed(name)),
    }
}

/// Decodes the escapes `\n`, `\r` and `\\` of coreutils.
fn unescaped(name: &str) -> String {
    let (mut plain, mut rest) = (String::new(), name.chars());
    while let Some(c) = rest.next() {
        match c {
            '\\' => plain.extend(rest.next().map(|c| match c {
                'n' => '\n',
                'r' => '\r',
                other => other,
            })),
            _ => plain.push(c),
        }
    }
    plain
}

/// Parses `algorithm:hex`, or `hex`, whose length determines the algorithm.
fn digest(text: &str) -> Option<Checksum> {
    if text.contains(':') { text.parse().ok() } else { Checksum::of_hex(text) }
}

fn is_hex(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests;
