//! Cluster API infrastructure provider of the box: the files of a provider release at the URLs of a
//! GitLab package registry, as `clusterctl` reads them, and the client of a management cluster.
//!
//! This crate must never contain a listening socket, the store, or a secret in a log. Each file is
//! the same for every box of a version, except `clusterctl.yaml` (host name) and `clusterctl.sh`
//! (host, certificate authority).
//!
//! Enter at [`Repository`] (files), [`router`] (HTTP), [`remote::RemoteObjects`] (API of one
//! management cluster), [`management::ManagementClusters`] (connections to all of them) and
//! [`pairing`] (a new connection).

mod archive;
mod components;
mod handlers;
mod host;
pub mod management;
pub mod pairing;
mod provider;
pub mod remote;
mod repository;

pub use handlers::router;
pub use host::{gitlab_names, with_gitlab_names};
pub use repository::Repository;
