//! The box itself as a device: settings, updates and their proof, backups, factory reset, first
//! setup, names, time and keys. It also has the actions that people start at panel and keyboard.
//!
//! Never: a DHCP answer, a boot file or anything else for a machine (crate `provisioning`).
//! Enter at [`opened::open`] (the store at a start), [`settings::Settings`],
//! [`update::Updates`], [`backups::Backups`] and [`reset::carry_out`].

pub mod admin_tokens;
pub mod audit;
pub mod backups;
pub mod confined;
pub mod copies;
pub mod firmware;
pub mod local_actions;
pub mod names;
pub mod opened;
pub mod ownership;
pub mod proving;
pub mod reset;
pub mod sealing;
pub mod settings;
pub mod setup;
pub mod storage;
pub mod update;
pub mod upload;
