//! Cluster API infrastructure provider of the box, as `clusterctl` sees it: the files of a provider
//! release, at the URLs of a GitLab package registry.
//!
//! This crate must never contain a socket, the store or a secret. Each file is the same for every
//! box of a version, except `clusterctl.yaml` (host name) and `clusterctl.sh` (host, certificate
//! authority).
//!
//! Enter at [`Repository`] (files) and [`router`] (HTTP).

mod archive;
mod components;
mod handlers;
mod host;
mod repository;

pub use handlers::router;
pub use host::with_gitlab_names;
pub use repository::Repository;
