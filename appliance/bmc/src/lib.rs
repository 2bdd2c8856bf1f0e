//! Control of power and boot device of machines through their management controllers (BMCs).
//!
//! This crate must never act on an unconfirmed state, use a weaker protection than requested,
//! print a password, or know machines and jobs (the crate `controllers` does).
//!
//! Enter at [`Driver`], [`registry::open`] and [`ensure()`]; in other crates' tests at
//! [`fake::Fake`].

mod capabilities;
mod driver;
mod endpoint;
mod ensure;
mod error;
pub mod fake;
mod hardware;
mod intel_amt;
mod ipmi_lan;
pub mod registry;
mod services;
mod wake_on_lan;

pub use ::ipmi::{CipherSuite, Error as IpmiError};
pub use ::poe::{Login as PoeLogin, Options as PoeOptions, PortId, Settings as PoeSettings};
pub use ::redfish::{Security as RedfishSecurity, Trust};
pub use ::webhook::plug::{PRESETS, PlugAddress, Preset};
pub use ::webhook::{Algorithm, RpcOptions, Tls};
pub use amt::{Fingerprint, RootCertificate, Security};
pub use capabilities::{BootControl, Capabilities, Feature};
pub use driver::{
    BootDevice, BootOverride, Confirmation, Driver, DriverLayer, Pending, Power, PowerAction,
};
pub use endpoint::{
    Address, AmtOptions, Credentials, Endpoint, PlugProtocol, Protocol, RedfishOptions,
};
pub use ensure::{Step, decide, ensure};
pub use error::Error;
pub use hardware::{HardwareInventory, LogEntry, Sensor, SensorState};
pub use intel_amt::IntelAmt;
pub use ipmi_lan::IpmiLan;
pub use services::check;
pub use wake_on_lan::{SecureOn, WakeOnLan, magic_packet};
