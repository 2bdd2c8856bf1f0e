//! `machine power`: creates a BMC Job with one action and shows its result.

use std::ffi::OsStr;
use std::time::Duration;

use api::bmc::{JOB, Job, MACHINE, TASK, Task};
use api::tinkerbell::{HARDWARE, Hardware};
use box_client::{ClientError, Path, WatchEvent};
use clap::ValueEnum as _;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::super::appliance::status as box_status;
use super::super::{Context, name_of};
use super::act;
use crate::duration::duration;
use crate::error::Error;
use crate::output::Format;
use crate::question::confirm::{Confirm, Reply};

/// Maximum wait for the result of an action, unless the command line has another.
const WAIT: Duration = Duration::from_secs(600);
/// Maximum wait for the power state, unless the command line has another.
const STATUS_WAIT: Duration = Duration::from_secs(30);

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Hardware by name, id, MAC or IP address; or a BMC Machine by name
    #[arg(value_name = "NAME")]
    first: String,

    /// Power action
    #[arg(value_name = "ACTION", value_parser = ActionWords, required_unless_present = "hardware")]
    second: Option<String>,

    // The option and the order `ACTION NAME` are those of earlier versions.
    #[arg(long, value_name = "NAME", conflicts_with = "second", hide = true)]
    hardware: Option<String>,

    #[command(flatten)]
    confirm: Confirm,

    /// Wait until the BMC confirms the action ("status" always waits)
    #[arg(short, long)]
    wait: bool,

    /// Stop waiting after this time, such as 90s or 5m [default: 10m, for "status" 30s]; a power
    /// change continues
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
}

impl Arguments {
    /// Returns the action and the name of the machine, in either order.
    fn order(&self) -> Result<(Action, &str), Error> {
        let action = |word: &str| Action::from_str(word, false).ok();
        let (first, second) = (self.first.as_str(), self.second.as_deref());
        let found = match (second, self.hardware.as_deref()) {
            (Some(second), _) => action(second)
                .map(|action| (action, first))
                .or_else(|| action(first).map(|action| (action, second))),
            (None, name) => action(first).zip(name),
        };
        found.ok_or_else(|| {
            let words: Vec<String> = Action::value_variants().iter().map(|it| it.word()).collect();
            Error::Argument {
                why: format!("{:?} is not a power action", second.unwrap_or(first)),
                hint: format!("the actions are {}", words.join(", ")),
            }
        })
    }
}

/// Parser that offers the actions and accepts every word, because the words may be in the order of
/// earlier versions.
#[derive(Debug, Clone, Copy)]
struct ActionWords;

impl TypedValueParser for ActionWords {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(
            Action::value_variants().iter().filter_map(clap::ValueEnum::to_possible_value),
        ))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Action {
    /// Power on
    On,
    /// Power off immediately
    Off,
    /// Power off, then on
    Cycle,
    /// Reset without powering off
    Reset,
    /// Request a shutdown from the operating system
    Soft,
    /// Show the power state
    Status,
}

impl Action {
    fn word(self) -> String {
        self.to_possible_value().map(|it| it.get_name().to_owned()).unwrap_or_default()
    }
}

/// Machine with a BMC.
pub struct Target {
    /// Name of the machine in messages.
    pub name: String,
    /// Name of the machine's BMC Machine.
    pub machine: String,
}

/// Creates the BMC Job and, with --wait, waits until it completes.
///
/// # Errors
/// The Job cannot be created. With --wait also if the BMC fails or the time is over.
pub async fn run(context: &Context, arguments: Arguments) -> Result<(), Error> {
    let (action, text) = arguments.order()?;
    let target = target(context, text, "switch").await?;
    if !confirmed(context, action, &target.name, arguments.confirm).await? {
        return Ok(());
    }
    let job = json!({
        "apiVersion": JOB.api_version(),
        "kind": JOB.kind,
        "metadata": { "generateName": format!("{}-power-{}-", target.machine, action.word()) },
        "spec": {
            "machineRef": { "name": target.machine, "namespace": context.namespace },
            "tasks": [{ "powerAction": action.word() }],
        },
    });
    let made = context.client.create(&Path::collection(JOB, &context.namespace), &job).await?;
    if !arguments.wait && action != Action::Status {
        return context.printer.done(&made, "created");
    }
    let name = name_of(&made);
    let usual = if action == Action::Status { STATUS_WAIT } else { WAIT };
    let limit = arguments.timeout.unwrap_or(usual);
    let outcome = until_end(context, &target, action, &name, limit).await;
    let task = format!("{name}-task-0");
    let found_task = context.client.get_if_any(&context.path(TASK, &task)).await;
    if action == Action::Status {
        forget(context, &made, found_task.as_ref().ok().and_then(Option::as_ref)).await;
    }
    let ended = outcome?;
    match context.printer.format {
        Format::Table | Format::Wide => {
            let task: Task =
                found_task?.and_then(|it| serde_json::from_value(it).ok()).unwrap_or_default();
            let done = task.status.condition("Completed").map(|it| it.message.clone());
            let done = done.unwrap_or_else(|| format!("power {} done", action.word()));
            context.printer.line(&format!("{}: {}", target.name, status::plain(&done)))
        }
        _ => context.printer.object(&ended),
    }
}

/// Asks for the confirmation of an action that stops the machine, as the page does. Returns false
/// for a dry run.
async fn confirmed(
    context: &Context,
    action: Action,
    name: &str,
    confirm: Confirm,
) -> Result<bool, Error> {
    let tabled = match action {
        Action::Status => return Ok(true),
        Action::On => machine_actions::Action::PowerOn,
        Action::Off => machine_actions::Action::PowerOff,
        Action::Cycle | Action::Reset => machine_actions::Action::PowerCycle,
        Action::Soft => machine_actions::Action::ShutDown,
    };
    if action == Action::On && !confirm.dry_run {
        return Ok(true);
    }
    let view = if confirm.yes { None } else { box_status::view(context).await.ok() };
    let machine = view.as_ref().and_then(|view| box_status::machine_named(view, name));
    match machine {
        Some(machine) => act::confirmed(context, tabled, machine, confirm),
        None => {
            let description = tabled.description();
            let effect = format!("{name}: {} {}", description.effect, description.loss);
            confirm.agreed(&context.printer, effect.trim_end(), Reply::Yes)
        }
    }
}

/// Returns the BMC Machine of a machine. `verb` is the purpose in the error message.
pub async fn target(context: &Context, text: &str, verb: &str) -> Result<Target, Error> {
    let object = match context.find(HARDWARE, text).await {
        Ok(object) => object,
        Err(unknown @ Error::Client(ClientError::Unknown { .. })) => {
            // Nothing but a name can be a Machine's.
            let machine = context.client.get_if_any(&context.path(MACHINE, text)).await?;
            let machine = machine.map(|object| name_of(&object)).ok_or(unknown)?;
            return Ok(Target { name: machine.clone(), machine });
        }
        Err(error) => return Err(error),
    };
    let name = name_of(&object);
    let hardware: Hardware = serde_json::from_value(object).unwrap_or_default();
    match hardware.spec.bmc_ref {
        Some(reference) => Ok(Target { name, machine: reference.name }),
        None => Err(Error::Unable {
            what: format!("{verb} {name}"),
            why: "it has no bmcRef".to_owned(),
            hint: "push a BMC Machine and its Secret, then name the Machine in spec.bmcRef",
        }),
    }
}

/// Waits for the end of the Job and returns the Job.
async fn until_end(
    context: &Context,
    target: &Target,
    action: Action,
    name: &str,
    limit: Duration,
) -> Result<Value, Error> {
    let what = format!("power {} of {}", action.word(), target.name);
    let failed = |how, why: String| Error::Failed {
        what: what.clone(),
        how,
        why,
        look: format!("machine history {}", target.name),
    };
    let collection = Path::collection(JOB, &context.namespace);
    let mut changes = context.client.watch(collection, format!("metadata.name={name}"));
    let mut bar = context.printer.bar();
    let deadline = Instant::now() + limit;
    loop {
        let Ok(change) = timeout_at(deadline, changes.next()).await else {
            return Err(Error::too_late(what, limit, None));
        };
        let object = match change? {
            WatchEvent::Listed(items) => items.into_iter().next(),
            WatchEvent::Changed(object) => Some(object),
            WatchEvent::Deleted => None,
            WatchEvent::Unreachable(why) => {
                bar.note(&format!("{why}; waiting for the box"));
                continue;
            }
        };
        let gone = || failed("was canceled", "its Job was deleted".to_owned());
        let object = object.ok_or_else(gone)?;
        let job: Job = serde_json::from_value(object.clone()).unwrap_or_default();
        let current = |kind| job.status.condition(kind).filter(|it| it.status == "True");
        let message = |kind| current(kind).map(|it| it.message.as_str());
        let error = job.status.bmc_error();
        if let Some(why) = message("Failed").or(error.filter(|_| action == Action::Status)) {
            return Err(failed("failed", status::plain(why)));
        }
        if job.status.is("Completed") {
            return Ok(object);
        }
        let waits = message("Running").filter(|it| it.starts_with("waiting"));
        if let Some(why) = error.or(waits) {
            bar.note(&format!("{what}: {}", status::plain(why)));
        }
    }
}

/// Deletes the Job of a status request, and the Job's Task.
async fn forget(context: &Context, job: &Value, task: Option<&Value>) {
    for (resource, object) in [(JOB, Some(job)), (TASK, task)] {
        let Some(object) = object else { continue };
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        // The answer counts; what is left over does no harm.
        let _ = context.client.delete(&context.path(resource, &name_of(object)), uid).await;
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::{Action, Arguments};

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn the_name_and_the_action_are_found_in_either_order() {
        let parse =
            |line: &str| Line::try_parse_from(std::iter::once("power").chain(line.split(' ')));
        for line in ["nuc1 off", "off nuc1", "off --hardware nuc1", "--hardware nuc1 off"] {
            let line = parse(line).unwrap();
            assert_eq!(line.arguments.order().unwrap(), (Action::Off, "nuc1"), "{line:?}");
        }
        // A machine may have the name of an action.
        let line = parse("on off").unwrap();
        assert_eq!(line.arguments.order().unwrap(), (Action::Off, "on"));
        for (line, word) in [("nuc1 of", "of"), ("of --hardware nuc1", "of")] {
            let error = parse(line).unwrap().arguments.order().unwrap_err();
            assert_eq!(error.to_string(), format!("{word:?} is not a power action"));
            let hint = "the actions are on, off, cycle, reset, soft, status";
            assert_eq!(error.hint("tinbox").as_deref(), Some(hint));
        }
        assert!(parse("nuc1").is_err() && parse("nuc1 off --hardware nuc2").is_err());
    }
}
