//! MIME archive of two inputs of cloud-init (RFC 2046, section 5.1).
//!
//! cloud-init converts an archive with Python's `email` package, which preserves a part exactly
//! only if the part is ASCII text with the line end LF. Other parts are encoded in base64.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::InstallError;

/// First line of an input of cloud-init and its content type. A line that begins with another line
/// of the table stands before it.
const TYPES: [(&str, &str); 9] = [
    ("## template: jinja", "text/jinja2"),
    ("#cloud-config-archive", "text/cloud-config-archive"),
    ("#cloud-config-jsonp", "text/cloud-config-jsonp"),
    ("#cloud-config", CLOUD_CONFIG),
    ("#cloud-boothook", "text/cloud-boothook"),
    ("#part-handler", "text/part-handler"),
    ("#include-once", "text/x-include-once-url"),
    ("#include", "text/x-include-url"),
    ("#!", "text/x-shellscript"),
];
const CLOUD_CONFIG: &str = "text/cloud-config";
/// Content types that cloud-init merges with earlier parts.
const MERGED: [&str; 2] = [CLOUD_CONFIG, "text/jinja2"];
/// Headers with which a MIME archive may begin, in lower case.
const ARCHIVE: [&str; 2] = ["content-type:", "mime-version:"];

/// Merge rule for a later `#cloud-config`: lists are appended, and keys of earlier parts stay.
/// Without this header, `write_files` of the user data would replace `write_files` of the bootstrap
/// data, and the machine would never join its cluster. `merge_how` in the part takes precedence.
const MERGE_TYPE: &str = "list(append)+dict(no_replace,recurse_list)+str()";

/// Beginning of a boundary; a number with [`BOUNDARY_DIGITS`] digits follows.
const BOUNDARY: &str = "tinbox-part-";
const BOUNDARY_DIGITS: usize = 8;
/// Length in characters of an encoded line (RFC 2045, section 6.8).
const ENCODED_LINE: usize = 76;

/// Returns a MIME archive with bootstrap data and user data. The result depends only on the
/// arguments.
///
/// # Errors
/// The content type of a part is unknown ([`InstallError::PartUnknown`]).
pub fn merge(bootstrap: &str, user: &str) -> Result<String, InstallError> {
    let first =
        part(bootstrap, false).ok_or(InstallError::PartUnknown { what: "bootstrap data" })?;
    let second = part(user, true).ok_or(InstallError::PartUnknown { what: "user data" })?;
    let boundary = boundary(&[&first, &second]);
    Ok(format!(
        "Content-Type: multipart/mixed; boundary=\"{boundary}\"\nMIME-Version: 1.0\n\n\
         --{boundary}\n{first}\n--{boundary}\n{second}\n--{boundary}--\n"
    ))
}

/// Returns the headers and the body of a part; `None` if the content type is unknown. A MIME
/// archive is a part with its own headers.
fn part(text: &str, is_later: bool) -> Option<String> {
    let start = text.trim_start().as_bytes();
    let begins = |with: &str| {
        start.get(..with.len()).is_some_and(|it| it.eq_ignore_ascii_case(with.as_bytes()))
    };
    if ARCHIVE.iter().any(|header| begins(header)) {
        return Some(text.trim_start().to_owned());
    }
    let (_, kind) = TYPES.iter().find(|(line, _)| begins(line))?;
    let mut part = format!("Content-Type: {kind}; charset=\"utf-8\"\nMIME-Version: 1.0\n");
    if is_later && MERGED.contains(kind) {
        part.push_str(&format!("Merge-Type: {MERGE_TYPE}\n"));
    }
    if text.is_ascii() && !text.contains('\r') {
        part.push_str("Content-Transfer-Encoding: 7bit\n\n");
        part.push_str(text);
    } else {
        part.push_str("Content-Transfer-Encoding: base64\n");
        let encoded = STANDARD.encode(text);
        for line in encoded.as_bytes().chunks(ENCODED_LINE) {
            part.push('\n');
            part.extend(line.iter().map(|byte| char::from(*byte)));
        }
    }
    Some(part)
}

/// Returns the boundary with the lowest number that no part contains.
fn boundary(parts: &[&str]) -> String {
    let after = |part: &str, at: usize| -> Option<usize> {
        part.get(at + BOUNDARY.len()..)?.get(..BOUNDARY_DIGITS)?.parse().ok()
    };
    let taken: BTreeSet<usize> = parts
        .iter()
        .flat_map(|part| part.match_indices(BOUNDARY).filter_map(|(at, _)| after(part, at)))
        .collect();
    let free = (0..).find(|number| !taken.contains(number)).unwrap_or_default();
    format!("{BOUNDARY}{free:0BOUNDARY_DIGITS$}")
}

#[cfg(test)]
mod tests;
