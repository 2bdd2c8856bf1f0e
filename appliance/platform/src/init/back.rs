//! Before anything of the box runs: does somebody want it to go back ([`crate::reset`])?

use std::path::Path;

use super::{BOOT, CACHE, STATE, volumes};
use crate::reset::{self, Disk as _, Host, Level, Places};
use crate::slots::{BootVolume, Slot};

/// Does what was asked for. `keys` are those of the box, in its folder of the state volume.
///
/// Returns why this start is in safe mode, if somebody wants it to be.
pub(super) fn go(keys: &[&str], state_is_there: bool, trouble: &mut Vec<String>) -> Option<String> {
    let (state, boot, cache) = (Path::new(STATE), Path::new(BOOT), Path::new(CACHE));
    let volume = BootVolume::own();
    let (level, why) = reset::look(state, boot, &volume, trouble).level()?;
    let mut disk = Host { volume, running: running() };
    match level {
        Level::Safe => {
            let answered = disk.answer().map_err(|error| stdx::chain(&error)).and_then(|()| {
                let gone = disk.remove_file(&state.join(reset::NOTE));
                gone.and_then(|()| disk.sync(state)).map_err(|error| error.to_string())
            });
            if let Err(error) = answered {
                trouble.push(format!("the box will start in safe mode again: {error}"));
            }
            Some(why.to_owned())
        }
        Level::Factory if !state_is_there => {
            trouble.push(format!("cannot erase what cannot be mounted ({STATE}): {why}"));
            None
        }
        Level::Factory => {
            eprintln!("tinbox: factory reset, because {why}; do not worry about the power");
            let places = Places { state, cache, keys };
            match reset::carry_out(&reset::plan(&places), &places, &mut disk) {
                Ok(()) => eprintln!("tinbox: factory reset: everything of the owner is erased"),
                Err(error) => {
                    let error = stdx::chain(&error);
                    trouble.push(format!("the factory reset goes on at the next start: {error}"));
                }
            }
            None
        }
    }
}

/// The slot that runs; without slots, the one that is there.
pub(super) fn running() -> Slot {
    match volumes::slot() {
        Ok(Some(name)) if name == "b" => Slot::B,
        _ => Slot::A,
    }
}
