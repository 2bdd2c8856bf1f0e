//! Contents of a backup, collected from the state folder, the store and the leases.

use std::fs;
use std::io::{self, ErrorKind};
use std::ops::ControlFlow;
use std::path::Path;

use ::backup::{Contents, ENTRY_BYTES_MAX, Header, Lock, NEEDS, Part, Writer};
use serde_json::json;
use status::backup::LastBackup;
use status::image::ImageState;
use store::{Frozen, Key, Stored};

use super::{BackupError, BackupFile, Backups, disk, leases, spool};
use crate::storage::SEALED;

/// Subfolders of the state folder whose files belong to a backup.
const FOLDERS: [&str; 2] = ["pki", "settings"];
/// State files of this machine, which a backup leaves out: the keys and TPM data that protect the
/// disk, the claim code, the state of the slots, the time of the last backup, the key of the daily
/// backups, and settings that the boot volume did not accept.
const MACHINES: [&str; 9] = [
    "sealing.key",
    "sealing.key.tpm",
    "backup.key.tpm",
    "keys.recovery",
    "claim.json",
    "update.json",
    "backup.json",
    super::daily::KEY,
    super::place::LEFT,
];
/// Suffixes of files that a backup leaves out, or whose content it has in another form.
const OTHERS: [&str; 6] = [".redb", ".part", ".new", ".restoring", ".damaged", ".device"];
/// Prefix of files that a backup leaves out: the store, its reserve, and stores of other formats.
const STORE: &str = "objects.";
/// Prefix of files that a backup leaves out: DHCP observations of a network.
const HEARD: &str = "dhcp-";
/// Prefix and suffix of the lease file of an interface.
pub const LEASES: (&str, &str) = ("leases-", ".redb");

/// True if a backup includes the file at `path` in the state folder. Files of later releases are
/// included unless this function excludes them.
pub fn belongs(path: &str) -> bool {
    match path.split_once('/') {
        Some((folder, name)) => {
            FOLDERS.contains(&folder) && !name.contains('/') && !ends_otherwise(name)
        }
        None => {
            let others = [HEARD, STORE].iter().any(|beginning| path.starts_with(beginning));
            !MACHINES.contains(&path) && !others && !ends_otherwise(path)
        }
    }
}

fn ends_otherwise(name: &str) -> bool {
    OTHERS.iter().any(|ending| name.ends_with(ending))
}

/// Lists the files of the state folder that [`belongs`] includes, as sorted relative paths.
pub fn files(state: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for folder in [""].into_iter().chain(FOLDERS) {
        let entries = match fs::read_dir(state.join(folder)) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            if entry.file_type()?.is_file() && belongs(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// All parts of a backup except the objects, which are too large for memory.
struct BackupParts(Vec<(Part, Vec<u8>)>);

impl Backups {
    /// Writes a complete backup to a new file.
    pub(super) fn gather(&self, lock: &Lock) -> Result<BackupFile, BackupError> {
        let plain = matches!(lock, Lock::Plain);
        let frozen = self.store.freeze()?;
        let BackupParts(parts) = self.held(plain)?;
        let mut contents = Contents::default();
        parts.iter().for_each(|(part, _)| contents.count(part));
        self.objects(&frozen, plain, |part, _| {
            contents.count(&part);
            Ok(())
        })?;
        let made = self.clock.now();
        let header = Header {
            name: self.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            needs: NEEDS.to_owned(),
            made,
            pin: self.pin.clone(),
            revision: frozen.revision(),
            contents,
            ..Header::default()
        };
        let file =
            spool::file(self.kept_in.as_deref().and_then(Path::parent).unwrap_or(&self.state))
                .map_err(disk("create a file for the backup"))?;
        let mut writer = Writer::begin(file, &header, lock)?;
        for (part, content) in &parts {
            writer.add(part, content)?;
        }
        self.objects(&frozen, plain, |part, value| Ok(writer.add(&part, value)?))?;
        let file = writer.finish()?;
        let bytes = file.metadata().map_err(disk("read the size of the backup"))?.len();
        let day = made.strftime("%Y-%m-%d");
        let name = format!("{}-{day}.boxbak", file_name(&self.name));
        Ok(BackupFile { file, name, last: LastBackup { at: Some(made), bytes } })
    }

    /// Calls `each` for every object of the snapshot. A `plain` backup leaves out sealed kinds.
    fn objects(
        &self,
        frozen: &Frozen,
        plain: bool,
        mut each: impl FnMut(Part, &[u8]) -> Result<(), BackupError>,
    ) -> Result<(), BackupError> {
        let mut written = Ok(());
        let visit = |key: Key, stored: Stored| {
            if plain && SEALED.contains(&key.resource.as_str()) {
                return ControlFlow::Continue(());
            }
            let Key { resource, namespace, name } = key;
            written = each(Part::Object { resource, namespace, name }, &stored.value);
            if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        frozen.each(visit)?;
        written
    }

    fn held(&self, plain: bool) -> Result<BackupParts, BackupError> {
        let mut parts = Vec::new();
        if !plain {
            for path in files(&self.state).map_err(disk("list the box's files"))? {
                let content = read(&self.state.join(&path)).map_err(disk("read a file"))?;
                parts.extend(content.map(|content| (Part::File { path }, content)));
            }
            let settings = read(&self.settings).map_err(disk("read box.toml"))?;
            parts.extend(settings.map(|content| (Part::Settings, content)));
        }
        for interface in self.interfaces().map_err(disk("list the leases"))? {
            let file = self.state.join(format!("{}{interface}{}", LEASES.0, LEASES.1));
            let content = leases::read(&self.leases, &interface, &file)?;
            parts.push((Part::Leases { interface }, content));
        }
        parts.push((Part::Images, self.listed()?));
        Ok(BackupParts(parts))
    }

    /// Lists the interfaces that have a lease file, sorted.
    fn interfaces(&self) -> io::Result<Vec<String>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.state)? {
            let Ok(name) = entry?.file_name().into_string() else { continue };
            let bare = name.strip_prefix(LEASES.0).and_then(|name| name.strip_suffix(LEASES.1));
            found.extend(bare.map(str::to_owned));
        }
        found.sort();
        Ok(found)
    }

    /// Lists the complete files of the cache as JSON: origin, digest, size and pin.
    fn listed(&self) -> Result<Vec<u8>, BackupError> {
        let items = self.images.report().items;
        let ready = items.iter().filter(|image| image.state == ImageState::Ready);
        let images = ready.map(|image| {
            json!({
                "origin": image.origin,
                "digest": image.digest,
                "size": image.size,
                "pinned": image.pinned,
            })
        });
        let images: Vec<_> = images.collect();
        serde_json::to_vec(&images).map_err(|error| disk("list the images")(error.into()))
    }
}

/// Reads a file; `None` if the file is missing. A file above [`ENTRY_BYTES_MAX`] is an error.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let content = match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        content => content?,
    };
    if content.len() > ENTRY_BYTES_MAX {
        let what = format!("{} is too large for a backup", path.display());
        return Err(io::Error::new(ErrorKind::InvalidData, what));
    }
    Ok(Some(content))
}

/// Replaces characters that are not safe in a file name, and limits the name to 64 characters.
fn file_name(name: &str) -> String {
    let plain = |char: char| char.is_ascii_alphanumeric() || char == '-' || char == '.';
    name.chars().map(|char| if plain(char) { char } else { '-' }).take(64).collect()
}
