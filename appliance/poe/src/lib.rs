//! Power control of machines by the ports of a switch with Power over Ethernet: SNMP requests for
//! the objects of POWER-ETHERNET-MIB (RFC 3621).
//!
//! Must never: switch a port that the switch does not report or whose name is not the expected one,
//! send a community string in place of a user and its keys, put a password into an error, or know
//! machines and jobs (the crate `controllers` does).
//!
//! Enter at [`Switch`] for requests, and at [`Reading`] for what a switch reports of a port.

mod error;
mod login;
mod port;
mod request;
mod settings;
mod switch;

pub use error::{Error, LoginRefusal, Refusal, Silence};
pub use login::{Authentication, Login, User};
pub use port::{ExpectedName, Fault, PortId, PortState, Reading};
pub use request::Line;
pub use settings::Settings;
pub use switch::{Options, Switch};
