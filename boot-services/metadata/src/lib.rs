//! Serves metadata to running machines: the EC2 tree for stock cloud-init and Tinkerbell's users,
//! the NoCloud seed, Ignition's and Talos' configuration, rootio's storage JSON, phone-home, and
//! the power hooks by which the box powers installed systems off.
//!
//! Never: gives one machine's data to another ([`Instances`] identifies the sender, unless the
//! owner has allowed access by instance id), writes user data to a log, or invents a value.
//!
//! # Protection of user data
//!
//! Stock clients send no secret: cloud-init's datasources, Ignition and Talos request a fixed URL,
//! and a URL does not stay secret. So a machine is identified by its IP address and, on the box's
//! own IPv4 links, also by its MAC address. A NIC that copies both addresses can read the machine's
//! data.
//!
//! `user_data = "window"`, the default, limits this in time. User data, vendor data and data made
//! from them are served while a run of the machine waits or is in progress, and for
//! `user_data_window_secs` after a successful run. The machine's first phone-home after the run
//! shortens this time to `phone_home_grace_secs`. Outside the window the machine gets the answers
//! for a machine without user data. cloud-init accepts this at a later boot: it does not repeat its
//! one-time work. Work of user data at every boot no longer happens, unless `manual_cache_clean`
//! keeps the data of the first boot. A system that boots from the network cannot use the window: it
//! needs its user data at every boot.
//!
//! An open window does not protect against a NIC that copies both addresses. A phone-home in a
//! machine's name closes the window. The box forgets phone-homes when it restarts; then only the
//! time closes the window.
//!
//! Enter at [`router`]. Data come from [`Instances`], events go to [`Observer`], requests to power
//! off from [`PowerHooks`]. Tests of other crates use [`fake`].

mod config;
mod ec2;
mod handlers;
mod instance;
mod nocloud;
mod phone_home;
mod power_hook;
mod proxy;
mod rootio;
mod token;
mod window;

pub use config::{Addressing, Config, Imdsv2, UserData};
pub use handlers::{Observer, fake, router};
pub use instance::{
    Instance, Instances, Interface, OperatingSystem, Provisioning, Route, Unmatched,
};
pub use phone_home::PhoneHome;
pub use power_hook::{HookState, PowerHooks, PowerOffError};
