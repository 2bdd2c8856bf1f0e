//! Parses the head of a request for a file without copying.
//!
//! hyper, which implements all of HTTP, handles all other requests: other methods and versions,
//! bodies, upgrades, malformed heads and repeated fields. A head that announces a body is never
//! handled here, so a body cannot be mistaken for the next request (RFC 9112 section 6.3).

use std::borrow::Cow;
use std::str;

use percent_encoding::percent_decode_str;

use super::content::Conditions;
use super::holes;

/// Maximum bytes of a request's head that is parsed here; hyper handles longer heads.
pub const MAX_HEAD: usize = 16 << 10;
/// Maximum header fields that are parsed here.
const MAX_FIELDS: usize = 64;

/// Result of parsing the first bytes of a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// Incomplete head; more bytes are needed.
    Partial,
    /// Request that may be for a file.
    Request(Head<'a>),
    /// Request that hyper must handle.
    Other,
}

/// GET or HEAD request without a body.
#[derive(Debug, PartialEq, Eq)]
pub struct Head<'a> {
    /// Percent-decoded path, without the query.
    pub path: Cow<'a, str>,
    /// True for GET, false for HEAD.
    pub wants_body: bool,
    /// True unless the client sent `Connection: close`.
    pub keep_alive: bool,
    /// True if the client requests the file's holes (`tinbox-holes: ?1`).
    pub wants_holes: bool,
    /// Conditional and range fields of the request.
    pub conditions: Conditions<'a>,
    /// Length of the head in bytes, its empty line included.
    pub length: usize,
}

/// Parses the start of the bytes that a client sent.
pub fn parse(bytes: &[u8]) -> Parsed<'_> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(bytes) {
        Ok(httparse::Status::Partial) if bytes.len() < MAX_HEAD => Parsed::Partial,
        Ok(httparse::Status::Complete(length)) => {
            read(&request, length).map_or(Parsed::Other, Parsed::Request)
        }
        Ok(httparse::Status::Partial) | Err(_) => Parsed::Other,
    }
}

fn read<'a>(request: &httparse::Request<'_, 'a>, length: usize) -> Option<Head<'a>> {
    let wants_body = match request.method? {
        "GET" => true,
        "HEAD" => false,
        _ => return None,
    };
    if request.version != Some(1) {
        return None;
    }
    let path = path(request.path?)?;
    let mut head = Head {
        path,
        wants_body,
        keep_alive: true,
        wants_holes: false,
        conditions: Conditions::default(),
        length,
    };
    let mut host = None;
    for field in request.headers.iter() {
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        let bodily = ["content-length", "transfer-encoding", "expect", "upgrade", "trailer"];
        if bodily.into_iter().any(is) {
            return None;
        }
        let slot = if is("host") {
            &mut host
        } else if is("range") {
            &mut head.conditions.range
        } else if is("if-range") {
            &mut head.conditions.if_range
        } else if is("if-none-match") {
            &mut head.conditions.if_none_match
        } else {
            if is("connection") {
                head.keep_alive &= !says_close(field.value);
            } else if is(holes::FIELD.as_str()) {
                head.wants_holes = field.value == holes::ASK;
            }
            continue;
        };
        if slot.replace(str::from_utf8(field.value).ok()?).is_some() {
            return None;
        }
    }
    host.map(|_| head)
}

/// Returns the path of a target in origin form (`/a?b`) or absolute form (`http://box/a?b`), RFC
/// 9112 section 3.2.
fn path(target: &str) -> Option<Cow<'_, str>> {
    let target = match target.split_once("://") {
        Some(("http" | "https", rest)) => &rest[rest.find('/').unwrap_or(rest.len())..],
        _ => target,
    };
    let path = target.split(['?', '#']).next().unwrap_or_default();
    if !path.starts_with('/') {
        return None;
    }
    percent_decode_str(path).decode_utf8().ok()
}

fn says_close(value: &[u8]) -> bool {
    value.split(|byte| *byte == b',').any(|word| word.trim_ascii().eq_ignore_ascii_case(b"close"))
}

#[cfg(test)]
mod tests;
