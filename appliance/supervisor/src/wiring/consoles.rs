//! Wiring of the serial consoles and of their SSH server.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use ::controllers::consoles::HardwareConsoles;
use ::controllers::machine::Drivers;
use anyhow::Context as _;
use box_owner::Owner;
use box_owner::users::Role;
use futures_util::FutureExt as _;
use serial_console::Consoles;
use serial_console::ssh::{self, HostKey};

use super::{Wiring, boot};

impl Wiring {
    /// Starts the recorders, and the SSH server on the address of each network; in safe mode
    /// nothing, because no BMC is reached then.
    pub(super) async fn consoles(
        &mut self,
        state: &Path,
        (drivers, owner): (Arc<dyn Drivers>, Arc<Owner>),
    ) -> anyhow::Result<()> {
        if self.safe.mode.is_some() {
            return Ok(());
        }
        // The wiring starts the controllers once, and the consoles with them.
        let _ = self.bmc_drivers.set(Arc::clone(&drivers));
        let key = HostKey::ensure(state).context("cannot prepare the consoles over SSH")?;
        tracing::info!(fingerprint = key.fingerprint(), "SSH host key of the serial consoles");
        let consoles = Consoles::new(Arc::new(HardwareConsoles {
            objects: Arc::clone(&self.objects),
            drivers,
            user_keys: Arc::new(move || console_keys(&owner)),
            listed: Mutex::default(),
        }));
        // The wiring starts the consoles once.
        let _ = self.consoles.set(consoles.clone());
        let (recorders, shutdown) = (consoles.clone(), self.shutdown.clone());
        self.spawn("serial consoles", async move {
            recorders.run(shutdown).await;
            Ok(())
        });
        for network in self.config.networks.clone() {
            let address = SocketAddr::from((network.address, ssh::PORT));
            let (key, consoles) = (key.clone(), consoles.clone());
            let shutdown = self.shutdown.clone();
            let open = move || {
                let (key, consoles, shutdown) = (key.clone(), consoles.clone(), shutdown.clone());
                async move {
                    let listener = boot::listen_at("serial consoles", address).await?;
                    let served = ssh::serve(listener, key, consoles, shutdown);
                    Ok(Box::pin(served.map(Ok)) as boot::ServiceFuture)
                }
            };
            self.serve_when_open("the consoles' port", &network.interface, open).await;
        }
        Ok(())
    }
}

/// Returns the SSH keys of all users who may use consoles: a console takes input.
fn console_keys(owner: &Owner) -> Vec<String> {
    let users = owner.users().into_iter().filter(|user| user.role != Role::Viewer);
    users.flat_map(|user| user.ssh_keys).collect()
}
