//! Real programs of others, run against our parts or as what our parts are run against.
//!
//! Never: a test that passes because a program is missing. Each is looked for first, and its
//! absence is an error that names the package to install.
//! Enter at [`IpmiSim`], [`Ipmitool`], [`bmc_sim::BmcSim`]; the tests are in `tests/peers/`.

pub mod bmc_sim;
mod ipmi_sim;
mod ipmitool;
mod program;

pub use ipmi_sim::IpmiSim;
pub use ipmitool::Ipmitool;
pub use program::{find, poll};
