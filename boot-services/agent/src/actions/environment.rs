//! Settings of an action: parses environment variables, with an error for each kind of mistake.

use std::path::PathBuf;

use imaging::select::Selector;
use imaging::stream::Checksum;

use crate::Error;

/// Maximum timeout in minutes: a week.
const MINUTES_MAX: u64 = 7 * 24 * 60;

/// Maximum number of variable names in an error.
const NAMES_MAX: usize = 20;

/// Environment variables of one action, `KEY=value`.
pub(super) struct Environment<'a> {
    action: &'static str,
    list: &'a [String],
}

impl<'a> Environment<'a> {
    pub(super) fn new(action: &'static str, list: &'a [String]) -> Self {
        Self { action, list }
    }

    /// Returns the value of `name`; `None` if missing or empty. The last of several values counts.
    pub(super) fn optional(&self, name: &str) -> Option<&'a str> {
        let value = self.list.iter().rev().find_map(|entry| {
            let (key, value) = entry.split_once('=')?;
            (key == name).then_some(value)
        });
        value.filter(|value| !value.is_empty())
    }

    /// Returns all variables, for the environment of a program. Omits names that are empty and
    /// values with a NUL.
    pub(super) fn pairs(&self) -> Vec<(String, String)> {
        let pairs = self.list.iter().filter_map(|entry| entry.split_once('='));
        let whole = pairs.filter(|(name, value)| !name.is_empty() && !value.contains('\0'));
        whole.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    pub(super) fn required(&self, name: &'static str) -> Result<&'a str, Error> {
        self.optional(name).ok_or_else(|| self.missing(name))
    }

    /// Returns the value of `name`; may be empty. A missing variable is an error.
    pub(super) fn present(&self, name: &'static str) -> Result<&'a str, Error> {
        let is_there = |entry: &&String| entry.split_once('=').is_some_and(|(key, _)| key == name);
        let is_there = self.list.iter().any(|entry| is_there(&entry));
        is_there.then(|| self.optional(name).unwrap_or_default()).ok_or_else(|| self.missing(name))
    }

    fn missing(&self, name: &'static str) -> Error {
        let names = self.list.iter().map(|entry| entry.split('=').next().unwrap_or_default());
        let given = names.take(NAMES_MAX).collect::<Vec<_>>().join(", ");
        Error::MissingSetting { action: self.action, name, given }
    }

    pub(super) fn bad(&self, name: &'static str, reason: impl Into<String>) -> Error {
        Error::BadSetting { action: self.action, name, reason: reason.into() }
    }

    /// Returns the value of `name`, which must be a device path or a disk selector.
    pub(super) fn device(&self, name: &'static str) -> Result<PathBuf, Error> {
        let value = self.required(name)?;
        match Selector::parse(value) {
            Ok(_) => Ok(PathBuf::from(value)),
            Err(reason) => Err(self.bad(name, reason)),
        }
    }

    /// Parses a boolean as Go's ParseBool does. A missing variable is false.
    pub(super) fn flag(&self, name: &'static str) -> Result<bool, Error> {
        match self.optional(name).unwrap_or("false") {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
            other => Err(self.bad(name, format!("{other:?} is not true or false"))),
        }
    }

    /// Parses a number of minutes, 1 to [`MINUTES_MAX`]; `None` if missing.
    pub(super) fn minutes(&self, name: &'static str) -> Result<Option<u64>, Error> {
        let Some(value) = self.optional(name) else { return Ok(None) };
        let minutes = value.parse().ok().filter(|minutes| (1..=MINUTES_MAX).contains(minutes));
        let bad = || self.bad(name, format!("{value:?} is not a number of minutes"));
        minutes.map(Some).ok_or_else(bad)
    }

    /// Parses a checksum, `algorithm:hex`.
    pub(super) fn checksum(&self, name: &'static str, text: &str) -> Result<Checksum, Error> {
        text.parse().map_err(|()| {
            let reason = "it is not sha256:, sha512: or md5: and that many hexadecimal digits";
            self.bad(name, reason)
        })
    }

    /// Parses a decimal user or group id. A missing variable is 0.
    pub(super) fn id(&self, name: &'static str) -> Result<u32, Error> {
        let value = self.optional(name).unwrap_or("0");
        value.parse().map_err(|_| self.bad(name, format!("{value:?} is not a number")))
    }

    /// Parses octal permission bits, at most 7777. A missing variable is `default`.
    pub(super) fn mode(&self, name: &'static str, default: u32) -> Result<u32, Error> {
        let Some(value) = self.optional(name) else { return Ok(default) };
        u32::from_str_radix(value, 8)
            .ok()
            .filter(|mode| *mode <= 0o7777)
            .ok_or_else(|| self.bad(name, format!("{value:?} is not an octal mode such as 0644")))
    }
}
