//! YAML as Kubernetes' programs read and write it (`sigs.k8s.io/yaml`, whose parser and emitter are
//! `go.yaml.in/yaml` v2): JSON in other words, with the scalars of YAML 1.1.
//!
//! Never: I/O, unbounded memory for foreign text, a value that JSON cannot say.
//! Enter at [`read`] and [`write`].

mod read;
mod scalar;
mod write;

pub use read::{Document, MAX_DEPTH, MAX_WEIGHT, Unreadable, read};
pub use write::write;
