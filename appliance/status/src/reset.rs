//! Restart, poweroff and reset of the box: `/apis/box.tinbox.dev/v1alpha1/reset`.

use serde::{Deserialize, Serialize};

use crate::view::{MachineState, StatusView, Text};

/// Ways to restart, switch off or reset the box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BoxAction {
    /// Restarts the box and its services.
    Restart,
    /// Switches the box off.
    PowerOff,
    /// Restarts once without settings. The box serves no machine in that start and keeps all data.
    Safe,
    /// Erases settings, keys, cached images and machine records. The systems in both slots stay.
    Factory,
}

impl BoxAction {
    /// All actions, in the order of rising effect.
    pub const ALL: [Self; 4] = [Self::Restart, Self::PowerOff, Self::Safe, Self::Factory];

    /// Name of the action in the API and in forms.
    pub fn word(self) -> &'static str {
        match self {
            Self::Restart => "restart",
            Self::PowerOff => "powerOff",
            Self::Safe => "safe",
            Self::Factory => "factory",
        }
    }

    /// Returns the action of this name; `None` if there is none.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|leaving| leaving.word() == word)
    }

    /// Label of the action's button.
    pub fn label(self) -> &'static str {
        match self {
            Self::Restart => "Restart",
            Self::PowerOff => "Power off",
            Self::Safe => "Safe mode",
            Self::Factory => "Factory reset",
        }
    }

    /// Describes the effect of the action, as a sentence without a full stop.
    pub fn effect(self, erased: &ErasureSummary) -> String {
        match self {
            Self::Restart => "machines wait about 20 s, and installs go on after it".to_owned(),
            Self::PowerOff => {
                "machines are not served until a person presses the box's button".to_owned()
            }
            Self::Safe => "the box starts once without its settings: machines are not served, and \
                           everything is kept"
                .to_owned(),
            Self::Factory => format!(
                "erases {}; the systems in both slots stay, and the box's screen shows a new code",
                erased.sentence()
            ),
        }
    }
}

/// Data that a factory reset would erase now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ErasureSummary {
    /// Name of the box, which a person types as confirmation.
    pub name: Text,
    /// Number of registered machines.
    pub machines: usize,
    /// Number of secret keys.
    pub keys: u32,
    /// Number of files in the cache.
    pub images: usize,
}

impl ErasureSummary {
    /// Counts the machines, keys and cached files of a view.
    pub fn of(view: &StatusView) -> Self {
        // Machines that only requested an address are not registered.
        let machines = view.machines.len() - view.count(&[MachineState::New]);
        Self {
            name: view.name.clone(),
            machines,
            keys: view.system.keys,
            images: view.images.items.len(),
        }
    }

    /// Formats the counts: `12 machines, 3 keys, 1 image and all settings`.
    pub fn sentence(&self) -> String {
        let counted = |count: usize, what: &str| match count {
            0 => None,
            1 => Some(format!("1 {what}")),
            _ => Some(format!("{count} {what}s")),
        };
        let keys = usize::try_from(self.keys).unwrap_or(usize::MAX);
        let parts = [
            counted(self.machines, "machine"),
            counted(keys, "key"),
            counted(self.images, "image"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        match parts.is_empty() {
            true => "all settings".to_owned(),
            false => format!("{} and all settings", parts.join(", ")),
        }
    }
}

/// Request to restart, switch off or reset the box: the body of a POST.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BoxActionRequest {
    /// Action that the person requested.
    pub level: BoxAction,
    /// Name of the box as the person typed it; required for a factory reset only.
    #[serde(default)]
    pub name: String,
}

impl BoxActionRequest {
    /// Compares the typed name with the box's `name`. Only a factory reset needs the typed name.
    ///
    /// # Errors
    /// The typed name differs from `name`. The error is a sentence for people.
    pub fn is_meant(&self, name: &str) -> Result<(), String> {
        if self.level != BoxAction::Factory || self.name.trim() == name {
            return Ok(());
        }
        let typed = self.name.trim();
        Err(format!("this box is called {name}, not {typed:?}: nothing was erased"))
    }
}

#[cfg(test)]
mod tests {
    use super::{BoxAction, BoxActionRequest, ErasureSummary};
    use crate::view::{StatusView, example};

    #[test]
    fn what_is_erased_is_counted() {
        let erased = ErasureSummary::of(&example::working());
        assert_eq!(erased.machines, 12);
        let sentence = erased.sentence();
        assert!(sentence.starts_with("12 machines, 3 keys, "), "{sentence}");
        assert_eq!(ErasureSummary::of(&StatusView::default()).sentence(), "all settings");
        let one = ErasureSummary { machines: 1, keys: 1, ..ErasureSummary::default() };
        assert_eq!(one.sentence(), "1 machine, 1 key and all settings");
        assert!(BoxAction::Factory.effect(&one).starts_with("erases 1 machine, 1 key and all"));
    }

    #[test]
    fn words_are_those_of_the_wire() {
        for leaving in BoxAction::ALL {
            let word = serde_json::to_value(leaving).unwrap();
            assert_eq!(word, leaving.word());
            assert_eq!(BoxAction::of(leaving.word()), Some(leaving));
        }
        assert_eq!(BoxAction::of("explode"), None);
    }

    #[test]
    fn only_who_names_the_box_erases_it() {
        for (level, name, meant) in [
            (BoxAction::Factory, "box-7f3a", true),
            (BoxAction::Factory, " box-7f3a ", true),
            (BoxAction::Factory, "box-7f3b", false),
            (BoxAction::Factory, "", false),
            (BoxAction::Restart, "", true),
        ] {
            let wish = BoxActionRequest { level, name: name.to_owned() };
            assert_eq!(wish.is_meant("box-7f3a").is_ok(), meant, "{wish:?}");
        }
        assert!(
            serde_json::from_str::<BoxActionRequest>(r#"{"level":"factory","nmae":"x"}"#).is_err()
        );
    }
}
