//! Check of a template without a machine.

use api::document::{Lint, lint};

/// Result of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckedTemplate {
    /// Mistakes as sentences, with their lines as far as they are known.
    pub mistakes: Vec<String>,
    /// Reason why keys and values could not be checked before the template is rendered; `None` if
    /// they were checked.
    pub unread: Option<String>,
}

/// Checks syntax, functions, variables, keys, settings and types of a template.
pub fn check(text: &str) -> CheckedTemplate {
    if text.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with('#')) {
        let why = "The template is empty: version, name and tasks are missing.".to_owned();
        return CheckedTemplate { mistakes: vec![why], unread: None };
    }
    if let Err(error) = template::check(text) {
        return CheckedTemplate { mistakes: vec![error.to_string()], unread: None };
    }
    let Lint { mistakes, unknown, unread } = lint(text);
    CheckedTemplate { mistakes: mistakes.into_iter().chain(unknown).collect(), unread }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn each_kind_of_mistake_is_found() {
        for (text, part) in [
            ("# nothing\n", "is empty"),
            ("name: {{ nofunction }}\n", "nofunction"),
            ("version: \"0.1\"\nname: a\ntimout: 1\ntasks: []\n", "timout"),
        ] {
            let mistakes = check(text).mistakes.join("; ");
            assert!(mistakes.contains(part), "{text:?}: {mistakes}");
        }
        let entry = template_library::entry("wipe").unwrap();
        assert_eq!(check(entry.text).mistakes, [""; 0]);
    }
}
