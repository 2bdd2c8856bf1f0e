//! `[templates]`: what the templates of workflows may read.

use event_pattern::Pattern;
use serde::Deserialize;

/// What templates may read beside the Hardware they are rendered for.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Templates {
    /// Patterns (Quamina's language) of the references of Hardware that are followed, as
    /// `{"reference": {"resource": ["configmaps"]}}`; one that fits is enough. Without any, none
    /// is: who may write Hardware and Templates could read every object of the box by them.
    pub references: Vec<String>,
}

impl Templates {
    /// The patterns, as they are used.
    pub fn rules(&self) -> Vec<Pattern> {
        self.references.iter().filter_map(|rule| Pattern::parse(rule).ok()).collect()
    }

    /// What is wrong with them.
    pub fn problems(&self) -> Vec<String> {
        let read = self.references.iter().enumerate().map(|(at, rule)| {
            let why = Pattern::parse(rule).err()?;
            Some(format!("templates.references[{at}]: {why}"))
        });
        read.flatten().collect()
    }
}
