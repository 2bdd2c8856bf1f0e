//! Actions of machines on the pages: buttons, the confirmation, and the form of an installation.

use askama::Template;
use machine_actions::{
    Action, Confirmation, DiskChoice, FieldError, InstallChoices, InstallForm, SystemChoice,
    confirmation, offered,
};
use status::view::{Machine, MachineState, StatusView};

use crate::html::{link, mistakes_of, rendered};
use crate::rights::{Permission, Visitor};
use crate::shell::with_rail;

#[derive(Template)]
#[template(path = "actions.html")]
struct Buttons<'a> {
    csrf: &'a str,
    workflow: &'a str,
    items: Vec<Button>,
}

struct Button {
    path: String,
    label: String,
    effect: &'static str,
    class: &'static str,
    /// True for a form of one button; false for a link to a page with the effect.
    direct: bool,
}

#[derive(Template)]
#[template(path = "confirm.html")]
struct Confirm<'a> {
    csrf: &'a str,
    id: &'a str,
    workflow: &'a str,
    machine: &'a str,
    label: &'static str,
    effect: &'static str,
    loss: &'static str,
    wants_name: bool,
    error: &'a str,
    back: String,
}

#[derive(Template)]
#[template(path = "install.html")]
struct Install<'a> {
    csrf: &'a str,
    machine: &'a str,
    model: &'a str,
    effect: &'static str,
    installs: bool,
    may_rename: bool,
    wants_address: bool,
    /// True if the network assigns addresses, so that the field may be empty.
    assigned: bool,
    wants_typed: bool,
    has_bmc: bool,
    systems: &'a [SystemChoice],
    disks: &'a [DiskChoice],
    form: &'a InstallForm,
    mistakes: &'a [FieldError],
    error: &'a str,
    preview: &'a str,
    back: String,
}

impl Install<'_> {
    /// Returns the mistakes of a field as a paragraph; empty without mistakes.
    fn mistake(&self, field: &str) -> String {
        mistakes_of(field, self.mistakes)
    }
}

#[derive(Template)]
#[template(path = "add-machine.html")]
struct AddByMac;

/// Renders the form that leads to a machine by its MAC address; empty for a visitor who may not add
/// machines.
pub fn add_by_mac(who: &Visitor) -> String {
    if who.may(Permission::Act(Action::Add)) { rendered(&AddByMac) } else { String::new() }
}

/// Renders the message about a requested action.
pub fn done(action: Action) -> String {
    format!("<p class=\"card done\" role=\"status\">{}</p>\n", action.description().done)
}

/// Renders the buttons of a machine for all its actions that the visitor may request.
pub fn buttons(machine: &Machine, who: &Visitor) -> String {
    let mut items = some_buttons(machine, who, |_| true);
    if machine.has_bmc && who.may(Permission::IdentifyMachine) {
        items.push(Button {
            path: format!("{}/identify", link(&machine.name)),
            label: "Identify".to_owned(),
            effect: "Lets the machine blink for a minute, so that you find it.",
            class: "plain",
            direct: true,
        });
    }
    rendered(&Buttons { csrf: &who.csrf, workflow: &machine.workflow, items })
}

/// Renders the buttons of the actions that end a problem of a machine.
pub fn remedies(machine: &Machine, who: &Visitor) -> String {
    use Action::{Cancel, Dismiss, Retry, StartOver};
    let ends = |it| matches!(it, Retry | StartOver | Cancel | Dismiss);
    let items = some_buttons(machine, who, ends);
    rendered(&Buttons { csrf: &who.csrf, workflow: &machine.workflow, items })
}

fn some_buttons(machine: &Machine, who: &Visitor, shown: impl Fn(Action) -> bool) -> Vec<Button> {
    let may = |action: &Action| who.may(Permission::Act(*action));
    let shown = offered(machine).into_iter().filter(|action| shown(*action)).filter(may);
    shown.enumerate().map(|(at, action)| button(machine, action, at == 0)).collect()
}

fn button(machine: &Machine, action: Action, first: bool) -> Button {
    let row = action.description();
    let label = match action {
        Action::Retry if !machine.step.is_empty() => format!("Retry from {}", machine.step),
        _ => row.label.to_owned(),
    };
    let class = match (first, row.loss.is_empty()) {
        (true, _) => "small",
        (false, true) => "plain",
        (false, false) => "plain risk",
    };
    Button {
        path: format!("{}/{}", link(&machine.name), row.word),
        label,
        effect: row.effect,
        class,
        direct: confirmation(action, machine) == Confirmation::None,
    }
}

/// Renders the page that shows the effect of an action before it is requested. `id` is the id of
/// the request; `error` is the reason why the last request was refused, or empty.
pub fn confirm(
    view: &StatusView,
    who: &Visitor,
    (action, machine): (Action, &Machine),
    (id, error): (&str, &str),
) -> String {
    let row = action.description();
    let body = rendered(&Confirm {
        csrf: &who.csrf,
        id,
        workflow: &machine.workflow,
        machine: &machine.name,
        label: row.label,
        effect: row.effect,
        loss: row.loss,
        wants_name: confirmation(action, machine) == Confirmation::Name,
        error,
        back: link(&machine.name),
    });
    with_rail(view, who, (row.label, "/machines"), &body)
}

/// Content of the form of an installation.
pub struct InstallPage<'a> {
    /// [`Action::Install`] or [`Action::Add`].
    pub action: Action,
    /// Machine in the view; a machine without Hardware is new.
    pub machine: &'a Machine,
    /// Choices of the fields.
    pub choices: &'a InstallChoices,
    /// Values of the fields.
    pub form: &'a InstallForm,
    /// Mistakes of the fields, shown beside them.
    pub mistakes: &'a [FieldError],
    /// Reason why the last request was refused; may be empty.
    pub error: &'a str,
    /// Workflow as text, if the person asked for it; may be empty.
    pub preview: &'a str,
}

/// Renders the form of an installation.
pub fn install(view: &StatusView, who: &Visitor, page: &InstallPage<'_>) -> String {
    let InstallPage { action, machine, choices, form, mistakes, error, preview } = *page;
    let row = action.description();
    let body = rendered(&Install {
        csrf: &who.csrf,
        machine: &machine.name,
        model: &choices.model,
        effect: row.effect,
        installs: action == Action::Install,
        may_rename: choices.may_rename,
        wants_address: !choices.is_known,
        assigned: choices.address.is_empty(),
        wants_typed: confirmation(action, machine) == Confirmation::Name,
        has_bmc: choices.has_bmc,
        systems: &choices.systems,
        disks: &choices.disks,
        form,
        mistakes,
        error,
        preview,
        back: back(view, machine),
    });
    with_rail(view, who, (row.label, "/machines"), &body)
}

/// Returns the page to which a form leads back: of the machine, or the list if the view does not
/// have the machine.
fn back(view: &StatusView, machine: &Machine) -> String {
    let is_shown = view.machines.iter().any(|it| it.name == machine.name);
    if is_shown { link(&machine.name) } else { "/machines".to_owned() }
}

/// Returns the machine with this name, or a new machine with this MAC address.
pub fn machine(view: &StatusView, name: &str) -> Option<Machine> {
    if let Some(machine) = view.machines.iter().find(|it| it.name.as_str() == name) {
        return Some(machine.clone());
    }
    let mac = name.parse().ok()?;
    let (name, state) = (name.into(), MachineState::New);
    Some(Machine { name, state, mac: Some(mac), ..Machine::default() })
}
