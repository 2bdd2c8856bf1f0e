//! Parser of the headers `Accept` and `Accept-Encoding`: response formats that a client accepts.

use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_ENCODING};

use resources::{Reason, StatusError};

/// Clause of an Accept header; absent parameters are empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Clause<'a> {
    /// Media type without parameters.
    pub media: &'a str,
    /// Parameter `as`: kind to which the response is converted, such as `Table`.
    pub form: &'a str,
    /// Parameter `g`: API group of the kind in `as`.
    pub group: &'a str,
    /// Parameter `v`: API version of the kind in `as`.
    pub version: &'a str,
}

impl<'a> Clause<'a> {
    /// Parses a clause; parameters other than `as`, `g` and `v` are ignored.
    pub fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let mut clause = Self { media: parts.next().unwrap_or_default(), ..Self::default() };
        for part in parts {
            match part.split_once('=') {
                Some(("as", value)) => clause.form = value,
                Some(("g", value)) => clause.group = value,
                Some(("v", value)) => clause.version = value,
                _ => {}
            }
        }
        clause
    }

    /// Returns true if the clause accepts a response in JSON, or in YAML, which is made from JSON.
    pub fn is_served(&self) -> bool {
        self.is_json() || self.is_yaml()
    }

    /// Returns true if the clause requests YAML.
    pub fn is_yaml(&self) -> bool {
        self.media == "application/yaml"
    }

    /// Returns true if the clause accepts a response in JSON.
    pub fn is_json(&self) -> bool {
        matches!(self.media, "application/json" | "application/*" | "*/*")
    }
}

/// Returns the clauses of all Accept headers, in order. No clause means any format.
pub fn clauses(headers: &HeaderMap) -> impl Iterator<Item = Clause<'_>> {
    headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter(|clause| !clause.trim().is_empty())
        .map(Clause::parse)
}

/// Returns true if the first clause that can be served requests YAML.
pub fn prefers_yaml(headers: &HeaderMap) -> bool {
    clauses(headers).find(Clause::is_served).is_some_and(|clause| clause.is_yaml())
}

/// Checks that the client accepts plain JSON or YAML.
///
/// # Errors
/// 406 if clauses exist and none accepts plain JSON or YAML.
pub fn takes_plain(headers: &HeaderMap) -> Result<(), StatusError> {
    let mut all = clauses(headers).peekable();
    if all.peek().is_none() || all.any(|clause| clause.is_served() && clause.form.is_empty()) {
        return Ok(());
    }
    Err(StatusError::new(
        Reason::NotAcceptable,
        "only the following media types are accepted: application/json, application/yaml",
    ))
}

/// Returns true if `Accept-Encoding` contains gzip with a quality other than zero.
pub fn takes_gzip(headers: &HeaderMap) -> bool {
    let taken = headers.get_all(ACCEPT_ENCODING).iter();
    taken.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(|one| {
        let mut parts = one.split(';').map(str::trim);
        let gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let none = parts.next().and_then(|quality| quality.strip_prefix("q="));
        gzip && none.and_then(|quality| quality.parse::<f32>().ok()) != Some(0.0)
    })
}
