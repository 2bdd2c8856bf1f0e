//! Reset of the box: one start without its settings (*safe*), or back to the state in which it was
//! flashed (*factory*) (FR-1). This module defines the sources of a request, and the order in which
//! a factory reset erases. `init` looks for requests and carries them out.
//!
//! A factory reset writes a note before its first change, and removes the note last. After an
//! interruption, the next start continues. The request is removed second, so that the reset does
//! not repeat forever. The keys are destroyed before the data that they encrypt (FR-4), so an
//! interruption leaves no readable secrets.
//!
//! A state volume that cannot take the note does not prevent the reset. The running box then writes
//! the request to the boot volume, over existing bytes. At the start, the request stays until the
//! erasing has freed space for the note.

mod disk;

use std::io;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::slots::{BootVolume, Slot};
pub use disk::{Disk, Host};

/// File on the state volume with the level of a requested or unfinished reset.
pub const NOTE: &str = "reset";
/// Request files on the boot volume, for an owner who reads the disk in another machine. Windows
/// editors add the suffix `.txt`.
pub const FILES: [&str; 2] = ["reset", "reset.txt"];
/// Folder of the box on the state volume.
const OWN: &str = "tinbox";
/// Names that a reset keeps on the state volume: the note until the end, the time, which is not
/// secret, and the file system's own folder.
const STAYS: [&str; 3] = [NOTE, "clock", "lost+found"];
/// Maximum size in bytes of a note or of a request file.
pub const ASKING_MAX: u64 = 256;
/// Maximum depth of nested folders that a reset empties.
const DEPTH_MAX: usize = 64;

/// Level of a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Level {
    /// Start without settings, once. The box serves no machine and keeps all data.
    Safe,
    /// Erases everything except the systems in both slots.
    Factory,
}

impl Level {
    /// Returns the name used in files, environment variables and on command lines.
    pub fn word(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Factory => "factory",
        }
    }

    /// Returns the level with this name, or `None` for an unknown name.
    pub fn of(word: &str) -> Option<Self> {
        [Self::Safe, Self::Factory].into_iter().find(|level| level.word() == word)
    }

    /// Reads a request file. A byte order mark, surrounding white space and case are ignored.
    ///
    /// # Errors
    /// The text is not the name of a level. The error is worded for the owner.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        let text = String::from_utf8_lossy(text);
        let word = text.strip_prefix('\u{feff}').unwrap_or(&text).trim().to_ascii_lowercase();
        Self::of(&word).ok_or_else(|| {
            format!("expected \"safe\" or \"factory\", found {word:?}: nothing was reset")
        })
    }
}

/// Reset requests found at a start, by source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResetRequests {
    /// Note on the state volume, or on the boot volume if the state volume was full. The API, the
    /// web page, the panel or an interrupted reset wrote it.
    pub note: Option<Level>,
    /// Choice in the menu of the boot loader.
    pub menu: Option<Level>,
    /// Request file on the boot volume.
    pub file: Option<Level>,
}

impl ResetRequests {
    /// Returns the requested level with its reason as a phrase. Factory wins over safe.
    pub fn level(&self) -> Option<(Level, &'static str)> {
        let all = [
            (self.note, "it was requested at the box or over its API"),
            (self.menu, "it was chosen in the boot menu"),
            (self.file, "the file \"reset\" on the volume TINBOX requested it"),
        ];
        let asked = |wanted: Level| {
            let why = all.into_iter().find(|(level, _)| *level == Some(wanted));
            why.map(|(_, why)| (wanted, why))
        };
        asked(Level::Factory).or_else(|| asked(Level::Safe))
    }
}

/// Folders and keys that a factory reset erases.
#[derive(Debug, Clone, Copy)]
pub struct EraseTargets<'a> {
    /// Mount point of the state volume.
    pub state: &'a Path,
    /// Mount point of the cache volume.
    pub cache: &'a Path,
    /// Names of keys in the box's folder of the state volume. The key that protects the most data
    /// is first.
    pub keys: &'a [&'a str],
}

/// Step of a factory reset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Writes the note that the reset has begun.
    Note,
    /// Removes the reset request from the boot volume.
    Answer,
    /// Overwrites a file, then removes it.
    Shred(PathBuf),
    /// Erases the owner's settings from the boot volume.
    Unset,
    /// Removes everything in a folder except the listed names.
    Empty(PathBuf, &'static [&'static str]),
    /// Discards the free blocks of the volume (TRIM).
    Trim(PathBuf),
    /// Removes the note at the end of the reset.
    Close,
}

/// Returns the steps of a factory reset in order.
pub fn plan(places: &EraseTargets<'_>) -> Vec<Step> {
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

/// Returns the steps for a state volume without space for the note. The request then stays until
/// the keys and all other data on the state volume are erased.
fn plan_without_room(places: &EraseTargets<'_>) -> Vec<Step> {
    let mut steps = plan(places);
    let empty = Step::Empty(places.state.to_owned(), &STAYS);
    steps.retain(|step| !matches!(step, Step::Note | Step::Answer) && *step != empty);
    let keys = steps.iter().take_while(|step| matches!(step, Step::Shred(_))).count();
    steps.splice(keys..keys, [empty, Step::Note, Step::Answer]);
    steps
}

/// Runs all steps of a factory reset, from its note to its end. The reset can be repeated.
///
/// # Errors
/// The first error of a step. The next start begins the reset again.
pub fn erase(places: &EraseTargets<'_>, disk: &mut impl Disk) -> Result<(), Error> {
    match carry_out(&plan(places), places, disk) {
        Err(Error::Io { source, .. }) if stdx::is_full(&source) => {
            carry_out(&plan_without_room(places), places, disk)
        }
        done => done,
    }
}

/// Runs the steps. Each step can be repeated.
///
/// # Errors
/// The first error of a step. Later steps do not run, and the next start begins the reset again.
pub fn carry_out(
    steps: &[Step],
    places: &EraseTargets<'_>,
    disk: &mut impl Disk,
) -> Result<(), Error> {
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

/// Destroys a file: its contents are overwritten on the disk before its name is removed.
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
        return Err(io::Error::other(format!("{} is nested too deeply", folder.display())));
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

/// Requests `level` for the next start. The request is durable when this function returns.
///
/// # Errors
/// Neither the state volume nor the boot volume can be written.
pub fn ask(level: Level) -> Result<(), Error> {
    let state = (!crate::init::without_state()).then_some(Path::new(crate::init::STATE));
    ask_at(state, &BootVolume::own(), crate::init::running(), level)
}

/// Requests `level` at `state`, the folder of the state volume, or else on the boot volume.
fn ask_at(
    state: Option<&Path>,
    volume: &BootVolume,
    running: Slot,
    level: Level,
) -> Result<(), Error> {
    let noted = state.map(|state| durable_file::replace(state, NOTE, level.word().as_bytes()));
    match noted {
        Some(Ok(())) => return Ok(()),
        Some(Err(error)) => tracing::warn!(%error, "writing the reset request to the boot volume"),
        None => {}
    }
    ask_on_boot_volume(volume, running, level)
}

/// Requests `level` for the next start without using the state volume.
pub(crate) fn ask_on_boot_volume(
    volume: &BootVolume,
    running: Slot,
    level: Level,
) -> Result<(), Error> {
    volume.change(running, |variables| variables.ask(level.word()))
}

/// Reads all requests. An invalid request file adds a sentence to `trouble`.
pub(crate) fn look(
    state: &Path,
    boot: &Path,
    volume: &BootVolume,
    trouble: &mut Vec<String>,
) -> ResetRequests {
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
    ResetRequests { note, menu, file }
}

#[cfg(test)]
mod tests;
