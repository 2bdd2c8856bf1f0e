//! Installation of a Cluster API machine on a Hardware: operating system image, user data,
//! Template, Workflow and provider ID, compatible with CAPT (cluster-api-provider-tinkerbell).
//!
//! All functions are pure. In the order of an installation: [`image::resolve`],
//! [`user_data::user_data`], [`template::Overrides::data_or`] with [`template::default_data`], and
//! [`workflow::objects`].
//!
//! This crate must never read or write objects.

mod error;
pub mod image;
mod multipart;
mod provider_id;
pub mod template;
pub mod user_data;
pub mod workflow;

pub use error::InstallError;
pub use provider_id::ProviderId;
