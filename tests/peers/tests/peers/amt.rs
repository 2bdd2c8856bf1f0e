//! Our driver of Intel AMT and the simulated engine, checked with clients that others wrote.

mod clients;
mod console;
mod discovery;
mod driver;
mod faults;
mod https_boot;
mod objects;
mod readings;

use std::sync::Arc;

use amt_sim::{AmtSim, Behavior};
use bmc::{Driver, IntelAmt, Protocol, Security, registry};

const POWER_STATE: &str = "CIM_AssociatedPowerManagementService.Get";

fn start(behavior: Behavior) -> (AmtSim, Arc<dyn Driver>) {
    let sim = AmtSim::start(behavior).unwrap();
    let driver = Arc::from(registry::open(sim.endpoint()));
    (sim, driver)
}

fn device(sim: &AmtSim, security: Security) -> IntelAmt {
    let mut endpoint = sim.endpoint();
    endpoint.protocol = Protocol::Amt(security.into());
    registry::intel_amt(endpoint, security.into())
}

/// Power request to the engine, as the simulator records it.
fn request(state: u32) -> String {
    format!("CIM_PowerManagementService.RequestPowerStateChange {state}")
}

fn redirect(state: u32) -> String {
    format!("AMT_RedirectionService.RequestStateChange {state}")
}
