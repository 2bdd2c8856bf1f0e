//! Provisioning services of the box: the index of stored objects, the adapters for the boot
//! services, the networks and the image cache.
//!
//! This crate must never open a socket of the API or of the web pages, and never decide about the
//! box itself. Enter at [`index::Index`], which [`object_watcher::ObjectWatcher`] fills from
//! watches. [`hardware_views::HardwareViews`] implements `dhcp::Directory`, `netboot::Plans` and
//! `metadata::Instances`. [`agent_backend::AgentBackend`] is the backend of the workflow service.

pub mod agent_backend;
mod enrollment;
mod events;
pub mod images;
pub mod index;
mod machines;
pub mod networks;
pub mod object_watcher;
pub mod objects;
pub mod status_sources;

pub use self::objects::{recorder, references};
pub use events::{dhcp_requests, event_history, observers};
pub use machines::{boot_token, hardware_views, instances, learned_loaders, preserve};
