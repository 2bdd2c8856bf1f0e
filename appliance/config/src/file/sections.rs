//! Renamed sections of `box.toml`. Files with the older name stay valid.

use std::borrow::Cow;

/// Current and older name of each renamed section. Each older name is also an alias of its field in
/// [`Config`](crate::Config).
const RENAMED: [(&str, &str); 1] = [("update", "upgrade")];

/// Returns a key with the current name of its section: `update.hold` for `upgrade.hold`.
pub fn current(key: &str) -> Cow<'_, str> {
    key_in(key, |_| false)
}

/// Returns a key with the name that its section has in a file: the older name if the file has that
/// section, else the current name. `has` returns true for a section of the file.
pub fn key_in(key: &str, has: impl Fn(&str) -> bool) -> Cow<'_, str> {
    let end = key.find(['.', '[']).unwrap_or(key.len());
    let (name, rest) = key.split_at(end);
    let renamed = RENAMED.iter().find(|(current, older)| name == *current || name == *older);
    let Some((current, older)) = renamed else { return Cow::Borrowed(key) };
    Cow::Owned(format!("{}{rest}", if has(older) { older } else { current }))
}

/// Returns the text for a file with a section under both names; `None` for another `error`.
pub(crate) fn two_names(error: &toml::de::Error) -> Option<String> {
    let (current, older) = RENAMED
        .iter()
        .find(|(current, _)| error.message() == format!("duplicate field `{current}`"))?;
    Some(format!("{older}: the older name of [{current}], which is there too: keep one of them"))
}

#[cfg(test)]
mod tests {
    use super::{current, key_in};

    #[test]
    fn a_key_has_the_name_that_its_section_has_in_the_file() {
        for key in ["update.hold", "upgrade.hold"] {
            assert_eq!(current(key), "update.hold");
            assert_eq!(key_in(key, |name| name == "upgrade"), "upgrade.hold");
            assert_eq!(key_in(key, |name| name == "update"), "update.hold");
        }
        for key in ["", "name", "updates.hold", "time.update", "network[0].mode"] {
            assert_eq!(key_in(key, |_| true), key);
        }
    }
}
