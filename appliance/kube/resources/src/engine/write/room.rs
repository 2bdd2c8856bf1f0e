//! Refusal of clients' writes that enlarge an object while the disk is nearly full. Deletes and the
//! box's own writes are still accepted.

use store::Txn;

use crate::engine::{Place, WriteOptions};
use crate::status_error::{Reason, StatusError};

/// Permitted growth of an object on a full disk, in bytes: enough for a condition or a finalizer.
const GROWTH_MAX: usize = 1024;

/// Sizes in bytes of the stored object before and after a write; `before` is 0 for a create.
#[derive(Debug, Clone, Copy)]
pub struct Growth {
    pub before: usize,
    pub after: usize,
}

/// Checks that a write may enlarge an object.
///
/// # Errors
/// 507 if the disk is nearly full and the object would grow by more than [`GROWTH_MAX`].
pub fn check(
    txn: &Txn<'_>,
    place: &Place,
    name: &str,
    Growth { before, after }: Growth,
    options: &WriteOptions,
) -> Result<(), StatusError> {
    let room = txn.free_space();
    let grows = before == 0 || after > before.saturating_add(GROWTH_MAX);
    if grows && room.is_short() && options.manager.is_some() {
        let message = format!(
            "cannot store {} {name:?}: the box's disk is nearly full ({} are free, {} are \
             needed): delete data that is not needed",
            place.definition.qualified(),
            stdx::bytes(room.free),
            stdx::bytes(room.needed)
        );
        let reason = Reason::InsufficientStorage;
        return Err(StatusError::about(reason, &place.definition, name, message));
    }
    Ok(())
}
