//! Installation of the machines of a demo, with its progress.

use std::process::Command;
use std::thread;

use anyhow::Context as _;

use super::install_command;
use crate::{Screen, show};

/// SSH key of the owner in the installed systems.
pub const OWNER_KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8jv7k4W4v0o4pZxw0n3Vm3R4oZ8V3Tq0r2cYp3D8aB owner";

/// Configuration of cloud-init in the installed systems.
pub const USER_DATA: &str = "#cloud-config\n\
    runcmd:\n\
    - \"echo hello from $(hostname), configured by the box >/dev/ttyS0\"\n\
    phone_home:\n\
    \x20 url: http://10.77.0.1:7080/phone-home\n\
    \x20 post: [instance_id, hostname, fqdn, pub_key_ed25519]\n\
    \x20 tries: 10\n";

/// Creates the workflows and shows progress and events of every machine until it has phoned home.
/// `command` returns a `tinbox` command with these arguments.
///
/// # Errors
/// A command cannot be run, or fails.
pub fn install_all(
    nucs: u8,
    command: impl Fn(&[&str]) -> anyhow::Result<Command>,
) -> anyhow::Result<()> {
    let screen = &Screen::new();
    thread::scope(|scope| {
        let mut waits = Vec::new();
        for number in 1..=nucs {
            let name = format!("nuc{number}");
            let create = install_command(&name);
            show(&format!("tinbox {create}"));
            let create = command(&create.split(' ').collect::<Vec<_>>())?;
            let history = command(&["machine", "history", &name, "--follow"])?;
            // `machine history --follow` ends by itself when the installed system phones home, or
            // the workflow fails.
            for (command, mark) in [(create, '>'), (history, '|')] {
                let name = name.clone();
                waits.push(scope.spawn(move || screen.relay(command, &name, mark)));
            }
        }
        for wait in waits {
            wait.join().map_err(|_| anyhow::anyhow!("a follower broke off"))??;
        }
        Ok(())
    })
}

/// Waits until a person ends the demo: by the key Enter, or by a signal without a terminal.
///
/// # Errors
/// The terminal cannot be read.
pub fn wait_for_enter() -> anyhow::Result<()> {
    println!("Press Enter, or Ctrl-C, to end it.");
    let mut line = String::new();
    if std::io::stdin().read_line(&mut line).context("cannot read the terminal")? == 0 {
        loop {
            thread::park();
        }
    }
    Ok(())
}
