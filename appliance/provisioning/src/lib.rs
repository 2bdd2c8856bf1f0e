//! Everything that machines get from the box: the index over stored objects, and over that index
//! the adapters of the boot services' read traits, the networks and the images of other servers.
//!
//! Never: a socket of the API or of the pages, a decision about the box itself. Enter at
//! [`index::Index`], which [`pump::Pump`] fills from watches; [`hardware_views::HardwareViews`]
//! implements `dhcp::Directory`, `netboot::Plans` and `metadata::Instances`, and [`rack::Machines`]
//! the backend of the agents' service.

pub mod boot_token;
mod enrollment;
pub mod event_history;
pub mod hardware_views;
pub mod heard;
pub mod images;
pub mod index;
pub mod instances;
pub mod loaders;
pub mod networks;
pub mod objects;
pub mod observers;
pub mod preserve;
pub mod pump;
pub mod rack;
pub mod recorder;
pub mod references;
pub mod status_sources;
