//! Virtual media of one machine: finds the slot, inserts and ejects.

use super::read_back;
use crate::line::Turn;
use crate::media::{self, MediaRequest};
use crate::{Document, Error};

/// Maximum slots of one collection that are read.
const SLOTS_MAX: usize = 12;

/// Inserts the image at `url` into the slot for CDs.
pub async fn insert(
    turn: &mut Turn<'_>,
    name: &str,
    system: &Document,
    url: &str,
) -> Result<(), Error> {
    let mut slot = slot(turn, name, system).await?;
    if media::is_inserted(&slot) {
        if media::image(&slot) == Some(url) {
            return Ok(());
        }
        empty(turn, &slot).await?;
        slot = turn.get(&slot.path).await?;
    }
    let mut form = turn.state.quirks.media;
    loop {
        let request = media::insert(&slot, url, form)?;
        match send(turn, &slot, request).await {
            Err(Error::Refused { step, status: 400, reason, is_busy: false }) => {
                let other = media::other_form(form, &reason);
                form = other.ok_or(Error::Refused { step, status: 400, reason, is_busy: false })?;
            }
            done => break done?,
        }
    }
    let difference = |found: &Document| {
        let what = || format!("the media {url}");
        (!media::is_inserted(found)).then(|| (what(), "an empty slot".to_owned()))
    };
    read_back(turn, &slot.path, difference).await
}

/// Ejects the media from the slot for CDs.
pub async fn eject(turn: &mut Turn<'_>, name: &str, system: &Document) -> Result<(), Error> {
    let slot = slot(turn, name, system).await?;
    match media::is_inserted(&slot) {
        true => empty(turn, &slot).await,
        false => Ok(()),
    }
}

async fn empty(turn: &mut Turn<'_>, slot: &Document) -> Result<(), Error> {
    send(turn, slot, media::eject(slot)).await?;
    let difference = |found: &Document| {
        let what = || "the eject of the media".to_owned();
        media::is_inserted(found)
            .then(|| (what(), media::image(found).unwrap_or("an image").to_owned()))
    };
    read_back(turn, &slot.path, difference).await
}

async fn send(turn: &mut Turn<'_>, slot: &Document, request: MediaRequest) -> Result<(), Error> {
    match request {
        MediaRequest::Post(target, body) => turn.post(&target, &body).await,
        MediaRequest::Patch(body) => turn.patch(slot, &body).await,
    }
}

/// Returns the slot for CDs: of the system, where newer services have it, else of the BMC.
async fn slot(turn: &mut Turn<'_>, name: &str, system: &Document) -> Result<Document, Error> {
    let manager = turn.state.places.get(name).and_then(|places| places.manager.clone());
    let own = system.link("/VirtualMedia");
    let names = turn.state.quirks.media_slots.clone();
    if let Some(slot) = media::choose(turn.members(own, SLOTS_MAX).await?, &names) {
        return Ok(slot);
    }
    let manager = turn.find(manager).await?;
    let slots = turn.members(manager.and_then(|it| it.link("/VirtualMedia")), SLOTS_MAX).await?;
    let missing = || Error::Missing { path: system.path.clone(), what: "virtual media for CDs" };
    media::choose(slots, &names).ok_or_else(missing)
}
