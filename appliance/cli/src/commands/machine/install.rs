//! `machine install` and `machine enroll`: the forms of the page as a command line.

use std::time::Duration;

use machine_actions::{Action, ActionError, DiskChoice, InstallChoices, InstallForm};
use status::view::Machine;

use super::super::Context;
use super::super::workflow::follow;
use super::act;
use crate::duration::duration;
use crate::error::Error;
use crate::manifest;
use crate::question::confirm::Confirm;

/// Random bytes in the id of a request.
const ID_BYTES: usize = 4;

#[derive(Debug, clap::Args)]
pub struct Install {
    #[command(flatten)]
    add: Enroll,

    /// Template on the box, or of the library (`tinbox template library`)
    #[arg(short, long, value_name = "TEMPLATE")]
    system: Option<String>,

    /// Disk to erase, such as /dev/nvme0n1 [default: the only disk that the agent reported]
    #[arg(long, value_name = "DISK")]
    disk: Option<String>,

    /// File with public keys of SSH; can be repeated [default: the keys of the machine]
    #[arg(long, value_name = "FILE")]
    ssh_key: Vec<String>,

    /// File with user data for cloud-init or Ignition; "-" is standard input
    #[arg(long, value_name = "FILE")]
    user_data: Option<String>,

    #[command(flatten)]
    confirm: Confirm,

    /// Wait for the end of the installation; the exit code is 0 if it succeeded
    #[arg(short, long)]
    wait: bool,

    /// Stop waiting after this time, such as 90s, 5m or 1h; the installation continues
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
    timeout: Duration,
}

#[derive(Debug, clap::Args)]
pub struct Enroll {
    /// Name, MAC or IP address of the machine, as `tinbox machine list` shows it
    #[arg(value_name = "NAME|MAC|IP")]
    machine: String,

    /// Name for the machine and its host; required for a machine without a name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// IPv4 address for a new machine [default: the next free one outside the pool, or the pool's]
    #[arg(long, value_name = "ADDRESS")]
    address: Option<String>,
}

/// Writes the Hardware, the Template and the Workflow of an installation.
///
/// # Errors
/// The machine does not permit it, the form has mistakes, or the request is not confirmed.
pub async fn install(context: &Context, arguments: Install) -> Result<(), Error> {
    let machine = act::machine(context, &arguments.add.machine).await?;
    act::permitted(Action::Install, &machine)?;
    let (actions, objects) = act::actions(context);
    let choices = actions.choices(&machine.name).await;
    let choices = choices.map_err(|error| act::refused(error, &objects))?;
    let form = form(&machine, &arguments, &choices)?;
    let refused = |error| named(error, &objects);
    let preview = actions.preview(&form).await.map_err(refused)?;
    let printer = &context.printer;
    printer.note(&format!("{} will be installed on {}, as {}", form.system, form.disk, form.name));
    if form.ssh_keys.is_empty() && form.user_data.is_empty() {
        printer.note("without --ssh-key and user data, the installed system has no login");
    }
    if arguments.confirm.dry_run {
        printer.line(preview.trim_end())?;
    }
    if !act::confirmed(context, Action::Install, &machine, arguments.confirm)? {
        return Ok(());
    }
    let installed = actions.install(&form).await.map_err(refused)?;
    printer.line(&format!("workflow/{} created on {}", installed.workflow, installed.machine))?;
    if !machine.has_bmc {
        let name = &installed.machine;
        printer
            .note(&format!("{name} has no power control: switch it on to boot from the network"));
    }
    if arguments.wait {
        return follow::until_end(context, &installed.workflow, arguments.timeout, false).await;
    }
    Ok(())
}

/// Creates the Hardware of a new machine.
///
/// # Errors
/// The machine is known already, or the form has mistakes.
pub async fn enroll(context: &Context, arguments: Enroll) -> Result<(), Error> {
    let machine = act::machine(context, &arguments.machine).await?;
    act::permitted(Action::Add, &machine)?;
    let (actions, objects) = act::actions(context);
    let choices = actions.choices(&machine.name).await;
    let choices = choices.map_err(|error| act::refused(error, &objects))?;
    let form =
        InstallForm { id: stdx::random_hex(ID_BYTES), ..added(&machine, &arguments, &choices) };
    let name = actions.add(&form).await.map_err(|error| named(error, &objects))?;
    context.printer.line(&format!("hardware/{name} created"))?;
    context.printer.note(Action::Add.description().effect);
    Ok(())
}

/// Returns the fields that both forms have.
fn added(machine: &Machine, arguments: &Enroll, choices: &InstallChoices) -> InstallForm {
    let or = |given: &Option<String>, proposed: &str| given.clone().unwrap_or(proposed.to_owned());
    InstallForm {
        machine: machine.name.to_string(),
        name: or(&arguments.name, &choices.name),
        address: or(&arguments.address, &choices.address),
        ..InstallForm::default()
    }
}

fn form(
    machine: &Machine,
    arguments: &Install,
    choices: &InstallChoices,
) -> Result<InstallForm, Error> {
    let Some(system) = arguments.system.clone() else {
        let names: Vec<&str> = choices.systems.iter().map(|it| it.name.as_str()).collect();
        return Err(missing("--system", &names.join(", ")));
    };
    let disk = match (&arguments.disk, choices.disks.as_slice()) {
        (Some(disk), _) => disk.clone(),
        (None, [DiskChoice { device, .. }]) => device.clone(),
        (None, []) => return Err(missing("--disk", "/dev/nvme0n1, /dev/sda")),
        (None, several) => {
            let shown = |it: &DiskChoice| format!("{} ({})", it.device, it.about);
            let disks: Vec<String> = several.iter().map(shown).collect();
            return Err(missing("--disk", &disks.join(", ")));
        }
    };
    let keys: Result<Vec<String>, Error> =
        arguments.ssh_key.iter().map(|file| manifest::read(file)).collect();
    let keys = keys?.join("\n");
    Ok(InstallForm {
        system,
        disk,
        ssh_keys: if keys.is_empty() { choices.ssh_keys.clone() } else { keys },
        user_data: arguments
            .user_data
            .as_deref()
            .map(manifest::read)
            .transpose()?
            .unwrap_or_default(),
        id: stdx::random_hex(ID_BYTES),
        ..added(machine, &arguments.add, choices)
    })
}

fn missing(option: &str, choices: &str) -> Error {
    let hint = format!("give {option}, one of: {choices}");
    Error::Argument { why: format!("{option} is missing"), hint }
}

/// Converts the error of a form; each mistake names its option.
fn named(error: ActionError, objects: &box_client::ApiObjects) -> Error {
    let ActionError::Fields(mistakes) = &error else { return act::refused(error, objects) };
    let options = mistakes.iter().map(|it| format!("--{}: {}", it.field.replace('_', "-"), it.why));
    let why = options.collect::<Vec<_>>().join(" ");
    Error::Argument { why, hint: "correct the options and run the command again".to_owned() }
}
