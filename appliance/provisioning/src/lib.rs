//! Provisioning services of the box: the index over stored objects, the adapters for the boot
//! services, the networks and the image cache.
//!
//! This crate must never open a socket of the API or of the web pages, and never take a decision
//! about the box itself. Enter at [`index::Index`], which [`object_watcher::ObjectWatcher`] fills
//! from watches. [`hardware_views::HardwareViews`] implements `dhcp::Directory`, `netboot::Plans`
//! and `metadata::Instances`. [`agent_backend::AgentBackend`] is the backend of the workflow
//! service.

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
