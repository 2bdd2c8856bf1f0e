//! Text of the box's settings for the web pages.

use std::sync::Arc;

use lifecycle::settings::{ChangeAuthor, Settings, SettingsError};
use status::settings::{Revision, SettingsReport};
use web::setup::settings::{SettingsRefusal, SettingsText};

/// Settings of a box that runs as firmware.
pub(super) struct PageSettings(pub Arc<Settings>);

impl SettingsText for PageSettings {
    fn report(&self) -> Result<SettingsReport, String> {
        self.0.report(false).map_err(|error| stdx::sentences(&error))
    }

    fn history(&self) -> Result<Vec<Revision>, String> {
        self.0.history().map_err(|error| stdx::sentences(&error))
    }

    fn diff(&self, revision: u32) -> Result<String, String> {
        self.0.diff(Some(revision), None).map_err(|error| stdx::sentences(&error))
    }

    fn replace(
        &self,
        based: &str,
        (actor, note): (&str, &str),
        text: &str,
    ) -> Result<(), SettingsRefusal> {
        let replaced = self.0.replace_shown(based, ChangeAuthor { actor, note }, text);
        replaced.map(drop).map_err(refusal)
    }

    fn restore(&self, based: &str, actor: &str, revision: u32) -> Result<(), SettingsRefusal> {
        let restored = self.0.revert(based, ChangeAuthor { actor, note: "" }, revision);
        restored.map(drop).map_err(refusal)
    }
}

fn refusal(error: SettingsError) -> SettingsRefusal {
    match error {
        SettingsError::Mistakes(mistakes) => {
            SettingsRefusal::Mistakes(mistakes.iter().map(ToString::to_string).collect())
        }
        SettingsError::Changed { .. } => SettingsRefusal::Why(
            "Another person saved the settings meanwhile, so nothing was saved. Copy your changes, \
             and load this page again."
                .to_owned(),
        ),
        error => SettingsRefusal::Why(stdx::sentences(&error)),
    }
}
