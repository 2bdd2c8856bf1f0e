//! The driver: sockets and time around the machines of this module.

use crate::{BootOverride, Driver, Endpoint, Error, Pending, Power, PowerAction};

/// A BMC spoken to in IPMI 2.0.
#[derive(Debug)]
pub struct Ipmi {
    endpoint: Endpoint,
}

impl Ipmi {
    /// A driver for that BMC; nothing is sent yet.
    pub fn new(endpoint: Endpoint) -> Self {
        Self { endpoint }
    }

    fn silent<T>(&self) -> Pending<'_, T> {
        let (address, after) = (self.endpoint.address.clone(), std::time::Duration::ZERO);
        Box::pin(async move { Err(Error::NoAnswer { address, step: "anything", after }) })
    }
}

impl Driver for Ipmi {
    fn name(&self) -> &'static str {
        "ipmi"
    }

    fn power(&self) -> Pending<'_, Power> {
        self.silent()
    }

    fn set_power(&self, _: PowerAction) -> Pending<'_, ()> {
        self.silent()
    }

    fn set_boot_device(&self, _: BootOverride) -> Pending<'_, ()> {
        self.silent()
    }

    fn boot_device(&self) -> Pending<'_, Option<BootOverride>> {
        self.silent()
    }
}
