//! Actions on a machine that the page and the panel offer: one table with the effect of each
//! action, and the objects that an action writes.
//!
//! Never: switches power or writes a disk itself (controllers do, because of the written objects),
//! acts on a machine or workflow that the request does not name, or repeats a request: each request
//! has an id, and the same id twice has one effect.
//!
//! Enter at [`Action`] (table), [`offered`] (the actions for a machine) and [`MachineActions`]
//! (execution).

mod action;
mod control;
mod error;
mod install;
mod lookup;
mod offer;
mod run;

pub use action::{ACTIONS, Action, Confirmation, Description};
pub use control::{ActionRequest, MachineActions};
pub use error::{ActionError, FieldError};
pub use install::{DiskChoice, InstallChoices, InstallForm, Installed, SystemChoice};
pub use lookup::change;
pub use offer::{confirmation, offered};
