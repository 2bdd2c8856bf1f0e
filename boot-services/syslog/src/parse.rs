//! Parses one datagram into a line. Parsing never fails: a message in an unknown format becomes
//! text.

use std::fmt;

/// Maximum bytes of a message's text, in UTF-8; the rest is cut off.
pub const MAX_TEXT: usize = 2048;
/// Maximum bytes of the name of a host, program or process.
const MAX_NAME: usize = 64;
/// Highest valid priority, `<191>` (RFC 5424, section 6.2.1): facility 23, severity 7.
const MAX_PRIORITY: u8 = 191;

/// Severity of a message (RFC 5424, table 2), the most severe first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names are the RFC's")]
pub enum Severity {
    Emergency,
    Alert,
    Critical,
    Error,
    Warning,
    Notice,
    Info,
    Debug,
}

/// A line of a machine's log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    /// Severity; `None` if the message has none.
    pub severity: Option<Severity>,
    /// Facility (RFC 5424, table 1): 0 is the kernel, 16 to 23 are local.
    pub facility: Option<u8>,
    /// Time in the sender's format; the sender's clock may be wrong. Empty if the message has none.
    pub time: String,
    /// Host name from the message. Empty if it has none.
    pub host: String,
    /// Name of the program: `ipxe`, `kernel`, `sshd`. Empty if the message has none.
    pub program: String,
    /// Process id of the program. Empty if the message has none.
    pub process: String,
    /// Text of the message, without control characters, at most [`MAX_TEXT`] bytes.
    pub text: String,
}

impl Line {
    /// Creates a line for the output of a program.
    pub(super) fn printed(program: &str, text: &str) -> Self {
        let (program, text) = (clean(program, MAX_NAME), clean(text, MAX_TEXT));
        Self { severity: Some(Severity::Info), program, text, ..Self::default() }
    }
}

impl Severity {
    /// Returns the severity of a priority or of a kernel's level: the lower three bits.
    pub fn of(priority: u8) -> Self {
        match priority & 7 {
            0 => Self::Emergency,
            1 => Self::Alert,
            2 => Self::Critical,
            3 => Self::Error,
            4 => Self::Warning,
            5 => Self::Notice,
            6 => Self::Info,
            _ => Self::Debug,
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Emergency => "emerg",
            Self::Alert => "alert",
            Self::Critical => "crit",
            Self::Error => "err",
            Self::Warning => "warning",
            Self::Notice => "notice",
            Self::Info => "info",
            Self::Debug => "debug",
        })
    }
}

/// Parses a datagram in one of these formats; any other datagram is text:
///
/// - RFC 5424: `<34>1 2003-10-11T22:14:15.003Z host su 123 ID47 [structured data] text`; the
///   message's id and structured data are dropped;
/// - RFC 3164: `<34>Oct 11 22:14:15 host su[123]: text`, also with a time of RFC 3339, and without
///   time or host as many senders have it;
/// - iPXE: `<134>ipxe: text`, with `host.domain` in front when it knows them (`net/udp/syslog.c`);
/// - the kernel's own: `<6>[    1.23] text`, and netconsole's extended form `6,416,1758426,-;text`
///   (`Documentation/networking/netconsole.rst`).
pub fn parse(datagram: &[u8]) -> Line {
    let text = String::from_utf8_lossy(datagram);
    let text = text.trim_matches(|c: char| c.is_control() || c == ' ' || c == '\u{feff}');
    let Some((priority, rest)) = priority(text) else { return unmarked(text) };
    let mut line =
        rest.strip_prefix("1 ").and_then(structured).unwrap_or_else(|| traditional(rest));
    line.severity = Some(Severity::of(priority));
    line.facility = Some(priority >> 3);
    // Facility 0 is reserved for the kernel (RFC 3164, section 4.1.1).
    if line.facility == Some(0) && line.program.is_empty() {
        line.program = "kernel".to_owned();
    }
    line
}

/// Parses `<PRI>`, without leading zeros.
fn priority(text: &str) -> Option<(u8, &str)> {
    let (digits, rest) = text.strip_prefix('<')?.split_once('>')?;
    let usual = digits.len() <= 3 && digits.bytes().all(|b| b.is_ascii_digit());
    let priority = digits.parse().ok().filter(|_| usual)?;
    (priority <= MAX_PRIORITY).then_some((priority, rest))
}

/// Parses a message without a priority: netconsole's two forms, or any text.
fn unmarked(text: &str) -> Line {
    let kernel = |severity, text| Line {
        severity,
        facility: Some(0),
        program: "kernel".to_owned(),
        text: clean(text, MAX_TEXT),
        ..Line::default()
    };
    if let Some((head, rest)) = text.split_once(';') {
        let fields: Vec<&str> = head.split(',').collect();
        let number = |text: &&str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        // Level and facility in one number, sequence, microseconds, flags, and optional fields.
        if fields.len() >= 4 && fields[..3].iter().all(number) {
            let level = fields[0].parse::<u16>().unwrap_or(6) & 7;
            return kernel(Some(Severity::of(level as u8)), rest);
        }
    }
    if text.starts_with('[') && time_since_boot(text) {
        return kernel(None, text);
    }
    Line { text: clean(text, MAX_TEXT), ..Line::default() }
}

/// Returns true if the text begins like a kernel's line: `[    1.234567] `.
fn time_since_boot(text: &str) -> bool {
    let stamp = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    stamp.is_some_and(|(stamp, _)| stamp.trim().parse::<f64>().is_ok())
}

/// Parses the part of an RFC 5424 message after the version.
fn structured(rest: &str) -> Option<Line> {
    let mut rest = rest;
    let mut field = || {
        let (field, behind) = rest.split_once(' ')?;
        rest = behind;
        // A dash means that the field has no value.
        Some(if field == "-" { String::new() } else { clean(field, MAX_NAME) })
    };
    let (time, host, program, process) = (field()?, field()?, field()?, field()?);
    field()?;
    let text = match rest.strip_prefix('-') {
        Some(text) => text,
        None => behind_elements(rest)?,
    };
    let text = text.trim_start_matches([' ', '\u{feff}']);
    let text = clean(text, MAX_TEXT);
    Some(Line { time, host, program, process, text, ..Line::default() })
}

/// Returns the text after the structured data, `[id name="value"]`, one or more. A bracket inside a
/// quoted value does not end the data. `None`: the data are missing or do not end.
fn behind_elements(text: &str) -> Option<&str> {
    let (mut inside, mut quoted, mut escaped) = (false, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' if inside => quoted = !quoted,
            '[' if !inside => inside = true,
            ']' if inside && !quoted => inside = false,
            _ if inside => {}
            _ => return text.get(at..).filter(|_| at > 0),
        }
    }
    (!inside && !text.is_empty()).then_some("")
}

/// Parses the part of an RFC 3164 message after the priority.
fn traditional(rest: &str) -> Line {
    let (time, rest) = time(rest);
    let mut line = Line { time: clean(time, MAX_NAME), ..Line::default() };
    if let Some(Tag { program, process, text }) = tag(rest) {
        (line.program, line.process) = (clean(program, MAX_NAME), clean(process, MAX_NAME));
        line.text = clean(text, MAX_TEXT);
        return line;
    }
    let (host, behind) = rest.split_once(' ').unwrap_or((rest, ""));
    match tag(behind) {
        Some(Tag { program, process, text }) => {
            line.host = clean(host, MAX_NAME);
            (line.program, line.process) = (clean(program, MAX_NAME), clean(process, MAX_NAME));
            line.text = clean(text, MAX_TEXT);
        }
        // Behind a time, a host name follows (RFC 3164). Without a time it may be any word.
        None if !time.is_empty() => {
            line.host = clean(host, MAX_NAME);
            line.text = clean(behind, MAX_TEXT);
        }
        None => line.text = clean(rest, MAX_TEXT),
    }
    line
}

/// Splits off `Oct 11 22:14:15 ` or `2003-10-11T22:14:15Z ` from the start of the text.
fn time(text: &str) -> (&str, &str) {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    if let (Some(stamp), Some(rest)) = (text.get(..15), text.get(15..)) {
        let month = stamp.get(..3).and_then(|month| MONTHS.find(month));
        let shape =
            stamp.bytes().zip(*b"Mmm dd hh:mm:ss").skip(3).all(|(got, wanted)| match wanted {
                b' ' | b':' => got == wanted,
                _ => got.is_ascii_digit() || got == b' ',
            });
        if month.is_some_and(|at| at % 3 == 0) && shape {
            return (stamp, rest.trim_start());
        }
    }
    match text.split_once(' ') {
        Some((stamp, rest)) if is_rfc3339(stamp) => (stamp, rest.trim_start()),
        _ => ("", text),
    }
}

fn is_rfc3339(stamp: &str) -> bool {
    let bytes = stamp.as_bytes();
    (19..=35).contains(&bytes.len())
        && bytes.iter().zip(*b"dddd-dd-ddTdd:dd:dd").all(|(got, wanted)| match wanted {
            b'd' => got.is_ascii_digit(),
            _ => *got == wanted,
        })
}

/// Sender of a message and its text (RFC 3164 section 4.1.3).
struct Tag<'a> {
    program: &'a str,
    process: &'a str,
    text: &'a str,
}

/// Parses `program: text` or `program[process]: text`.
fn tag(text: &str) -> Option<Tag<'_>> {
    let (tag, rest) = text.split_once(':')?;
    // `docker/web[12]:` is a tag; `http://host` and `usb 1-1: new device` are not.
    if tag.is_empty() || tag.contains(char::is_whitespace) || tag.contains('<') {
        return None;
    }
    if !(rest.is_empty() || rest.starts_with(char::is_whitespace)) || tag.len() > MAX_NAME {
        return None;
    }
    let (program, process) = match tag.strip_suffix(']').and_then(|tag| tag.split_once('[')) {
        Some((program, process)) if !program.is_empty() => (program, process),
        _ if tag.contains(['[', ']']) => return None,
        _ => (tag, ""),
    };
    Some(Tag { program, process, text: rest.trim_start() })
}

/// Returns text for a screen, at most `limit` bytes. Characters that could move the cursor or hide
/// other text become spaces.
fn clean(text: &str, limit: usize) -> String {
    let mut kept = String::with_capacity(text.len().min(limit));
    for c in text.trim_end().chars() {
        let hides = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2028}' | '\u{2029}' | '\u{2066}'..='\u{2069}');
        let c = if c.is_control() || hides { ' ' } else { c };
        if kept.len() + c.len_utf8() > limit {
            break;
        }
        kept.push(c);
    }
    kept
}

#[cfg(test)]
mod tests;
