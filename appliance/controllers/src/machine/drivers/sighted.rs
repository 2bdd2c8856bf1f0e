//! Driver of a machine whose power state only its own requests show.

use std::future::ready;
use std::sync::Arc;

use api::bmc::Connection;
use api::meta::ObjectKey;
use bmc::{
    Capabilities, Driver, DriverLayer, Endpoint, Error, Pending, Power, PowerAction, Protocol,
};
use objects::Objects;

use super::{Drivers, login};
use crate::power::{Conclusion, Sightings};

/// Power actions of a machine whose agent or system powers off on request.
const WITH_OFF: &[PowerAction] = &[PowerAction::On, PowerAction::Off, PowerAction::Soft];

/// Returns the driver for a connection of the bmc Machine `machine`, with the credentials from its
/// Secret. `owner` is the object whose namespace a Secret reference without namespace means.
///
/// # Errors
/// The connection has no driver, its Secret is missing or incomplete, or an option is invalid.
pub async fn connect_machine(
    objects: &dyn Objects,
    drivers: &dyn Drivers,
    connection: &Connection,
    owner: &ObjectKey,
    machine: Option<&ObjectKey>,
) -> Result<Arc<dyn Driver>, String> {
    let endpoint = login(objects, connection, owner).await?;
    Ok(open(drivers, endpoint, machine))
}

/// Returns the driver of an endpoint. A driver without a report of the power state gets its MAC
/// addresses, its interfaces and its power state from the requests of the machine.
pub fn open(
    drivers: &dyn Drivers,
    mut endpoint: Endpoint,
    machine: Option<&ObjectKey>,
) -> Arc<dyn Driver> {
    let (Protocol::WakeOnLan(options), Some(machine), Some(sightings)) =
        (&mut endpoint.protocol, machine, drivers.sightings())
    else {
        return drivers.open(endpoint);
    };
    let seen = sightings.of(machine);
    if options.macs.is_empty() {
        options.macs = seen.macs;
    }
    options.interfaces = seen.interfaces;
    let (driver, machine) = (drivers.open(endpoint), machine.clone());
    Arc::new(SightedDriver { driver, sightings, machine })
}

/// Driver that reads the power state from the requests of the machine, and switches it off through
/// its agent or the power hook of its system.
struct SightedDriver {
    driver: Arc<dyn Driver>,
    sightings: Arc<dyn Sightings>,
    machine: ObjectKey,
}

impl SightedDriver {
    fn conclusion(&self) -> Conclusion {
        self.sightings.of(&self.machine).conclude(None, false)
    }
}

impl DriverLayer for SightedDriver {
    fn below(&self) -> &dyn Driver {
        self.driver.as_ref()
    }

    fn capabilities(&self) -> Capabilities {
        let capabilities = self.driver.capabilities();
        match self.sightings.of(&self.machine).can_power_off() {
            true => Capabilities { power: WITH_OFF, ..capabilities },
            false => capabilities,
        }
    }

    fn power_reason(&self) -> Option<String> {
        Some(self.conclusion().reason)
    }

    fn is_silent(&self) -> bool {
        let seen = self.sightings.of(&self.machine);
        seen.are_silent(&seen.conclude(None, false))
    }

    fn power(&self) -> Pending<'_, Power> {
        self.sightings.watch(&self.machine);
        Box::pin(ready(Ok(self.conclusion().power)))
    }

    fn set_power(&self, action: PowerAction) -> Pending<'_, ()> {
        match action {
            PowerAction::Off | PowerAction::Soft => Box::pin(async move {
                let confirmed = self.sightings.power_off(&self.machine).await;
                confirmed.map_err(|reason| Error::Withheld { action, reason, may_pass: false })
            }),
            action => self.driver.set_power(action),
        }
    }
}
