//! Erasure of the owner's settings from the boot volume. Removing a name leaves the bytes on the
//! disk. The bytes are therefore overwritten first, and then all free space, which contains earlier
//! versions.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::BootVolume;
use super::volume::{CHANGING, SETTINGS, sync};
use crate::{Error, sys};

/// Temporary file that fills the free space.
const FILLER: &str = "erase.tmp";
/// Bytes that are written at once.
const PIECE: usize = 1 << 20;
/// Maximum depth of nested folders that are searched for files.
const DEPTH_MAX: usize = 8;

impl BootVolume {
    /// Erases `box.toml` and all copies of it. The change is durable when this function returns,
    /// and the call can be repeated.
    ///
    /// # Errors
    /// The volume cannot be read or written.
    pub fn erase_settings(&self) -> Result<(), Error> {
        let _alone = CHANGING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.writable(|| {
            let what = format!("erase the settings in {}", self.folder().display());
            erase(self.folder(), &blocks).map_err(Error::io(what))?;
            sync(self.folder())?;
            if self.is_volume() {
                zero_free(self.folder(), u64::MAX)
                    .map_err(Error::io("overwrite the free space of the boot volume"))?;
                // Some disks do not support TRIM. The zeros are already written.
                let _ = File::open(self.folder()).and_then(|folder| sys::trim(&folder));
            }
            Ok(())
        })
    }
}

/// Overwrites and removes `box.toml`, and overwrites the files `box.N` of interrupted replacements.
/// The names of these files stay: FAT may have given their blocks to another file, and removing the
/// name would free them. A file `box.N` that shares a block with another file is not overwritten.
fn erase(folder: &Path, blocks: &impl Fn(&Path) -> io::Result<BTreeSet<u32>>) -> io::Result<()> {
    let settings = folder.join(SETTINGS);
    overwrite(&settings)?;
    let files = files(folder, 0)?;
    for path in files.iter().filter(|path| is_leftover(folder, path)) {
        let own = match blocks(path) {
            Ok(own) => own,
            Err(error) => {
                eprintln!("tinbox: cannot erase {}: {error}", path.display());
                continue;
            }
        };
        let others = files.iter().filter(|other| *other != path);
        let is_shared = others.map(|other| blocks(other)).any(|other| match other {
            Ok(other) => !own.is_disjoint(&other),
            Err(_) => true,
        });
        if !is_shared {
            overwrite(path)?;
        }
    }
    match fs::remove_file(&settings) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// True for a leftover of an interrupted replacement, such as `box.7`, in the root folder.
fn is_leftover(folder: &Path, path: &Path) -> bool {
    let name = path.strip_prefix(folder).ok().and_then(Path::to_str);
    let number = name.and_then(|name| name.strip_prefix("box."));
    number.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
}

fn files(folder: &Path, depth: usize) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            found.push(entry.path());
        } else if depth < DEPTH_MAX {
            found.extend(files(&entry.path(), depth + 1)?);
        }
    }
    Ok(found)
}

/// Returns the numbers of the volume's blocks that a file uses.
fn blocks(path: &Path) -> io::Result<BTreeSet<u32>> {
    let file = File::open(path)?;
    // The blocks of FAT are never smaller than a sector of 512 bytes.
    let count = file.metadata()?.len().div_ceil(512);
    let count = i32::try_from(count).map_err(io::Error::other)?;
    let all = (0..count).map(|index| sys::block_of(&file, index));
    let all: BTreeSet<u32> = all.collect::<io::Result<_>>()?;
    Ok(all.into_iter().filter(|block| *block != 0).collect())
}

/// Writes zeros over the bytes of a file in place. A missing file is accepted.
fn overwrite(path: &Path) -> io::Result<()> {
    let mut file = match File::options().write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    let size = file.metadata()?.len();
    io::copy(&mut io::Read::take(io::repeat(0), size), &mut file)?;
    file.sync_all()
}

/// Writes zeros to at most `limit` bytes of free space on the volume of `folder`.
fn zero_free(folder: &Path, limit: u64) -> io::Result<()> {
    let path = folder.join(FILLER);
    let mut file = File::create(&path)?;
    let (zeros, mut left) = (vec![0; PIECE], limit);
    let filled = loop {
        let most = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        match file.write(zeros.get(..most).unwrap_or_default()) {
            Ok(0) => break Ok(()),
            Ok(count) => left -= count as u64,
            Err(error) if stdx::is_full(&error) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    let synced = file.sync_all();
    drop(file);
    fs::remove_file(&path)?;
    filled.and(synced)
}

#[cfg(test)]
mod tests {
    use super::{erase, zero_free};
    use std::collections::BTreeSet;
    use std::{fs, io};

    #[test]
    fn the_bytes_of_the_settings_and_of_their_copies_are_overwritten() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("tinbox")).unwrap();
        // Hard links outside of the folder keep the bytes readable for the test.
        for name in ["box.toml", "box.7", "box.8", "box.txt", "tinbox/vmlinuz"] {
            fs::write(at(name), "secret").unwrap();
            fs::hard_link(at(name), outside.path().join(name.replace('/', "-"))).unwrap();
        }
        // A power cut left the name box.8, and its blocks now belong to the kernel of an update.
        let blocks = |path: &std::path::Path| {
            let name = path.strip_prefix(folder.path()).unwrap().to_str().unwrap();
            let first = match name {
                "box.7" => 3,
                "box.8" | "tinbox/vmlinuz" => 5,
                _ => 9,
            };
            io::Result::Ok(BTreeSet::from([first, first + 1]))
        };
        erase(folder.path(), &blocks).unwrap();
        assert!(!at("box.toml").exists());
        let left = |name: &str| fs::read(outside.path().join(name)).unwrap();
        for (name, expected) in [
            ("box.toml", [0; 6]),
            ("box.7", [0; 6]),
            ("box.8", *b"secret"),
            ("box.txt", *b"secret"),
            ("tinbox-vmlinuz", *b"secret"),
        ] {
            assert_eq!(left(name), expected, "{name}");
        }
        erase(folder.path(), &blocks).unwrap();
    }

    #[test]
    fn nothing_is_left_of_what_overwrites_the_free_space() {
        let folder = tempfile::tempdir().unwrap();
        zero_free(folder.path(), 3 << 20).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
