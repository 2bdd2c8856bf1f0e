//! A NUC's management engine with Intel AMT at `10.77.0.(100+N)` ports 16992 and 16994.

use std::fmt;
use std::net::TcpListener;
use std::sync::Arc;

use amt_sim::{AmtSim, BootSource, Chassis, ChassisAction};

use crate::namespace::Namespace;
use crate::{BootDevice, Error, Nuc};

/// TCP ports of WS-Management and redirection without TLS.
const PORTS: [u16; 2] = [16992, 16994];

/// A running engine, ended when dropped.
pub struct AmtEngine(#[allow(dead_code, reason = "its drop ends the engine")] AmtSim);

impl fmt::Debug for AmtEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AmtEngine")
    }
}

impl AmtEngine {
    /// Starts the engine of a NUC inside the rack's namespace.
    pub fn start(nuc: &Arc<Nuc>, rack: &Namespace) -> Result<Self, Error> {
        let address = nuc.bmc().address;
        let listen = |port| {
            let listener = rack.enter(|| TcpListener::bind((address, port)))?;
            listener.map_err(Error::io(format!("listen on {address} port {port}")))
        };
        let listeners = [listen(PORTS[0])?, listen(PORTS[1])?];
        let chassis = Arc::new(NucChassis(Arc::clone(nuc)));
        let sim = AmtSim::start_for(listeners, chassis)
            .map_err(|error| Error::Config(format!("start a management engine: {error:#}")))?;
        Ok(Self(sim))
    }
}

#[derive(Debug)]
struct NucChassis(Arc<Nuc>);

impl NucChassis {
    fn perform(&self, action: ChassisAction) -> Result<(), Error> {
        let nuc = &self.0;
        let boot = |source| match source {
            BootSource::Default => Ok(()),
            BootSource::Network => nuc.bmc_boot(BootDevice::Network),
            BootSource::Disk => nuc.bmc_boot(BootDevice::Disk),
        };
        match action {
            ChassisAction::On(source) => boot(source).and_then(|()| nuc.bmc_power_on()),
            ChassisAction::Reset(source) => boot(source).and_then(|()| nuc.bmc_reset()),
            ChassisAction::Cycle(source) => {
                nuc.bmc_power_off()?;
                boot(source).and_then(|()| nuc.bmc_power_on())
            }
            ChassisAction::Off => nuc.bmc_power_off(),
            ChassisAction::SoftOff => nuc.bmc_soft_off(),
        }
    }
}

impl Chassis for NucChassis {
    fn is_on(&self) -> bool {
        self.0.bmc_power()
    }

    fn control(&self, action: ChassisAction) -> Result<(), String> {
        self.perform(action).map_err(|error| stdx::chain(&error))
    }
}
