//! `bmc`: management controllers on the networks of the box, and their readings.

use bmc_discovery::Proposal;
use box_client::Path;
use printers::bmc;
use serde_json::json;

use super::super::Context;
use super::inventory::Arguments;
use super::power::target;
use crate::error::Error;
use crate::output::Format;

/// Find the management controllers (BMCs) of machines, and read their logs and sensors
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Search the box's networks for BMCs, and show the machine of each and the reason
    ///
    /// Finds IPMI, Intel AMT and Redfish. Sends no login. Example: `tinbox bmc discover`
    #[command(verbatim_doc_comment)]
    Discover {
        /// Print the YAML that accepts the found BMCs; enter their logins, then apply it
        #[arg(long)]
        manifest: bool,
    },
    /// Show the event log of a machine's BMC: at most 500 events, newest last
    ///
    /// IPMI (SEL), Intel AMT and Redfish have one. Example: `tinbox bmc events nuc1`
    Events(Arguments),
    /// Show the sensors of a machine's BMC: temperatures, fans, voltages, power
    ///
    /// IPMI and Redfish have them. Example: `tinbox bmc sensors nuc1`
    Sensors(Arguments),
    /// Show the hardware of a machine as its BMC reports it, also while the machine is off
    ///
    /// Intel AMT and Redfish report it. Example: `tinbox bmc inventory nuc1`
    Inventory(Arguments),
    /// Let a machine blink for a minute, so that a person finds it
    ///
    /// IPMI and Redfish can. Example: `tinbox bmc identify nuc1`
    Identify(Arguments),
}

pub async fn run(context: &Context, command: Command) -> Result<(), Error> {
    let manifest = match command {
        Command::Discover { manifest } => manifest,
        Command::Events(machine) => return read(context, &machine, "events").await,
        Command::Sensors(machine) => return read(context, &machine, "sensors").await,
        Command::Inventory(machine) => return read(context, &machine, "inventory").await,
        Command::Identify(machine) => return identify(context, &machine).await,
    };
    let answer = context.client.post(&Path::bmc_discovery(), "", &json!({})).await?;
    let found: Vec<Proposal> = serde_json::from_value(answer).map_err(|error| {
        Error::Usage(format!("the box's answer about BMCs cannot be read: {error}"))
    })?;
    let printer = &context.printer;
    if manifest {
        let new = found.iter().filter(|it| it.accepted.is_empty());
        let manifests: Vec<&str> = new.map(|it| it.manifest.trim_end()).collect();
        return printer.line(&manifests.join("\n---\n"));
    }
    if let (Format::Json | Format::Yaml, Some(printed)) = (printer.format, printer.values(&found)) {
        return printed;
    }
    if found.is_empty() {
        let needs = "a network of the box, and IPMI over LAN or AMT enabled in their firmware";
        printer.note(&format!("no BMC answered: BMCs need {needs}"));
        return Ok(());
    }
    printer.table(bmc::found(&found))
}

async fn identify(context: &Context, arguments: &Arguments) -> Result<(), Error> {
    let target = target(context, &arguments.machine, "identify").await?;
    let path = Path::of_object(&context.namespace, "bmcmachines", &target.machine, "identify");
    let answer = context.client.post(&path, "", &json!({})).await?;
    context.printer.line(&format!("{} blinks for {} s", target.name, answer["seconds"]))
}

/// Reads from the BMC of a machine, and prints what it reports.
async fn read(context: &Context, arguments: &Arguments, reading: &str) -> Result<(), Error> {
    let target = target(context, &arguments.machine, "read the BMC of").await?;
    let path = Path::of_object(&context.namespace, "bmcmachines", &target.machine, reading);
    let answer = context.client.get(&path).await?;
    let printer = &context.printer;
    if matches!(printer.format, Format::Json | Format::Yaml) {
        return printer.object(&answer);
    }
    if answer.as_array().is_some_and(Vec::is_empty) {
        printer.note(&format!("the BMC of {} reports no {reading}", target.name));
        return Ok(());
    }
    printer.table(bmc::readings(&answer))
}
