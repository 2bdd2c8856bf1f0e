//! Management controllers of the machines: slow, and at times failing before or after they executed
//! a command.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bmc::{
    Address, BootControl, BootDevice, BootOverride, Capabilities, Driver, Endpoint, Error,
    IpmiError, Pending, Power, PowerAction,
};
use controllers::Drivers;

use super::incident::Actor;
use super::nuc::Nuc;
use super::plan;
use super::world::World;

/// Maximum response time of a BMC.
const ANSWER: Duration = Duration::from_secs(2);

/// Timeout of a request to a BMC that does not answer.
const SILENT: Duration = Duration::from_secs(10);

/// Drivers of the management controllers of all machines.
pub struct Controllers(pub Weak<World>);

impl Drivers for Controllers {
    fn open(&self, endpoint: Endpoint) -> Arc<dyn Driver> {
        let nuc = self.0.upgrade().and_then(|world| {
            let index = plan::index_of(&endpoint.address.host)?;
            world.nucs.get(&index).cloned()
        });
        Arc::new(Controller { world: self.0.clone(), nuc, address: endpoint.address })
    }
}

struct Controller {
    world: Weak<World>,
    nuc: Option<Arc<Nuc>>,
    address: Address,
}

impl Controller {
    /// Reads a state. A reading does not count as a step of a workflow.
    async fn read<T>(&self, read: impl FnOnce(&World, &Arc<Nuc>) -> T) -> Result<T, Error> {
        self.ask(false, read).await
    }

    /// Executes a command. A command counts as a step of a workflow.
    async fn execute<T>(&self, command: impl FnOnce(&World, &Arc<Nuc>) -> T) -> Result<T, Error> {
        self.ask(true, command).await
    }

    /// Runs `ask` after a delay, and may fail before or after running it.
    async fn ask<T>(
        &self,
        is_step: bool,
        ask: impl FnOnce(&World, &Arc<Nuc>) -> T,
    ) -> Result<T, Error> {
        let silent = || {
            let address = (&self.address).into();
            Error::from(IpmiError::Timeout { address, step: "a command", after: SILENT })
        };
        let (Some(world), Some(nuc)) = (self.world.upgrade(), &self.nuc) else {
            return Err(silent());
        };
        tokio::time::sleep(world.chance.upto(ANSWER)).await;
        if !world.outages.reaches(nuc.index, world.elapsed()) {
            tokio::time::sleep(SILENT).await;
            return Err(silent());
        }
        let fails = world.chance.of_hundred(world.chance.faults().controllers);
        if fails && world.chance.coin() {
            return Err(silent());
        }
        if is_step {
            world.step(Actor::Box, "a controller is asked").await;
        }
        let answer = ask(&world, nuc);
        if is_step {
            world.step(Actor::Box, "a controller answers").await;
        }
        if fails { Err(silent()) } else { Ok(answer) }
    }
}

impl Driver for Controller {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            power: Capabilities::ALL_POWER,
            boot: BootControl::Always,
            features: Vec::new(),
            missing: Vec::new(),
            weakness: None,
        }
    }

    fn power(&self) -> Pending<'_, Power> {
        Box::pin(self.read(|_, nuc| if nuc.is_on() { Power::On } else { Power::Off }))
    }

    fn set_power(&self, action: PowerAction) -> Pending<'_, ()> {
        if let (Some(world), Some(nuc)) = (self.world.upgrade(), &self.nuc) {
            world.ledger().asks(&plan::name(nuc.index), action);
        }
        Box::pin(self.execute(move |world, nuc| {
            let is_wanted = nuc.is_wanted();
            world.ledger().switched(&plan::name(nuc.index), action, is_wanted);
            match action {
                PowerAction::On => nuc.is_switched(false),
                PowerAction::Off | PowerAction::Soft => nuc.switch_off(),
                PowerAction::Cycle | PowerAction::Reset if nuc.is_on() => nuc.is_switched(true),
                PowerAction::Cycle | PowerAction::Reset => {}
            }
        }))
    }

    fn set_boot_device(&self, boot: BootOverride) -> Pending<'_, ()> {
        Box::pin(self.execute(move |_, nuc| nuc.boot_next(boot.device == BootDevice::Pxe)))
    }

    fn boot_device(&self) -> Pending<'_, Option<BootOverride>> {
        Box::pin(self.read(|_, nuc| {
            nuc.boots_pxe_next().then_some(BootOverride {
                device: BootDevice::Pxe,
                persistent: false,
                efi: true,
            })
        }))
    }
}
