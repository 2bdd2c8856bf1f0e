//! `[templates]`: data that workflow templates may read.

use event_pattern::Pattern;
use serde::Deserialize;

/// Data that workflow templates may read in addition to their Hardware.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Templates {
    /// Patterns for the objects that templates may read through `spec.references` of their
    /// Hardware, in the language of Quamina, such as `{"reference": {"resource": ["configmaps"]}}`.
    /// One match is enough. Default: none, because a user who can write Hardware and Templates
    /// could otherwise read every object of the box.
    pub references: Vec<String>,
}

impl Templates {
    /// Returns the compiled patterns; patterns that are not valid are left out.
    pub fn rules(&self) -> Vec<Pattern> {
        self.references.iter().filter_map(|rule| Pattern::parse(rule).ok()).collect()
    }

    /// Returns every mistake; each text begins with its key.
    pub fn problems(&self) -> Vec<String> {
        let read = self.references.iter().enumerate().map(|(at, rule)| {
            let why = Pattern::parse(rule).err()?;
            Some(format!("templates.references[{at}]: {why}"))
        });
        read.flatten().collect()
    }
}
