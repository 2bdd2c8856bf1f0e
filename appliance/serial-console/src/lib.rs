//! Serial consoles of machines: one session per machine, recorded in memory, shown to any number of
//! viewers, and offered over SSH.
//!
//! Never: logs what a console shows or what is typed, writes a recording to a disk, lets a viewer
//! slow down the recorder, or accepts a password.
//!
//! Enter at [`Consoles::new`] and [`ssh::serve`].

mod consoles;
mod error;
mod recorder;
mod ring;
pub mod ssh;

pub use consoles::{Consoles, Machines, Pending, RecordMode, Recorded};
pub use error::{Error, OpenError};
pub use recorder::{ConsoleOutput, Input, Session, Viewer};
