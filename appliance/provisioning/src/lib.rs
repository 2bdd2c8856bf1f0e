//! Everything that machines get from the box: the index over stored objects, and over that index
//! the adapters of the boot services' read traits, the networks and the images of other servers.
//!
//! Never: a socket of the API or of the pages, a decision about the box itself. Enter at
//! [`index::Index`], which [`object_watcher::ObjectWatcher`] fills from watches;
//! [`hardware_views::HardwareViews`] implements `dhcp::Directory`, `netboot::Plans` and
//! `metadata::Instances`, and [`agent_backend::AgentBackend`] the backend of the agents' service.

pub mod agent_backend;
pub mod boot_token;
pub mod dhcp_requests;
mod enrollment;
pub mod event_history;
pub mod hardware_views;
pub mod images;
pub mod index;
pub mod instances;
pub mod learned_loaders;
pub mod networks;
pub mod object_watcher;
pub mod objects;
pub mod observers;
pub mod preserve;
pub mod recorder;
pub mod references;
pub mod status_sources;
