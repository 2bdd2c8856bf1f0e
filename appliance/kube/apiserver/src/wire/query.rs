//! Parser of Kubernetes clients' query strings: leading `&`, repeated keys, `watch=1`.

use std::time::Duration;

use percent_encoding::percent_decode_str;
use schema::FieldError;
use serde_json::{Map, Value, json};

use resources::engine::{
    FieldValidation, InitialEvents, ListOptions, MAX_MANAGER, Part, RevisionMatch, Strictness,
    WatchOptions, WriteOptions,
};
use resources::{FieldSelector, LabelSelector, StatusError};

/// Maximum parameters in one query; more parameters get 400.
pub const MAX_PARAMETERS: usize = 128;

/// Parsed query string: names and values in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Parses a query string without its question mark.
    pub fn parse(text: &str) -> Result<Self, StatusError> {
        let mut pairs = Vec::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            pairs.push((decode(key)?, decode(value)?));
            if pairs.len() > MAX_PARAMETERS {
                return Err(StatusError::bad_request("the query has too many parameters"));
            }
        }
        Ok(Self(pairs))
    }

    /// Returns the first value of `key` that is not empty; `None` if there is none.
    pub fn get(&self, key: &str) -> Option<&str> {
        let mut found = self.0.iter().filter(|(name, value)| name == key && !value.is_empty());
        found.next().map(|(_, value)| value.as_str())
    }

    /// Returns true if `key` is set and neither `0` nor `false`; `?watch` alone counts as true.
    pub fn flag(&self, key: &str) -> bool {
        let mut found = self.0.iter().filter(|(name, _)| name == key);
        found.next().is_some_and(|(_, value)| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// Returns every value of `key`, empty ones included.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Returns the value of `key` as an integer; `None` if unset or negative.
    fn number(&self, key: &str) -> Result<Option<u64>, StatusError> {
        let Some(text) = self.get(key) else { return Ok(None) };
        let number: i64 = text.parse().map_err(|_| {
            let why = format!("strconv.ParseInt: parsing {text:?}: invalid syntax");
            StatusError::bad_request(why)
        })?;
        Ok(u64::try_from(number).ok())
    }

    fn revision(&self) -> Result<Option<u64>, StatusError> {
        let Some(text) = self.get("resourceVersion") else { return Ok(None) };
        text.parse().map(Some).map_err(|_| {
            StatusError::bad_request(format!(
                "invalid resource version: resourceVersion: Invalid value: {text:?}: \
                 strconv.ParseUint: parsing {text:?}: invalid syntax"
            ))
        })
    }

    fn labels(&self) -> Result<LabelSelector, StatusError> {
        LabelSelector::parse(self.get("labelSelector").unwrap_or_default())
    }

    fn fields(&self) -> Result<FieldSelector, StatusError> {
        FieldSelector::parse(self.get("fieldSelector").unwrap_or_default())
    }

    /// Returns the requested duration of a watch: `timeoutSeconds`, otherwise `timeout` in Go's
    /// syntax (`30s`). `None` if neither is set.
    pub fn timeout(&self) -> Result<Option<Duration>, StatusError> {
        if let Some(seconds) = self.number("timeoutSeconds")?.filter(|seconds| *seconds > 0) {
            return Ok(Some(Duration::from_secs(seconds)));
        }
        let Some(text) = self.get("timeout") else { return Ok(None) };
        let length = go_duration(text).ok_or_else(|| {
            StatusError::bad_request(format!(
                "invalid timeout specified in the request URL - time: invalid duration {text:?}"
            ))
        })?;
        Ok(Some(length).filter(|length| !length.is_zero()))
    }

    /// Parses the options of a list.
    pub fn list(&self) -> Result<ListOptions, StatusError> {
        let (labels, fields) = (self.labels()?, self.fields()?);
        let limit = usize::try_from(self.number("limit")?.unwrap_or(0)).unwrap_or(usize::MAX);
        let continue_token = self.get("continue").map(str::to_owned);
        let matching = self.get("resourceVersionMatch");
        let mut errors = Vec::new();
        if let Some(matching) = matching {
            if self.get("resourceVersion").is_none() {
                errors.push(match_error("is forbidden unless resourceVersion is provided"));
            }
            if continue_token.is_some() {
                errors.push(match_error("is forbidden when continue is provided"));
            }
            if !["Exact", "NotOlderThan"].contains(&matching) {
                let (value, known) = (json!(matching), ["Exact", "NotOlderThan", ""]);
                errors.push(FieldError::not_supported("resourceVersionMatch", &value, &known));
            }
            if matching == "Exact" && self.get("resourceVersion") == Some("0") {
                errors.push(match_error("\"exact\" is forbidden for resourceVersion \"0\""));
            }
        }
        if self.set("sendInitialEvents") {
            let why = "sendInitialEvents is forbidden for list";
            errors.push(FieldError::forbidden("sendInitialEvents", why));
        }
        refuse("ListOptions", &errors)?;
        // A token contains its own revision.
        let asked = if continue_token.is_some() { None } else { self.revision()? };
        let revision = match (matching, asked) {
            (_, None | Some(0)) => RevisionMatch::Newest,
            (Some("Exact"), Some(revision)) => RevisionMatch::Exact(revision),
            // Pages of a revision are always of exactly that revision.
            (None, Some(revision)) if limit > 0 => RevisionMatch::Exact(revision),
            (_, Some(revision)) => RevisionMatch::NotOlderThan(revision),
        };
        Ok(ListOptions { labels, fields, limit, continue_token, revision })
    }

    /// Parses the options of a watch.
    pub fn watch(&self) -> Result<WatchOptions, StatusError> {
        let (labels, fields) = (self.labels()?, self.fields()?);
        let matching = self.get("resourceVersionMatch");
        let streaming = self.set("sendInitialEvents").then(|| self.flag("sendInitialEvents"));
        let mut errors = Vec::new();
        if streaming.is_some() && matching != Some("NotOlderThan") {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            errors.push(FieldError::forbidden("resourceVersionMatch", why));
        }
        if let Some(matching) = matching {
            if streaming.is_none() {
                let why = "is forbidden for watch unless sendInitialEvents is provided";
                errors.push(match_error(why));
            }
            if matching != "NotOlderThan" {
                let (value, known) = (json!(matching), ["NotOlderThan"]);
                errors.push(FieldError::not_supported("resourceVersionMatch", &value, &known));
            }
            if self.get("continue").is_some() {
                errors.push(match_error("is forbidden when continue is provided"));
            }
        }
        refuse("ListOptions", &errors)?;
        Ok(WatchOptions {
            labels,
            fields,
            after: self.revision()?.filter(|revision| *revision > 0),
            initial: match streaming {
                None => InitialEvents::Usual,
                Some(true) => InitialEvents::Send,
                Some(false) => InitialEvents::Skip,
            },
            bookmarks: self.flag("allowWatchBookmarks"),
        })
    }

    /// Parses the options of a write; `kind` is the options kind of the verb, such as
    /// `CreateOptions`.
    pub fn write(&self, part: Part, kind: &str) -> Result<WriteOptions, StatusError> {
        let values: Vec<&str> = self.all("dryRun").filter(|value| !value.is_empty()).collect();
        let mut errors: Vec<FieldError> = dry_run_error(&values).into_iter().collect();
        check_manager(self.get("fieldManager").unwrap_or_default(), &mut errors);
        let strictness = match self.get("fieldValidation").unwrap_or_default() {
            "" | "Warn" => Strictness::Warn,
            "Ignore" => Strictness::Ignore,
            "Strict" => Strictness::Strict,
            other => {
                let known = ["", "Ignore", "Strict", "Warn"];
                let error = FieldError::not_supported("fieldValidation", &json!(other), &known);
                errors.push(error);
                Strictness::Strict
            }
        };
        refuse(kind, &errors)?;
        let fields = FieldValidation { strictness, ..FieldValidation::default() };
        let dry_run = !values.is_empty();
        Ok(WriteOptions { part, dry_run, fields, ..WriteOptions::default() })
    }

    /// Returns the flag `force`: an apply takes over fields of other managers. 422 for an apply
    /// without `fieldManager`, and for another patch with `force`.
    pub fn force(&self, is_apply: bool) -> Result<bool, StatusError> {
        let error = match is_apply {
            true if self.get("fieldManager").is_none() => {
                FieldError::required("fieldManager", "is required for apply patch")
            }
            false if self.get("force").is_some() => {
                FieldError::forbidden("force", "may not be specified for non-apply patch")
            }
            _ => return Ok(self.flag("force")),
        };
        Err(StatusError::invalid_options("PatchOptions", &[error]))
    }

    /// Returns the query of a DELETE as `DeleteOptions`, for a request without a body.
    pub fn delete(&self) -> Result<Value, StatusError> {
        let mut options = Map::new();
        let dry: Vec<&str> = self.all("dryRun").filter(|value| !value.is_empty()).collect();
        if !dry.is_empty() {
            options.insert("dryRun".to_owned(), json!(dry));
        }
        if let Some(policy) = self.get("propagationPolicy") {
            options.insert("propagationPolicy".to_owned(), json!(policy));
        }
        if self.set("orphanDependents") {
            options.insert("orphanDependents".to_owned(), json!(self.flag("orphanDependents")));
        }
        if let Some(seconds) = self.number("gracePeriodSeconds")? {
            options.insert("gracePeriodSeconds".to_owned(), json!(seconds));
        }
        Ok(Value::Object(options))
    }

    fn set(&self, key: &str) -> bool {
        self.all(key).next().is_some()
    }
}

fn match_error(why: &str) -> FieldError {
    FieldError::forbidden("resourceVersionMatch", format!("resourceVersionMatch {why}"))
}

/// Returns 422 for invalid options of the kind `kind`; success if `errors` is empty.
pub fn refuse(kind: &str, errors: &[FieldError]) -> Result<(), StatusError> {
    if errors.is_empty() { Ok(()) } else { Err(StatusError::invalid_options(kind, errors)) }
}

/// Returns an error if a value of `dryRun` is not `All`.
pub fn dry_run_error(values: &[&str]) -> Option<FieldError> {
    let known = values.iter().all(|value| *value == "All");
    (!known).then(|| FieldError::not_supported("dryRun", &json!(values), &["All"]))
}

/// Checks length and characters of a field manager's name.
fn check_manager(manager: &str, errors: &mut Vec<FieldError>) {
    if manager.len() > MAX_MANAGER {
        errors.push(FieldError::too_long("fieldManager", MAX_MANAGER));
    }
    for (at, character) in manager.char_indices().filter(|(_, one)| !is_printable(*one)) {
        let code = u32::from(character);
        let why = format!("invalid character U+{code:04X} (at position {at})");
        errors.push(FieldError::invalid("fieldManager", &json!(manager), why));
    }
}

fn is_printable(character: char) -> bool {
    character == ' ' || !(character.is_control() || character.is_whitespace())
}

/// Parses a duration in Go's format, such as `1h30m`, `1.5s` or `0`; zero if negative, `None` if
/// invalid.
fn go_duration(text: &str) -> Option<Duration> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut seconds = 0.0_f64;
    while !rest.is_empty() {
        let digits = rest.find(|one: char| !(one.is_ascii_digit() || one == '.'))?;
        let (number, tail) = rest.split_at(digits);
        let end = tail.find(|one: char| one.is_ascii_digit() || one == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let scale = match unit {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * scale;
        rest = tail;
    }
    if negative { Some(Duration::ZERO) } else { Duration::try_from_secs_f64(seconds).ok() }
}

fn decode(text: &str) -> Result<String, StatusError> {
    let spaced = text.replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8();
    decoded
        .map(std::borrow::Cow::into_owned)
        .map_err(|_| StatusError::bad_request("the query is not UTF-8"))
}

#[cfg(test)]
mod tests;
