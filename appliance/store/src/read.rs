//! Reads of a running store: walks, watches, snapshots and checks.

mod check;
mod frozen;
mod sizes;
mod snapshot;
mod walk;
mod watch;

pub use check::CheckReport;
pub use frozen::Frozen;
pub use sizes::Size;
pub use snapshot::RESTORE_LEAP;
pub use walk::{MAX_UNDONE_BYTES, Walk, WalkResult};
pub use watch::Watch;
