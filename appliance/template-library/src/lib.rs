//! Built-in templates, in `templates/`: each file is the YAML of a workflow. The first comment of a
//! file has its purpose and its settings (`# name=default`, then the purpose of the setting). The
//! text uses a setting as `@name@`; the created template contains the value.
//!
//! Never: reads or writes objects, or needs a box. Enter at [`entries`] and [`entry`].

use std::collections::BTreeMap;

use stdx::Hint;
use thiserror::Error;

const LIBRARY: [(&str, &str); 6] = [
    ("debian", include_str!("../templates/debian.yaml")),
    ("ubuntu", include_str!("../templates/ubuntu.yaml")),
    ("flatcar", include_str!("../templates/flatcar.yaml")),
    ("talos", include_str!("../templates/talos.yaml")),
    ("raw", include_str!("../templates/raw.yaml")),
    ("wipe", include_str!("../templates/wipe.yaml")),
];

/// Name of the setting for the box's address.
pub const BOX: &str = "box";

/// Error of the library.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LibraryError {
    /// No built-in template has this name.
    #[error("the library has no template {name:?}; it has {known}")]
    Unknown {
        /// Name that was requested from the library.
        name: String,
        /// All names of the library.
        known: String,
    },
    /// Settings of a built-in template are unknown, missing or not valid.
    #[error("{why}")]
    Settings {
        /// All mistakes, separated by semicolons.
        why: String,
        /// Command that shows the settings, with their names.
        hint: String,
    },
}

impl Hint for LibraryError {
    fn hint(&self) -> Option<&str> {
        match self {
            Self::Unknown { .. } => None,
            Self::Settings { hint, .. } => Some(hint),
        }
    }
}

/// Built-in template with its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Name of the template in the library, such as `debian`.
    pub name: &'static str,
    /// Workflow YAML, with settings as `@name@`.
    pub text: &'static str,
}

/// All built-in templates, most popular first.
pub fn entries() -> impl Iterator<Item = Entry> {
    LIBRARY.into_iter().map(|(name, text)| Entry { name, text })
}

/// Finds a built-in template.
///
/// # Errors
/// The name is unknown. The error lists the known names.
pub fn entry(name: &str) -> Result<Entry, LibraryError> {
    entries().find(|entry| entry.name == name).ok_or_else(|| {
        let names: Vec<&str> = entries().map(|entry| entry.name).collect();
        LibraryError::Unknown { name: name.to_owned(), known: names.join(", ") }
    })
}

impl Entry {
    /// Returns the purpose of the template, in a sentence.
    pub fn about(self) -> &'static str {
        self.head().next().unwrap_or_default()
    }

    /// Returns the settings with their defaults. An empty default means that a value is required.
    pub fn settings(self) -> BTreeMap<&'static str, &'static str> {
        let is_name = |name: &str| {
            !name.is_empty()
                && name.bytes().all(|it| it.is_ascii_lowercase() || b"_0123456789".contains(&it))
        };
        self.head()
            .filter_map(|line| line.split_once('='))
            .filter(|(name, _)| is_name(name))
            .collect()
    }

    /// Returns the workflow's YAML with the values of `given`, else with the defaults.
    ///
    /// # Errors
    /// A setting is unknown or missing. The error names all of them.
    pub fn with(self, given: &BTreeMap<String, String>) -> Result<String, LibraryError> {
        let settings = self.settings();
        let unknown = given.keys().filter(|name| !settings.contains_key(name.as_str()));
        let mut wrong: Vec<String> =
            unknown.map(|name| format!("{} has no setting {name:?}", self.name)).collect();
        let mut text = self.text.to_owned();
        for (name, default) in settings {
            let value = given.get(name).map_or(default, String::as_str);
            if value.is_empty() {
                wrong.push(format!("{} needs --set {name}=VALUE", self.name));
            } else if value.contains(|it: char| it.is_control() || it == '"') {
                wrong.push(format!("{name} has a quotation mark or a control character"));
            }
            text = text.replace(&format!("# {name}={default}\n"), &format!("# {name}={value}\n"));
            text = text.replace(&format!("@{name}@"), value);
        }
        if wrong.is_empty() {
            return Ok(text);
        }
        let names: Vec<&str> = self.settings().into_keys().collect();
        let (name, names) = (self.name, names.join(", "));
        let hint = format!("`tinbox template library {name}` shows its settings: {names}");
        Err(LibraryError::Settings { why: wrong.join("; "), hint })
    }

    fn head(self) -> impl Iterator<Item = &'static str> {
        self.text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use stdx::Hint as _;

    use super::{entries, entry};

    #[test]
    fn each_of_the_library_makes_a_workflow() {
        let hardware = json!({ "spec": { "disks": [{ "device": "/dev/nvme0n1" }] } });
        let map = [("device_1".to_owned(), "52:54:00:77:00:01".to_owned())].into();
        let data = api::document::data(&map, &hardware);
        for entry in entries() {
            let settings = entry.settings();
            let own: BTreeMap<String, String> = settings
                .iter()
                .filter(|(_, default)| default.is_empty())
                .map(|(name, _)| ((*name).to_owned(), format!("10.0.0.{}", name.len())))
                .collect();
            let text = entry.with(&own).unwrap();
            assert!(!text.contains('@'), "{}: a setting is left: {text}", entry.name);
            ::template::check(&text).unwrap();
            let rendered = ::template::render(&text, &data).unwrap();
            let document = api::document::parse(&rendered).unwrap();
            assert_eq!(document.name, entry.name);
            let actions = &document.tasks[0].actions;
            assert!(!actions.is_empty(), "{rendered}");
            assert!(actions.iter().all(|action| action.timeout > 0), "{}", entry.name);
            assert!(rendered.contains("nvme0n1"), "{}", entry.name);
            assert!(entry.about().ends_with('.'), "a sentence: {:?}", entry.about());
        }
    }

    #[test]
    fn settings_are_named_when_they_are_missing_or_unknown() {
        let given = [("color".to_owned(), "red".to_owned())].into();
        let error = entry("raw").unwrap().with(&given).unwrap_err().to_string();
        for words in ["no setting \"color\"", "--set image_url=", "--set sha256="] {
            assert!(error.contains(words), "{error}");
        }
        let hint = entry("debian").unwrap().with(&given).unwrap_err();
        let hint = hint.hint().unwrap();
        let settings = "`tinbox template library debian` shows its settings: box, image_url, ";
        assert!(hint.starts_with(settings), "{hint}");
        assert!(entry("plan9").unwrap_err().to_string().contains("debian, ubuntu"));
        let quoted = [("image_url".to_owned(), "a\nb".to_owned())].into();
        assert!(entry("talos").unwrap().with(&quoted).is_err(), "no line of its own");
    }
}
