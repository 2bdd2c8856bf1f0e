//! What a machine asks about itself once it runs: the EC2 tree that stock cloud-init and
//! Tinkerbell's users know, the NoCloud seed, Ignition's and Talos' configuration, rootio's storage
//! JSON, and phone-home.
//!
//! Must never: hand one machine's data to another (the sender of a request is whom [`Instances`]
//! takes it for, unless the owner opened the way by instance id), write user data to a log, or
//! invent a value.
//!
//! # Whom user data reaches
//!
//! No stock client shows a secret when it asks: cloud-init's datasources, Ignition and Talos send
//! what their URL says, and a secret in a URL is none. So a machine is known by its address, and on
//! the box's own IPv4 links by the hardware address behind it. A NIC that copies both addresses
//! reads what that machine would.
//!
//! `user_data = "window"`, the default, bounds that in time. User data, vendor data and what is
//! made of them are given while a run of the machine waits or works, for `user_data_window_secs`
//! after one ended well, and of that only for `phone_home_grace_secs` after the machine first
//! phoned home. Outside the window the machine is served as one without user data. cloud-init takes
//! that calmly at a later boot: what it ran once it does not run again. What user data asks for at
//! every boot no longer happens, unless `manual_cache_clean` keeps the first boot's. A system that
//! is booted from the network has no window: it needs its user data at every boot.
//!
//! The window does not help against a NIC that copies both addresses while it is open. A phone-home
//! in a machine's name closes it. A restart of the box forgets phone-homes, and leaves the time
//! alone to close it.
//!
//! Enter at [`router`]; the data comes through [`Instances`], the news go to [`Observer`].

mod config;
mod ec2;
mod instance;
mod network;
mod nocloud;
mod phone_home;
mod proxy;
mod rootio;
mod site;
mod token;
mod tootles;
mod window;
mod yaml;

pub use config::{Addressing, Config, Imdsv2, UserData};
pub use instance::{
    Instance, Instances, Interface, OperatingSystem, Provisioning, Route, Unmatched,
};
pub use phone_home::PhoneHome;
pub use site::{Observer, router};
