//! `docs/reference/cli.md`: every command of `tinbox`, from the definition that parses it.

use clap::Command;

use crate::page::{cell, head};

const ABOUT: &str = "\
`tinbox COMMAND --help` shows the same. The program can also be called as `tink`. Older verbs, \
such as `hardware mac`, still work.";

/// Returns the page as Markdown text.
pub fn page() -> String {
    let mut command = cli::command();
    command.build();
    let mut text = head("Command line", ABOUT);
    text.push_str("\n## Options of every command\n");
    options(&mut text, &command, true);
    if let Some(after) = command.get_after_help() {
        text.push_str(&format!("\n```text\n{}\n```\n", after.to_string().trim()));
    }
    for sub in visible(&command) {
        text.push_str(&format!("\n## tinbox {}\n\n{}\n", sub.get_name(), about(sub)));
        each(&mut text, sub, &format!("tinbox {}", sub.get_name()));
    }
    text
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help")
}

fn each(text: &mut String, command: &Command, path: &str) {
    if !command.has_subcommands() {
        options(text, command, false);
        return;
    }
    for sub in visible(command) {
        let path = format!("{path} {}", sub.get_name());
        text.push_str(&format!("\n### {path}\n\n{}\n", about(sub)));
        each(text, sub, &path);
    }
}

/// Returns the long help of a command, or else the short one.
fn about(command: &Command) -> String {
    let help = command.get_long_about().or_else(|| command.get_about());
    help.map(ToString::to_string).unwrap_or_default().trim().to_owned()
}

fn options(text: &mut String, command: &Command, global: bool) {
    let mut rows = String::new();
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        let is_common = matches!(id, "help" | "version") && !argument.is_positional();
        let skipped = argument.is_hide_set() || is_common;
        if skipped || argument.is_global_set() != global {
            continue;
        }
        let values = argument.get_value_names().unwrap_or_default().join(" ");
        let name = match (argument.get_short(), argument.get_long()) {
            (Some(short), Some(long)) => format!("-{short}, --{long}"),
            (_, Some(long)) => format!("--{long}"),
            _ => values.clone(),
        };
        let takes = argument.get_action().takes_values() && !argument.is_positional();
        let name = if takes { format!("{name} {values}") } else { name };
        let help = argument.get_long_help().or_else(|| argument.get_help());
        let mut help = help.map(ToString::to_string).unwrap_or_default();
        let possible: Vec<String> = argument
            .get_possible_values()
            .iter()
            .filter(|value| !value.is_hide_set() && takes_words(argument))
            .map(|value| format!("`{}`", value.get_name()))
            .collect();
        if !possible.is_empty() {
            if !help.ends_with(['.', ')']) && !help.is_empty() {
                help.push('.');
            }
            help.push_str(&format!(" One of {}.", possible.join(", ")));
        }
        rows.push_str(&format!("| `{}` | {} |\n", cell(&name), cell(&help)));
    }
    if !rows.is_empty() {
        text.push_str(&format!("\n| argument | meaning |\n|---|---|\n{rows}"));
    }
}

/// Returns true if an argument takes a value; a flag takes none, although clap lists `true` and
/// `false` for flags.
fn takes_words(argument: &clap::Arg) -> bool {
    argument.get_action().takes_values()
}
