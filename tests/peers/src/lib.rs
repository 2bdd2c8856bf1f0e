//! Stock programs, run against our parts or as a reference for them.
//!
//! Never: a test passes because a program is missing. A missing program is an error that names the
//! package to install. Enter at [`IpmiSim`], [`Ipmitool`] and
//! [`bmc_sim::BmcSim`] for management controllers, at [`PoeSwitch`] for a switch with Power over
//! Ethernet, at [`Cluster`], [`Tinboxd`] and [`Kubectl`] for
//! the API, at [`cluster_api::Managers`] and [`clusterctl::Workstation`] for Cluster API, at
//! [`Docker`] for containers of agents; the tests are in `tests/peers/`.

pub mod bmc_sim;
mod built;
mod cluster;
pub mod cluster_api;
pub mod clusterctl;
mod docker;
mod ipmi_sim;
mod ipmitool;
pub mod kubeconfig;
mod kubectl;
mod loopback;
pub mod old_bmc;
mod poe_switch;
mod process;
mod program;
mod tinboxd;
mod turn;

pub use built::{built, printed};
pub use cluster::{Cluster, ClusterConfig};
pub use docker::Docker;
pub use ipmi_sim::IpmiSim;
pub use ipmitool::Ipmitool;
pub use kubectl::{Kubectl, Printed, run};
pub use loopback::{loopback_address, loopback_port};
pub use poe_switch::PoeSwitch;
pub use process::Process;
pub use program::{find, poll};
pub use tinboxd::Tinboxd;
pub use turn::{cache, turn};
