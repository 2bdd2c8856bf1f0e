//! An action's settings, read with a sentence for each mistake.

use std::path::PathBuf;

use crate::Error;

/// The `KEY=value` list of one action.
pub(super) struct Environment<'a> {
    action: &'static str,
    list: &'a [String],
}

impl<'a> Environment<'a> {
    pub(super) fn new(action: &'static str, list: &'a [String]) -> Self {
        Self { action, list }
    }

    /// The value of `name`; an empty one counts as absent. The last of several wins.
    pub(super) fn optional(&self, name: &str) -> Option<&'a str> {
        let value = self.list.iter().rev().find_map(|entry| {
            let (key, value) = entry.split_once('=')?;
            (key == name).then_some(value)
        });
        value.filter(|value| !value.is_empty())
    }

    pub(super) fn required(&self, name: &'static str) -> Result<&'a str, Error> {
        self.optional(name).ok_or(Error::MissingSetting { action: self.action, name })
    }

    pub(super) fn bad(&self, name: &'static str, reason: impl Into<String>) -> Error {
        Error::BadSetting { action: self.action, name, reason: reason.into() }
    }

    /// An absolute path under `/dev`.
    pub(super) fn device(&self, name: &'static str) -> Result<PathBuf, Error> {
        let value = self.required(name)?;
        if value.starts_with('/') {
            Ok(PathBuf::from(value))
        } else {
            Err(self.bad(name, format!("{value:?} is not an absolute path such as /dev/sda")))
        }
    }

    /// `true` or `false` as Go's ParseBool spells them; absent is false.
    pub(super) fn flag(&self, name: &'static str) -> Result<bool, Error> {
        match self.optional(name).unwrap_or("false") {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
            other => Err(self.bad(name, format!("{other:?} is neither true nor false"))),
        }
    }

    /// A user or group id in decimal.
    pub(super) fn id(&self, name: &'static str) -> Result<u32, Error> {
        let value = self.optional(name).unwrap_or("0");
        value.parse().map_err(|_| self.bad(name, format!("{value:?} is not a number")))
    }

    /// Permission bits in octal, with or without a leading zero.
    pub(super) fn mode(&self, name: &'static str, default: u32) -> Result<u32, Error> {
        let Some(value) = self.optional(name) else { return Ok(default) };
        u32::from_str_radix(value, 8)
            .ok()
            .filter(|mode| *mode <= 0o7777)
            .ok_or_else(|| self.bad(name, format!("{value:?} is not an octal mode such as 0644")))
    }
}
