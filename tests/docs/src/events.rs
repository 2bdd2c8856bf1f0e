//! `docs/reference/events.md`: the reasons of the box's Events.
//!
//! The table is written here. A reason that only the table or only the code has is a mistake.

use regex::Regex;

use crate::page::{cell, head};
use crate::source::product;

const ABOUT: &str = "\
`kubectl get events` shows them; `tinbox machine history` shows those of a machine. Programs may \
match on the reason. The message is a sentence for people and may change.";

/// An object, and its reasons with their meanings.
type Group = (&'static str, &'static [(&'static str, &'static str)]);

const GROUPS: &[Group] = &[
    (
        "Hardware: the history of a machine",
        &[
            ("PoweredOn", "The BMC reports that the machine is on."),
            ("PoweredOff", "The BMC reports that the machine is off."),
            ("NetworkBootArmed", "The machine boots from the network next."),
            ("AskedForAddress", "The machine asked for an address; the firmware stage is given."),
            ("GotAddress", "The machine got an address."),
            ("FetchedLoader", "The firmware fetched a boot loader."),
            ("FetchedScript", "iPXE fetched the script that boots the agent."),
            ("FetchedKernel", "The agent's kernel was fetched."),
            ("FetchedInitrd", "The agent's initramfs was fetched."),
            ("FetchedFile", "Another file was fetched."),
            ("FetchFailed", "A file was not delivered; the cause is given."),
            ("SentToDisk", "The machine was sent to its disk."),
            ("AgentStarted", "The agent reported for the first time in this boot."),
            ("ActionStarted", "An action started."),
            ("ActionSucceeded", "An action succeeded; its message and duration are given."),
            ("ActionFailed", "An action failed; its message is given."),
            ("AskedMetadata", "The installed system asked for its metadata."),
            ("PhonedHome", "The installed system is up."),
            ("UnknownMachine", "A machine without Hardware asked for an address."),
            ("Enrolls", "An unknown machine boots the agent."),
            ("AddressInUse", "The machine's address is used by another one."),
            ("ChangedLoader", "The loader did not start; the machine gets another from now on."),
            ("Refused", "A request of the machine was refused; the cause is given."),
            ("Resembles", "An unknown machine has serial numbers, disks or a TPM of this one."),
            ("Contested", "Hardware that a person wrote and enrolled Hardware have the same MAC."),
        ],
    ),
    (
        "Workflow",
        &[
            ("Rendered", "The Template was rendered."),
            ("NotRendered", "The Template cannot be rendered; the line and the cause are given."),
            ("UnknownKeys", "The rendered document has keys that are not known."),
            ("Prepared", "The machine is ready to boot the agent."),
            ("BmcError", "The BMC did not execute a request of the boot, which is repeated."),
            ("BootFailed", "The machine could not be booted."),
            ("AgentSilent", "The agent was silent for too long; its machine is booted again."),
            ("AgentBack", "The agent reports again."),
            ("AgentLost", "The machine stayed unreachable; the workflow ended."),
            ("ActionTimedOut", "An action ran out of time."),
            ("Timeout", "The workflow ran out of time."),
            ("Retried", "A new attempt started."),
            ("NothingToRetry", "A retry was requested and there is nothing to retry."),
            ("NothingToCancel", "A cancel was requested and every action is done."),
            ("Paused", "No new action starts."),
            ("Resumed", "Actions start again."),
            ("Succeeded", "Every action succeeded."),
        ],
    ),
    (
        "Network",
        &[
            ("Off", "No machine is answered, as the mode says."),
            ("Probing", "The box looks for other DHCP servers."),
            ("Serving", "Machines are answered."),
            ("Stopped", "Another DHCP server answered; `tinbox network resume` serves again."),
            ("Failed", "The network cannot be served; the cause is given."),
        ],
    ),
    (
        "Workflow: conditions",
        &[
            ("Waiting", "Another workflow of the machine is ahead; it is named."),
            ("Retrying", "The next attempt starts after a wait."),
            ("Paused", "No new action starts."),
            ("Cancelled", "The workflow was canceled."),
            ("Unreachable", "Agent and BMC are silent, or no agent at all reports."),
            ("TemplateRenderedSuccess", "The Template was rendered, or the cause why not."),
            ("BmcError", "The last error of the BMC while the Job that boots the machine runs."),
            ("BootJobComplete", "The Job that boots the machine is complete."),
            ("BootJobFailed", "The Job that boots the machine failed."),
            ("AllowNetbootTrue", "Network boot is permitted."),
            ("AllowNetbootFalse", "Network boot is forbidden again."),
            ("TidiedUp", "The cleanup after the run is complete, or the reason of its failure."),
        ],
    ),
    ("WorkflowRuleSet", &[("BadRule", "A rule cannot be used, or the Template is missing.")]),
    (
        "TinkerbellCluster: also the reasons of its conditions",
        &[
            ("WaitingForCluster", "No Cluster of Cluster API has the TinkerbellCluster yet."),
            ("EndpointMissing", "Neither object has the host of the control plane."),
            (
                "EndpointConflict",
                "A machine, a box or another host has the address of the endpoint.",
            ),
            ("EndpointNotServed", "The box cannot provide the endpoint; the cause is given."),
            ("WaitingForEndpoint", "The box takes the address of the endpoint."),
            ("ControlPlaneEndpointReady", "The box forwards connections to the control plane."),
            ("TemplateOverrideConflict", "Both overrides of the template are set."),
            ("ImageUnreachable", "The box cannot reach an image; the cause is given."),
            ("ImagesReachable", "The box reaches the images that new machines install."),
            ("EndpointSet", "The endpoint of the control plane was written into the spec."),
            ("Provisioned", "Machines of the cluster can be created."),
            ("Paused", "Controllers do not change the object."),
            ("NotPaused", "Controllers change the object again."),
        ],
    ),
    (
        "TinkerbellMachineTemplate: also the reasons of its conditions",
        &[
            ("HardwareAvailable", "A new machine can use some matching Hardware."),
            ("HardwareInUse", "All matching Hardware is in use."),
            ("NoMatchingHardware", "No Hardware matches; the numbers for each rule are given."),
            (
                "ChangedInPlace",
                "Machines have another spec than their template; the names and the correction are \
                 given.",
            ),
            ("MachinesUpToDate", "All machines have the spec of their template again."),
        ],
    ),
    (
        "TinkerbellMachine",
        &[
            (
                "HardwareClaimed",
                "The machine owns a Hardware; the other candidates and the reasons are given.",
            ),
            ("InstallationStarted", "The Template and the Workflow of the machine were created."),
            ("Provisioned", "The machine is installed, or was adopted."),
            (
                "InstallationFailed",
                "The Workflow failed; the cause and the command to repeat it are given.",
            ),
            (
                "NotProvisioned",
                "The machine cannot be installed; the cause and the correction are given.",
            ),
            ("DisksWiping", "The erase of the disks of the deleted machine begins."),
            ("DisksWiped", "The disks of the deleted machine are erased."),
            ("WipeSkipped", "The Hardware is released without the erase, by an annotation."),
            ("WipeFailed", "A disk of the deleted machine could not be erased."),
            ("HardwareReleased", "The deleted machine has no Hardware any more."),
        ],
    ),
    (
        "TinkerbellRemediation: Events and the reasons of its condition",
        &[
            ("PowerCycling", "The BMC switches the machine off and on."),
            ("PowerCycleFailed", "The BMC refused the power cycle; the cause is given."),
            ("WaitingForHealth", "The machine has some time to become healthy."),
            ("Replacing", "The owner of the Machine replaces it; the cause is given."),
        ],
    ),
    (
        "TinkerbellMachine: conditions and their reasons",
        &[
            ("Ready", "Summary of the other conditions."),
            ("Installed", "The operating system is installed."),
            ("BootstrapDataReady", "The bootstrap data exist."),
            ("UserDataOnly", "The machine has user data and no bootstrap data."),
            ("WaitingForMachine", "No Machine of Cluster API refers to the machine."),
            ("WaitingForCluster", "The Cluster of the machine does not exist."),
            ("WaitingForClusterInfrastructure", "The TinkerbellCluster is not provisioned yet."),
            ("WaitingForBootstrapData", "The Machine has no bootstrap data yet."),
            ("WaitingForAgent", "The Workflow waits for the agent of the machine."),
            ("Installing", "The Workflow runs."),
            ("WorkflowFailed", "The Workflow failed; the command to repeat it is given."),
            ("NoHardware", "No Hardware can be used; the reason for each is given."),
            (
                "HardwareRequestInvalid",
                "The requirements on the Hardware are invalid, or name no Hardware.",
            ),
            (
                "NameTaken",
                "Workflows or Templates of other owners have the name of the machine, and the name \
                 that the box uses instead.",
            ),
            ("WorkflowMissing", "The Workflow was deleted after the installation began."),
            (
                "FormerClusterUnread",
                "The deleted machine waits: its former management cluster cannot be read.",
            ),
            (
                "HardwareMissing",
                "The deleted machine of CAPT waits: this box has no Hardware with its labels.",
            ),
            ("WipingDisks", "A Workflow erases the disks of the deleted machine."),
            ("PoweringOff", "The BMC switches the deleted machine off."),
            (
                "PowerOffFailed",
                "The BMC did not switch the deleted machine off; the box repeats this.",
            ),
            ("ImageNotFound", "No OSImage has the name."),
            ("ImageMismatch", "The OSImage is for another Kubernetes version or architecture."),
            ("ImageAmbiguous", "Several OSImages fit equally well."),
            ("ImageInvalid", "A field of the OSImage is invalid."),
            ("ImageLookupInvalid", "The image lookup does not result in an image."),
            ("ImageLookupIncomplete", "The image lookup uses an empty field."),
            ("BootstrapDataMissing", "The machine has neither bootstrap data nor user data."),
            ("SecretValueMissing", "A Secret lacks the value."),
            ("SecretNotFound", "A Secret does not exist."),
            ("UserDataNotText", "User data are not UTF-8 text."),
            (
                "UserDataFormatConflict",
                "Bootstrap data and user data have formats that cannot be merged.",
            ),
            ("UserDataTypeUnknown", "cloud-init does not recognize one of the data."),
            ("UserDataTooLarge", "The user data exceed 1 MiB."),
            ("DiskInvalid", "The first disk of the Hardware is missing or invalid."),
            ("TemplateNotFound", "A Template that overrides the default does not exist."),
            ("TemplateEmpty", "A Template that overrides the default has no text."),
            ("TemplateInvalid", "The default Template cannot be written."),
            ("NameInvalid", "A name is not a valid value of a label."),
            ("HardwareIncomplete", "The Hardware lacks a required field."),
            ("BootOptionsInvalid", "The boot mode isoboot has no ISO URL."),
            ("NoNetwork", "The box serves no network."),
        ],
    ),
];

/// Returns the page as Markdown text.
pub fn page() -> String {
    let mut text = head("Events", ABOUT);
    for (object, reasons) in GROUPS {
        text.push_str(&format!("\n## {object}\n\n| reason | meaning |\n|---|---|\n"));
        for (reason, meaning) in *reasons {
            text.push_str(&format!("| `{reason}` | {} |\n", cell(meaning)));
        }
    }
    text
}

/// Crates that record events, or make their reasons.
const RECORDERS: [&str; 8] = [
    "supervisor",
    "controllers",
    "capi-controllers",
    "machine-install",
    "status",
    "provisioning",
    "lifecycle",
    "agent-service",
];

/// Returns reasons that only the table or only the code has.
///
/// # Panics
/// Never: the patterns are valid.
pub fn mistakes() -> Vec<String> {
    let before = r#"(?:reason: |=> |moved\([^"]*|\w+\(status, |&str = )"#;
    let written = Regex::new(&format!(r#"{before}"([A-Z]\w+)""#)).expect("a valid pattern");
    let quoted = Regex::new(r#""([A-Z]\w+)""#).expect("a valid pattern");
    let sources = product();
    let texts = || sources.iter().filter(|it| RECORDERS.contains(&it.krate())).map(|it| &it.text);
    let known: Vec<&str> =
        GROUPS.iter().flat_map(|(_, rows)| rows.iter().map(|(reason, _)| *reason)).collect();
    let mut mistakes = Vec::new();
    for text in texts() {
        let recording = text.contains("reason: ") || text.contains("fn reason(");
        for found in written.captures_iter(text).filter(|_| recording) {
            if !known.contains(&&found[1]) && !OTHERS.contains(&&found[1]) {
                mistakes.push(format!("{} has no row in docs/reference/events.md", &found[1]));
            }
        }
    }
    let (_, network) = GROUPS[2];
    for reason in known.iter().filter(|it| !network.iter().any(|(phase, _)| phase == *it)) {
        if !texts().any(|text| quoted.captures_iter(text).any(|found| found[1] == **reason)) {
            mistakes.push(format!("{reason}: the code has no such reason"));
        }
    }
    mistakes
}

/// Words of the same form that are not reasons of Events, such as conditions and their reasons.
const OTHERS: &[&str] = &["AllSilent", "HTTP", "NoAnswer", "Ready", "TFTP", "True"];
