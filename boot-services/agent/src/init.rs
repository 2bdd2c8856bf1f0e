//! Process 1: sets up file systems, console, modules and network, and starts the agent.

mod cmdline;
mod ipam;
mod mounts;
mod process;

use std::time::Duration;

use agent_rpc::Hello;
use agent_rpc::client::Client;
use imaging::{preserve, tools};
use platform::net;
use rustix::system::RebootCommand;

use crate::Error;
use crate::actions::Limits;
use crate::console::Console;
use crate::container::registry_beside;
use crate::log_sender::{self, LogQueue};
use crate::outcome::Leave;
use crate::runner::{Host, Runner, obey};
pub use cmdline::CommandLine;
pub use process::runtime;

/// Delay before the restart after a failed start, so that the operator can read the error.
const READ_THE_REASON: Duration = Duration::from_secs(30);

/// Returns true if this process is process 1.
pub fn is_first_process() -> bool {
    std::process::id() == 1
}

/// Runs as process 1. Never returns, because the kernel panics when process 1 ends.
pub fn run() -> ! {
    let prepared = mounts::prepare();
    let (sender, lines) = log_sender::queue();
    Console::install(Some(sender));
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "starting");
    // The runtime continues during the delay, so that the reason is sent to the box.
    let runtime = prepared.and_then(|()| process::runtime());
    let reason = match &runtime {
        Ok(runtime) => stdx::chain(&runtime.block_on(serve(lines))),
        Err(error) => stdx::chain(error),
    };
    tracing::error!(reason, restart_in = ?READ_THE_REASON, "cannot start");
    std::thread::sleep(READ_THE_REASON);
    loop {
        if let Err(error) = Machine.leave(Leave::Reboot) {
            tracing::error!(reason = %stdx::chain(&error), "cannot restart");
        }
        std::thread::sleep(READ_THE_REASON);
    }
}

/// Starts and runs the agent. Returns only on an error that prevents the start.
async fn serve(lines: LogQueue) -> Error {
    tokio::spawn(process::reap());
    match start(lines).await {
        Ok(runner) => {
            tokio::spawn(send_neighbors(runner.client.clone(), runner.hello()));
            tokio::spawn(obey_power_off(runner.client.clone()));
            runner.run().await;
            Error::Stopped
        }
        Err(error) => error,
    }
}

/// Sends the hello a second time, with the LLDP neighbors, after up to 35 s. The agent's loop does
/// not wait for this.
async fn send_neighbors(client: Client, mut hello: Hello) {
    let Ok(Some(inventory)) = tokio::task::spawn_blocking(inventory::neighbors).await else {
        return tracing::debug!("no LLDP announcement received from a switch");
    };
    hello.inventory = Some(inventory);
    if let Err(error) = client.hello(hello).await {
        tracing::info!(reason = %stdx::chain(&error), "the box did not receive the neighbors");
    }
}

/// Powers the machine off when the box requests it, also while an action runs.
async fn obey_power_off(client: Client) {
    let Err(error) = obey(&client, &Machine).await;
    tracing::debug!(reason = %stdx::chain(&error), "the server does not power machines off");
}

async fn start(lines: LogQueue) -> Result<Runner<Machine>, Error> {
    mounts::load_modules();
    let mut arguments = CommandLine::read()?;
    preserve::set(std::mem::take(&mut arguments.preserve));
    net::loopback_up().await.map_err(Error::Network)?;
    let configured = net::configure(arguments.network()).await.map_err(Error::Network)?;
    let agent_id = arguments.worker_id.clone().unwrap_or_else(|| configured.mac().to_string());
    let address = configured.address();
    tokio::spawn(net::keep(configured));
    if let Some(host) = arguments.syslog_host.take() {
        tokio::spawn(lines.send(host));
    }
    let authority = &arguments.grpc_authority;
    tools::set(tools::of_this_boot(authority));
    let client = Client::connect(authority, &agent_id, arguments.token.as_ref(), arguments.pin)
        .map_err(Error::Service)?
        .in_boot(&inventory::boot_id());
    tracing::info!(agent_id, %address, authority, "requesting work");
    Ok(Runner {
        client,
        host: Machine,
        limits: Limits { registry: Some(registry_beside(authority)), ..Limits::MACHINE },
        attributes: inventory::inventory(),
        inventory: inventory::details(),
        boot_id: inventory::boot_id(),
    })
}

/// Host of an agent that is process 1, which may restart the machine.
struct Machine;

impl Host for Machine {
    fn may_leave(&self) -> bool {
        true
    }

    fn leave(&self, how: Leave) -> Result<(), Error> {
        rustix::fs::sync();
        let (command, doing) = match how {
            Leave::Reboot => (RebootCommand::Restart, "restart the machine"),
            Leave::Kexec => (RebootCommand::Kexec, "start the loaded kernel"),
            Leave::PowerOff => (RebootCommand::PowerOff, "power the machine off"),
        };
        rustix::system::reboot(command).map_err(Error::io(doing))
    }
}
