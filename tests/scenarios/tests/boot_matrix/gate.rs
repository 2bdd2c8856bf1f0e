//! How many machines are on at once, in all tests of this program together.

use std::sync::{Condvar, Mutex, PoisonError};

/// Firmware spends a third of its boot waiting, so one machine more than there are processors.
const MORE_THAN_PROCESSORS: usize = 1;

static ON: Mutex<usize> = Mutex::new(0);
static ONE_LESS: Condvar = Condvar::new();

/// The permission to have one machine on, until this is dropped.
pub struct Place(());

/// Waits for a place.
pub fn enter() -> Place {
    let places = std::thread::available_parallelism().map_or(1, usize::from) + MORE_THAN_PROCESSORS;
    let on = ON.lock().unwrap_or_else(PoisonError::into_inner);
    let on = ONE_LESS.wait_while(on, |on| *on >= places);
    *on.unwrap_or_else(PoisonError::into_inner) += 1;
    Place(())
}

impl Drop for Place {
    fn drop(&mut self) {
        *ON.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        ONE_LESS.notify_one();
    }
}
