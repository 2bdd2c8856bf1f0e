//! Device management of the box: settings, updates and their trial, backups, factory reset, first
//! setup, names, time and keys. Also the actions that people start at panel and keyboard.
//!
//! Never: a DHCP response, a boot file or anything else for a machine (crate `provisioning`). Enter
//! at [`opened::open`] (the store at a start), [`settings::Settings`], [`update::Updates`],
//! [`backups::Backups`] and [`reset::carry_out`].

mod actions;
pub mod audit;
pub mod backups;
pub mod confined;
pub mod firmware;
mod keys;
pub mod settings;
pub mod setup;
pub mod storage;
pub mod update;
pub mod upload;

pub use actions::{local_actions, reset};
pub use firmware::names;
pub use keys::{SECRET_KEYS, copies, sealing};
pub use storage::opened;
pub use update::proving;
