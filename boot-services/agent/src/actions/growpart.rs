//! `growpart`: grows the last partition of DEST_DISK, as image2disk does with GROW_LAST_PARTITION,
//! for a disk that another action wrote. PARTITION must be the last partition; default: the last.

use imaging::storage::Grow;
use imaging::stream::Image;

use super::Action;
use super::environment::Environment;
use crate::Error;

pub(super) fn parse(environment: &Environment<'_>) -> Result<Action, Error> {
    let partition = environment.optional("PARTITION").unwrap_or("0");
    let partition = partition.parse().map_err(|_| {
        environment.bad("PARTITION", format!("{partition:?} is not a partition number"))
    })?;
    Ok(Action::Grow(Grow { disk: environment.device("DEST_DISK")?, partition }))
}

/// Returns the action that writes `image` and, with GROW_LAST_PARTITION, grows its last partition.
pub(super) fn after(environment: &Environment<'_>, image: Image) -> Result<Action, Error> {
    if !environment.flag("GROW_LAST_PARTITION")? {
        return Ok(Action::Image2Disk(image));
    }
    let grow = Grow { disk: image.disk.clone(), partition: 0 };
    Ok(Action::ImageGrown(image, grow))
}
