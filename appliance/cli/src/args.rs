//! Arguments of the command line.

use std::convert::Infallible;
use std::path::PathBuf;

use clap::{Parser, ValueEnum as _};

use crate::commands::image::os_image;
use crate::commands::{
    access, appliance, backup, capi, generated, hardware, image, machine, network, template,
    update, workflow,
};
use crate::output::Format;

const AFTER: &str = "\
The kubeconfig is the file of --kubeconfig, else of TINBOX_KUBECONFIG. Without both, it is \
~/.tinbox/admin.kubeconfig, or /var/lib/tinbox/admin.kubeconfig if the first does not exist. \
KUBECONFIG is ignored, because it usually names another cluster.

Exit codes: 0 the operation succeeded; 1 it failed; 2 the command line or a file is not valid, or \
a confirmation is missing; 3 not found; 4 the state of an object does not permit the operation; \
5 the box cannot be reached, or another one answered; 6 no right to the operation; 7 --timeout \
ended the wait, the operation continues; 8 only some of several objects were written; 64 the \
kubeconfig is not valid; 130 interrupted by Ctrl-C.

Example:
  tinbox status
  tinbox hardware push --file hardware.yaml
  tinbox template create --file template.yaml
  tinbox workflow create --template debian --hardware nuc1 --wait";

/// Provision machines with a Tinbox.
#[derive(Debug, Parser)]
#[command(version, after_help = AFTER, max_term_width = 100)]
pub struct Args {
    /// Path of the kubeconfig that names the box and the user; for `box claim` the file to write
    /// [default: ~/.tinbox/admin.kubeconfig, else /var/lib/tinbox/admin.kubeconfig]
    #[arg(long, global = true, env = "TINBOX_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Namespace to work in [default: the namespace in the kubeconfig, else "default"]
    #[arg(short, long, global = true, value_name = "NAME")]
    pub namespace: Option<String>,

    /// Output format: table, wide, json, yaml or name; for `backup create` the file to write
    #[arg(short, long, global = true, default_value = "table", value_parser = Output::parse)]
    pub output: Output,

    /// Print tables without their line of headings
    #[arg(long, global = true)]
    pub no_headers: bool,

    /// Print only names, one per line, as `-o name`
    #[arg(short, long, global = true)]
    pub quiet: bool,

    /// Options of Tinkerbell's older programs, which the kubeconfig replaces
    #[command(flatten)]
    pub retired: Retired,

    #[command(subcommand)]
    pub command: Command,
}

/// Options of Tinkerbell's older programs. They are accepted, so that old scripts run, and ignored.
#[derive(Debug, clap::Args)]
pub struct Retired {
    #[arg(long, global = true, hide = true, value_name = "HOST:PORT")]
    pub tinkerbell_grpc_authority: Option<String>,
    #[arg(long, global = true, hide = true, num_args = 0..=1, default_missing_value = "true")]
    pub tinkerbell_tls: Option<String>,
    #[arg(long, global = true, hide = true, value_name = "CODE")]
    pub facility: Option<String>,
}

impl Retired {
    /// Returns a hint for the first retired option that is given; `None` without one.
    pub fn hint(&self) -> Option<String> {
        let given = [
            ("tinkerbell-grpc-authority", &self.tinkerbell_grpc_authority),
            ("tinkerbell-tls", &self.tinkerbell_tls),
            ("facility", &self.facility),
        ];
        let (name, _) = given.into_iter().find(|(_, value)| value.is_some())?;
        Some(format!("hint: --{name} has no effect: the kubeconfig names the box"))
    }
}

/// Format or destination of the output: the value of `--output`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Standard output, in this format.
    Format(Format),
    /// Output file. Only `backup create` accepts a file.
    File(PathBuf),
}

impl Output {
    fn parse(text: &str) -> Result<Self, Infallible> {
        let format = Format::from_str(text, false);
        Ok(format.map_or_else(|_| Output::File(text.into()), Output::Format))
    }
}

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Show the state of the box and its machines, problems first
    ///
    /// Example: `tinbox status --watch`
    Status(appliance::status::Arguments),
    /// Manage the machines that the box knows
    #[command(subcommand, alias = "hw")]
    Hardware(hardware::Command),
    /// Manage workflow templates
    #[command(subcommand)]
    Template(template::Command),
    /// Run and manage workflows
    #[command(subcommand, alias = "wf")]
    Workflow(workflow::Command),
    /// Install and control machines; show their inventory, history and log
    #[command(subcommand)]
    Machine(machine::Command),
    /// Find the management controllers (BMCs) of machines
    #[command(subcommand)]
    Bmc(machine::bmc::Command),
    /// Manage the cache of downloaded images and files
    #[command(subcommand)]
    Image(image::Command),
    /// Manage the OS images that machines install
    #[command(subcommand, alias = "osimage")]
    OsImage(os_image::Command),
    /// Manage the networks that the box serves
    #[command(subcommand, alias = "net")]
    Network(network::Command),
    /// Manage the Tinbox itself: claim, flash, settings, restart, reset
    #[command(subcommand, name = "box")]
    Appliance(appliance::Command),
    /// Show, install and roll back updates of the box's system
    #[command(subcommand, alias = "upgrade")]
    Update(update::Command),
    /// Back up and restore the box
    #[command(subcommand)]
    Backup(backup::Command),
    /// Connect Cluster API and other programs of other clusters
    #[command(subcommand)]
    Capi(capi::Command),
    /// List, replace and revoke access tokens
    #[command(subcommand)]
    Access(access::Command),
    /// Print the completion script of a shell
    ///
    /// Example: `tinbox completion bash >~/.local/share/bash-completion/completions/tinbox`
    Completion(generated::Completion),
    /// Write the manual pages of all commands
    ///
    /// Example: `tinbox man ~/.local/share/man/man1`
    Man(generated::Man),
}

#[cfg(test)]
mod tests {
    use super::Args;
    use clap::{CommandFactory as _, Parser as _};

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn an_older_name_runs_the_command_of_the_new_name() {
        let parse = |line: &str| {
            let words = std::iter::once("tinbox").chain(line.split(' '));
            format!("{:?}", Args::try_parse_from(words).expect(line))
        };
        for (older, newer) in [
            ("machine story nuc1 --follow", "machine history nuc1 --follow"),
            ("network heard", "network clients"),
            ("network rearm eth1", "network resume eth1"),
            ("osimage rm debian-13 --yes", "os-image delete debian-13 --yes"),
            (
                "osimage upload a b --distro c --version d",
                "os-image push a b --distro c --version d",
            ),
            ("upgrade status --wait", "update status --wait"),
            ("upgrade apply a.update", "update apply a.update"),
            ("upgrade rollback", "update rollback"),
            ("upgrade restart --now", "update restart --now"),
            ("upgrade hold 1.5.0", "update hold 1.5.0"),
            ("upgrade unhold", "update unhold"),
        ] {
            assert_eq!(parse(older), parse(newer), "{older}");
        }
    }
}
