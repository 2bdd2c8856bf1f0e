//! How the box goes back: for one start without its settings (*safe*), or to what it was when it
//! was flashed (*factory*) (FR-1). Here is who may ask for it at a start, and in which order a
//! factory reset erases; `init` looks and does.
//!
//! A factory reset is written down before anything of it is done, and the note goes last: whatever
//! cuts it, the next start goes on. What asked for it is taken away second, so that it ends. The
//! keys go before all that they open (FR-4), so no cut leaves secrets that somebody could read.
//!
//! A state volume that takes no note stops no reset. The running box then writes the wish on the
//! boot volume, over bytes that are there. At the start, what asked stays until the note finds the
//! room that the erasing has made.

mod disk;

use std::io;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::slots::{BootVolume, Slot};
pub use disk::{Disk, Host};

/// On the state volume: which level was asked for, or has begun.
pub const NOTE: &str = "reset";
/// On the boot volume, for who has the disk in another machine; the second is what an editor of
/// Windows makes of the first.
pub const FILES: [&str; 2] = ["reset", "reset.txt"];
/// The box's own folder of the state volume.
const OWN: &str = "tinbox";
/// What stays on the state volume: the note, up to the end; the time, which is nobody's secret; and
/// what belongs to the file system.
const STAYS: [&str; 3] = [NOTE, "clock", "lost+found"];
/// Bytes of a note or of a file that asks.
pub const ASKING_MAX: u64 = 256;
/// Folders in folders that are followed.
const DEPTH_MAX: usize = 64;

/// A level of going back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Level {
    /// One start without settings, which serves no machine and keeps everything.
    Safe,
    /// Everything but the systems in both slots is erased.
    Factory,
}

impl Level {
    /// In files, variables and on command lines.
    pub fn word(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Factory => "factory",
        }
    }

    /// The level of this word.
    pub fn of(word: &str) -> Option<Self> {
        [Self::Safe, Self::Factory].into_iter().find(|level| level.word() == word)
    }

    /// What a file says, as any editor leaves it.
    ///
    /// # Errors
    /// It says something else; the sentence for whoever wrote it.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        let text = String::from_utf8_lossy(text);
        let word = text.strip_prefix('\u{feff}').unwrap_or(&text).trim().to_ascii_lowercase();
        Self::of(&word).ok_or_else(|| {
            format!("it says {word:?}, and can say \"safe\" or \"factory\": nothing was reset")
        })
    }
}

/// What was asked for at a start, by whom.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asked {
    /// The note of the state volume, or of the boot volume where that took none: the API, a page,
    /// the panel, or a reset that was cut.
    pub note: Option<Level>,
    /// The boot loader's menu.
    pub menu: Option<Level>,
    /// A file on the boot volume.
    pub file: Option<Level>,
}

impl Asked {
    /// The level that is meant, the one that goes further, and why, as a phrase.
    pub fn level(&self) -> Option<(Level, &'static str)> {
        let all = [
            (self.note, "somebody asked for it at the box or over its API"),
            (self.menu, "somebody chose it in the boot menu"),
            (self.file, "the file \"reset\" on the volume TINBOX asked for it"),
        ];
        let asked = |wanted: Level| {
            let why = all.into_iter().find(|(level, _)| *level == Some(wanted));
            why.map(|(_, why)| (wanted, why))
        };
        asked(Level::Factory).or_else(|| asked(Level::Safe))
    }
}

/// Where everything lies.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// The state volume.
    pub state: &'a Path,
    /// The cache's.
    pub cache: &'a Path,
    /// Keys in the box's folder of the state volume, the one that opens the most first.
    pub keys: &'a [&'a str],
}

/// A step of a factory reset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Write down that it has begun.
    Note,
    /// Take away what asked for it.
    Answer,
    /// Overwrite a file, then remove it.
    Shred(PathBuf),
    /// Erase the owner's settings from the boot volume.
    Unset,
    /// Remove everything in a folder but what is named.
    Empty(PathBuf, &'static [&'static str]),
    /// Tell the disk that it may forget what is free.
    Trim(PathBuf),
    /// It is over.
    Close,
}

/// A factory reset, in its order.
pub fn plan(places: &Places<'_>) -> Vec<Step> {
    let own = places.state.join(OWN);
    let mut steps = vec![Step::Note, Step::Answer];
    steps.extend(places.keys.iter().map(|key| Step::Shred(own.join(key))));
    steps.extend([
        Step::Unset,
        Step::Empty(places.state.to_owned(), &STAYS),
        Step::Empty(places.cache.to_owned(), &["lost+found"]),
        Step::Trim(places.state.to_owned()),
        Step::Trim(places.cache.to_owned()),
        Step::Close,
    ]);
    steps
}

/// The same where the state volume has no room for the note: what asked for the reset stands in for
/// it until the keys and all else are gone from there.
fn plan_without_room(places: &Places<'_>) -> Vec<Step> {
    let mut steps = plan(places);
    let empty = Step::Empty(places.state.to_owned(), &STAYS);
    steps.retain(|step| !matches!(step, Step::Note | Step::Answer) && *step != empty);
    let keys = steps.iter().take_while(|step| matches!(step, Step::Shred(_))).count();
    steps.splice(keys..keys, [empty, Step::Note, Step::Answer]);
    steps
}

/// Carries a factory reset out, from its note to its end; it can be carried out again.
///
/// # Errors
/// The first step that fails; the next start begins anew.
pub fn erase(places: &Places<'_>, disk: &mut impl Disk) -> Result<(), Error> {
    match carry_out(&plan(places), places, disk) {
        Err(Error::Io { source, .. }) if stdx::is_full(&source) => {
            carry_out(&plan_without_room(places), places, disk)
        }
        done => done,
    }
}

/// Takes the steps. Each can be taken again.
///
/// # Errors
/// The first that fails; those behind it are not taken, and the next start begins anew.
pub fn carry_out(steps: &[Step], places: &Places<'_>, disk: &mut impl Disk) -> Result<(), Error> {
    let note = places.state.join(NOTE);
    for step in steps {
        match step {
            Step::Note => disk
                .note(places.state, Level::Factory)
                .map_err(Error::io(format!("write {}", note.display())))?,
            Step::Answer => disk.answer()?,
            Step::Shred(file) => {
                shred(disk, file).map_err(Error::io(format!("destroy {}", file.display())))?;
            }
            Step::Unset => disk.unset()?,
            Step::Empty(folder, stays) => empty(disk, folder, stays, 0)
                .and_then(|()| disk.sync(folder))
                .map_err(Error::io(format!("empty {}", folder.display())))?,
            Step::Trim(folder) => disk.trim(folder),
            Step::Close => disk
                .remove_file(&note)
                .and_then(|()| disk.sync(places.state))
                .map_err(Error::io(format!("remove {}", note.display())))?,
        }
    }
    Ok(())
}

/// Destroys a file: what lay in it is overwritten, on disk, before its name goes.
fn shred(disk: &mut impl Disk, file: &Path) -> io::Result<()> {
    match disk.overwrite(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        written => written?,
    }
    disk.remove_file(file)?;
    file.parent().map_or(Ok(()), |folder| disk.sync(folder))
}

fn empty(disk: &mut impl Disk, folder: &Path, stays: &[&str], depth: usize) -> io::Result<()> {
    if depth > DEPTH_MAX {
        return Err(io::Error::other(format!("{} lies too deep", folder.display())));
    }
    for (path, is_folder) in disk.list(folder)? {
        let name = path.file_name().unwrap_or_default();
        if stays.iter().any(|stays| name == *stays) {
            continue;
        }
        if is_folder {
            empty(disk, &path, &[], depth + 1)?;
            disk.remove_folder(&path)?;
        } else {
            disk.remove_file(&path)?;
        }
    }
    Ok(())
}

/// Asks for `level` at the next start, durably when this returns.
///
/// # Errors
/// Neither the state volume nor the boot volume can be written.
pub fn ask(level: Level) -> Result<(), Error> {
    let state = (!crate::init::without_state()).then_some(Path::new(crate::init::STATE));
    ask_at(state, &BootVolume::own(), crate::init::running(), level)
}

/// The same; `state` is the folder of the state volume, where there is one.
fn ask_at(
    state: Option<&Path>,
    volume: &BootVolume,
    running: Slot,
    level: Level,
) -> Result<(), Error> {
    let noted = state.map(|state| durable_file::replace(state, NOTE, level.word().as_bytes()));
    match noted {
        Some(Ok(())) => return Ok(()),
        Some(Err(error)) => tracing::warn!(%error, "the wish goes to the boot volume"),
        None => {}
    }
    ask_on_boot_volume(volume, running, level)
}

/// Asks for `level` at the next start without the state volume.
pub(crate) fn ask_on_boot_volume(
    volume: &BootVolume,
    running: Slot,
    level: Level,
) -> Result<(), Error> {
    volume.change(running, |variables| variables.ask(level.word()))
}

/// Looks who asks. A file that cannot be read as a level is a sentence in `trouble`.
pub(crate) fn look(
    state: &Path,
    boot: &Path,
    volume: &BootVolume,
    trouble: &mut Vec<String>,
) -> Asked {
    let note = durable_file::read(&state.join(NOTE), ASKING_MAX).ok().flatten();
    let note = note.and_then(|text| Level::read(&text).ok());
    let variables = volume.read().ok();
    let menu = variables.as_ref().and_then(|all| Level::of(all.wish()?));
    let asked = variables.as_ref().and_then(|all| Level::of(all.asked()?));
    let note = [note, asked].into_iter().flatten().max_by_key(|level| *level == Level::Factory);
    let mut file = None;
    for path in FILES.map(|name| boot.join(name)) {
        let sentence = match durable_file::read(&path, ASKING_MAX) {
            Ok(None) => continue,
            Ok(Some(text)) => match Level::read(&text) {
                Ok(level) if file != Some(Level::Factory) => {
                    file = Some(level);
                    continue;
                }
                Ok(_) => continue,
                Err(why) => why,
            },
            Err(error) => error.to_string(),
        };
        trouble.push(format!("cannot use the file {}: {sentence}", path.display()));
    }
    Asked { note, menu, file }
}

#[cfg(test)]
mod tests;
