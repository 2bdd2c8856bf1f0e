//! What can be typed.

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum as _};

use crate::commands::{
    access, appliance, backup, capi, hardware, image, machine, network, template, upgrade, workflow,
};
use crate::output::Format;

const AFTER: &str = "\
The kubeconfig is the one of --kubeconfig, of TINBOX_KUBECONFIG, ~/.tinbox/admin.kubeconfig or \
/var/lib/tinbox/admin.kubeconfig: the first that there is. KUBECONFIG is not looked at, because it \
usually names another cluster.

Exit codes: 0 done; 1 the thing asked for failed; 2 it could not be asked for (arguments, files, \
no way to the box); 5 another box answers than the one whose pin was given.

Example:
  tinbox hardware push --file hardware.yaml
  tinbox template create --file template.yaml
  tinbox workflow create --template debian --hardware nuc1 --wait";

/// Provision machines with a Tinbox.
#[derive(Debug, Parser)]
#[command(version, after_help = AFTER, max_term_width = 100)]
pub struct Args {
    /// The box's kubeconfig.
    #[arg(long, global = true, env = "TINBOX_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Namespace; else the kubeconfig's, else "default".
    #[arg(short, long, global = true, value_name = "NAME")]
    pub namespace: Option<String>,

    /// How answers are written: table, json, yaml or name; of `backup create` the file to write.
    #[arg(short, long, global = true, default_value = "table", value_parser = Output::parse)]
    pub output: Output,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Where an answer goes, or how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// To standard output.
    Format(Format),
    /// A file, for the one answer that is one.
    File(PathBuf),
}

impl Output {
    fn parse(text: &str) -> Result<Self, Infallible> {
        let format = Format::from_str(text, false);
        Ok(format.map_or_else(|_| Output::File(text.into()), Output::Format))
    }
}

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// The machines the box knows.
    #[command(subcommand, alias = "hw")]
    Hardware(hardware::Command),
    /// What can be done to a machine.
    #[command(subcommand)]
    Template(template::Command),
    /// What is done to a machine.
    #[command(subcommand, alias = "wf")]
    Workflow(workflow::Command),
    /// A machine's power and its story.
    #[command(subcommand)]
    Machine(machine::Command),
    /// The files of other servers that the box keeps.
    #[command(subcommand)]
    Image(image::Command),
    /// What the box serves on its interfaces.
    #[command(subcommand, alias = "net")]
    Network(network::Command),
    /// The box itself.
    #[command(subcommand, name = "box")]
    Appliance(appliance::Command),
    /// The box's own system, and updates of it.
    #[command(subcommand)]
    Upgrade(upgrade::Command),
    /// One file with everything the box knows, and the way back.
    #[command(subcommand)]
    Backup(backup::Command),
    /// The box for Cluster API and other programs.
    #[command(subcommand)]
    Capi(capi::Command),
    /// List, replace and revoke the tokens that the box takes
    #[command(subcommand)]
    Access(access::Command),
}

/// A length of time such as `90s`, `5m` or `1h`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let read = match text.parse::<u32>() {
        Ok(seconds) => jiff::SignedDuration::from_secs(i64::from(seconds)),
        Err(_) => text.parse::<jiff::SignedDuration>().map_err(|_| "write 90s, 5m or 1h")?,
    };
    // A longer time than a month is a slip, and would overflow a deadline.
    if read.is_positive() && read.as_hours() <= 24 * 31 {
        return Ok(read.unsigned_abs());
    }
    Err("it must be more than nothing and at most 31 days".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Args, duration};
    use clap::CommandFactory as _;
    use std::time::Duration;

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn durations() {
        for (text, seconds) in [("90s", 90), ("5m", 300), ("1h", 3600), ("90", 90), ("1h30m", 5400)]
        {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "soon", "-1s", "0s", "99999h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
