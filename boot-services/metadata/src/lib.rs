//! Metadata for running machines: the EC2 tree that stock cloud-init and Tinkerbell's users know,
//! the NoCloud seed, Ignition's and Talos' configuration, rootio's storage JSON, and phone-home.
//!
//! Never: gives one machine's data to another ([`Instances`] identifies the sender, unless the
//! owner has allowed access by instance id), writes user data to a log, or invents a value.
//!
//! # Protection of user data
//!
//! Stock clients send no secret: cloud-init's datasources, Ignition and Talos request a fixed URL,
//! and a secret in a URL is not one. So a machine is identified by its address, and on the box's
//! own IPv4 links by the MAC address behind it. A NIC that copies both addresses reads the same
//! data.
//!
//! `user_data = "window"`, the default, limits this in time. User data, vendor data and data made
//! from them are given while a run of the machine waits or works, and for `user_data_window_secs`
//! after a successful one, but only for `phone_home_grace_secs` after the machine first phoned
//! home. Outside the window the machine gets the answers for a machine without user data.
//! cloud-init accepts that at a later boot: it does not repeat its one-time work. Work of user data
//! at every boot no longer happens, unless `manual_cache_clean` keeps the data of the first boot. A
//! system that is booted from the network has no window: it needs its user data at every boot.
//!
//! The window does not protect against a NIC that copies both addresses while it is open. A
//! phone-home in a machine's name closes it. A restart of the box forgets phone-homes; then only
//! the time closes it.
//!
//! Enter at [`router`]; data come from [`Instances`], events go to [`Observer`]. Tests of other
//! crates use [`fake`].

mod config;
mod ec2;
mod handlers;
mod instance;
mod nocloud;
mod phone_home;
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
