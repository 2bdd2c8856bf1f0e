//! Commands of clusterctl and their outputs, for a golden file.

use std::fmt::Write as _;

use peers::Printed;
use regex::Regex;

/// Parts of an output that differ between two runs, and their replacements.
const REPLACED: [(&str, &str); 7] = [
    // Warnings of the API server, once for each object.
    (r"(?m)^(\[KubeAPIWarningLogger\]|v1 Endpoints is deprecated).*\n", ""),
    (r#"/[^ "]*/(cluster|workstation)-[A-Za-z0-9]+"#, "/FOLDER"),
    (r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b", "-RANDOM"),
    (r"\b(\d+[smhd])+\b", "AGE"),
    (r"(?m) +$", ""),
    // The rest of a message that has more than one line.
    (r"(?m)^ {6,}", "      "),
    (r"([^ \n]) {2,}", "$1  "),
];

/// Commands and their outputs.
#[derive(Default)]
pub struct Transcript {
    text: String,
}

impl Transcript {
    /// Adds a command that must succeed, and its output without folders, ages, random suffixes and
    /// the width of columns.
    pub fn add(&mut self, arguments: &[&str], printed: &Printed) {
        assert!(printed.success, "{arguments:?}: {printed:?}");
        self.add_any(arguments, printed);
    }

    /// Adds a command as [`Self::add`] does, also one that fails.
    pub fn add_any(&mut self, arguments: &[&str], printed: &Printed) {
        let mut text =
            format!("$ clusterctl {}\n{}{}", arguments.join(" "), printed.out, printed.err);
        for (pattern, by) in REPLACED {
            text = Regex::new(pattern).unwrap().replace_all(&text, by).into_owned();
        }
        let _ = writeln!(self.text, "{}\n", text.trim_end());
    }

    /// Compares the commands with a golden file.
    pub fn check(&self, name: &str) {
        golden::check(name, &self.text);
    }
}
