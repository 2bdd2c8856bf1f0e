//! Client of the box's API, for programs on other computers: requests under the rights of a
//! kubeconfig, lists, watches, lookups by name or address, file transfers and serial consoles; and
//! HTTPS to a box that is known by its pin only.
//!
//! Never: prints, prompts, reads the command line, or sends a token to a box whose certificate the
//! kubeconfig's CA did not sign.
//!
//! Enter at [`Client::new`] with a [`Kubeconfig`]. [`Path`] names what a request is about, and
//! [`ClientError`] holds every failure with its hint.

mod client;
mod error;
mod kubeconfig;
pub mod pinned;

pub use client::{
    ApiObjects, BackupUpload, Client, ConsoleOutput, NewContent, Path, ShowWarning, UploadContent,
    Watch, WatchEvent, find, query,
};
pub use error::{ClientError, ReachFailure, decode};
pub use kubeconfig::{Kubeconfig, read_text};
