//! Actions on a machine, by the table of actions that the page and the panel use.

use std::sync::Arc;

use box_client::ApiObjects;
use machine_actions::{
    Action, ActionError, ActionRequest, Confirmation, MachineActions, confirmation, offered,
};
use status::view::Machine;

use super::super::Context;
use super::super::appliance::status::{machine_named, view};
use crate::error::Error;
use crate::question::confirm::{Confirm, Reply};

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Name, MAC or IP address of the machine
    #[arg(value_name = "NAME|MAC|IP")]
    machine: String,

    #[command(flatten)]
    confirm: Confirm,
}

/// Requests an action on a machine or on its workflow.
///
/// # Errors
/// The machine does not permit the action in its state, or the request is not confirmed.
pub async fn run(context: &Context, action: Action, arguments: Arguments) -> Result<(), Error> {
    let machine = machine(context, &arguments.machine).await?;
    permitted(action, &machine)?;
    if !confirmed(context, action, &machine, arguments.confirm)? {
        return Ok(());
    }
    let request = ActionRequest::new(action, &machine.name, &machine.workflow);
    let (actions, objects) = actions(context);
    actions.request(&request).await.map_err(|error| refused(error, &objects))?;
    context.printer.line(&format!("{}: {}", machine.name, action.description().done))
}

/// Returns the machine that `text` names in the status view.
///
/// # Errors
/// The view has no such machine.
pub async fn machine(context: &Context, text: &str) -> Result<Machine, Error> {
    let view = view(context).await?;
    let found = machine_named(&view, text).cloned();
    found.ok_or_else(|| Error::NoMachine(text.to_owned()))
}

/// Checks that the state of a machine permits an action.
///
/// # Errors
/// The action is not offered; the error names those that are.
pub fn permitted(action: Action, machine: &Machine) -> Result<(), Error> {
    let offered = offered(machine);
    if offered.contains(&action) {
        return Ok(());
    }
    let words: Vec<String> = offered.iter().map(|it| command_of(*it)).collect();
    let hint = match words.as_slice() {
        [] => format!("nothing can be done with {} in this state", machine.name),
        words => format!("{} permits: {}", machine.name, words.join(", ")),
    };
    Err(Error::State {
        what: format!("{} {}", action.description().word, machine.name),
        why: format!("its state is {}", machine.state.word().text),
        hint,
    })
}

/// Returns the subcommand of `tinbox machine` for an action.
fn command_of(action: Action) -> String {
    match action {
        Action::ShutDown => "power soft".to_owned(),
        Action::Add => "enroll".to_owned(),
        other => other.description().word.replacen("power-", "power ", 1),
    }
}

/// Shows the effect of an action, and asks for the confirmation that the table demands. Returns
/// false for a dry run.
///
/// # Errors
/// The action is not confirmed.
pub fn confirmed(
    context: &Context,
    action: Action,
    machine: &Machine,
    confirm: Confirm,
) -> Result<bool, Error> {
    let description = action.description();
    let effect = format!("{}: {} {}", machine.name, description.effect, description.loss);
    let (wanted, confirm) = match confirmation(action, machine) {
        Confirmation::None => (Reply::Yes, Confirm { yes: true, ..confirm }),
        Confirmation::Name => (Reply::Name(&machine.name), confirm),
        Confirmation::Effect | Confirmation::Form => (Reply::Yes, confirm),
    };
    confirm.agreed(&context.printer, effect.trim_end(), wanted)
}

/// Returns the executor of actions, which writes under the rights of the user.
pub fn actions(context: &Context) -> (MachineActions, Arc<ApiObjects>) {
    let objects = Arc::new(ApiObjects::new(context.client.clone()));
    (MachineActions { objects: Arc::clone(&objects) as _ }, objects)
}

/// Converts the error of an action. The error of the box, if there is one, says more.
pub fn refused(error: ActionError, objects: &ApiObjects) -> Error {
    objects.failure().map_or(Error::Action(error), Error::Client)
}
