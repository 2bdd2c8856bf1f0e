//! What forms of an answer a client takes.

use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_ENCODING};

use resources::{Reason, StatusError};

/// One clause of an Accept header; what it leaves out is empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Clause<'a> {
    /// The media type.
    pub media: &'a str,
    /// `as`: the kind the answer is to be turned into.
    pub form: &'a str,
    /// `g`: that kind's group.
    pub group: &'a str,
    /// `v`: that kind's version.
    pub version: &'a str,
}

impl<'a> Clause<'a> {
    /// Reads a clause; parameters that mean nothing here are left out.
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

    /// Whether an answer in JSON, or in YAML, which is made of it, is one the clause takes.
    pub fn is_served(&self) -> bool {
        self.is_json() || self.is_yaml()
    }

    /// Whether the clause asks for YAML.
    pub fn is_yaml(&self) -> bool {
        self.media == "application/yaml"
    }

    /// Whether an answer in JSON is one the clause takes.
    pub fn is_json(&self) -> bool {
        matches!(self.media, "application/json" | "application/*" | "*/*")
    }
}

/// Every clause, in order; none means that anything will do.
pub fn clauses(headers: &HeaderMap) -> impl Iterator<Item = Clause<'_>> {
    headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter(|clause| !clause.trim().is_empty())
        .map(Clause::parse)
}

/// Whether the first clause that can be served asks for YAML.
pub fn prefers_yaml(headers: &HeaderMap) -> bool {
    clauses(headers).find(Clause::is_served).is_some_and(|clause| clause.is_yaml())
}

/// That the client takes plain JSON or YAML.
///
/// # Errors
/// 406 when no clause does.
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

/// Whether the client takes gzip; a quality of nought is a no.
pub fn takes_gzip(headers: &HeaderMap) -> bool {
    let taken = headers.get_all(ACCEPT_ENCODING).iter();
    taken.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(|one| {
        let mut parts = one.split(';').map(str::trim);
        let gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let none = parts.next().and_then(|quality| quality.strip_prefix("q="));
        gzip && none.and_then(|quality| quality.parse::<f32>().ok()) != Some(0.0)
    })
}
