//! YAML as Kubernetes' programs read and write it (`sigs.k8s.io/yaml`, whose parser and emitter are
//! `go.yaml.in/yaml` v2). Values are JSON values, with the scalar syntax of YAML 1.1.
//!
//! Never does I/O, never allocates unlimited memory for received text, never accepts a value that
//! JSON cannot express. Enter at [`read`] and [`write`].

mod read;
mod scalar;
mod write;

pub use read::{Document, MAX_DEPTH, MAX_WEIGHT, Unreadable, read};
pub use write::write;
