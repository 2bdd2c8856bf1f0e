//! `docs/reference/actions.md`: the actions that are built into the agent, and their settings.
//!
//! Names come from `api::document::SETTINGS`, which `tinbox template lint` uses. The meanings are
//! written here; one that is missing is a mistake.

use crate::page::{cell, head};

const ABOUT: &str = "\
An action is chosen by the last part of its image's name, whatever the registry and the tag: \
`quay.io/tinkerbell/actions/image2disk:latest` is `image2disk`. Any other image is a container: \
[container actions](../how-to/container-actions.md). Settings are in the action's `environment`.";

const TASK: &str = "
## Keys of an action

| key | meaning |
|---|---|
| `name`, `image` | required |
| `timeout` | seconds; none without it |
| `environment` | settings; added to those of the task |
| `command` | arguments of a container, or of `rootio` |
| `volumes`, `pid`, `namespaces` | of a container |
| `retries` | how often the action starts again |
| `retry-wait` | seconds before the first time; doubled each time |
| `on-failure`, `on-timeout` | arguments of one more run of a container after its last failure |

`reboot` has no settings: it restarts the machine once its success is stored.
";

/// Purposes of actions and meanings of settings.
const MEANINGS: &str = include_str!("actions.txt");

/// Returns the page as Markdown text.
pub fn page() -> String {
    let mut text = head("Actions", ABOUT);
    text.push_str(TASK);
    for (action, settings) in api::document::SETTINGS {
        text.push_str(&format!("\n## {action}\n\n{}\n\n", about(action)));
        text.push_str("| setting | meaning |\n|---|---|\n");
        for setting in *settings {
            text.push_str(&format!("| `{setting}` | {} |\n", cell(about(setting))));
        }
    }
    text
}

fn about(name: &str) -> &'static str {
    meaning(name).unwrap_or_default()
}

fn meanings() -> impl Iterator<Item = (&'static str, &'static str)> {
    MEANINGS.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(": "))
}

fn meaning(name: &str) -> Option<&'static str> {
    meanings().find(|(known, _)| *known == name).map(|(_, meaning)| meaning)
}

/// Returns actions and settings without a meaning, and meanings whose name is gone.
pub fn mistakes() -> Vec<String> {
    let rows = api::document::SETTINGS;
    let names = || rows.iter().flat_map(|(action, settings)| settings.iter().chain([action]));
    let without = names().filter(|name| meaning(name).is_none());
    let gone = meanings().filter(|(known, _)| !names().any(|name| name == known));
    without
        .map(|name| format!("{name} has no meaning in actions.txt"))
        .chain(gone.map(|(name, _)| format!("{name}: there is no such action or setting")))
        .collect()
}
