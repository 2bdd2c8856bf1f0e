//! Archive format of an initramfs: cpio "newc", as in the kernel's
//! `Documentation/driver-api/early-userspace/buffer-format.rst`.
//!
//! An entry is a 110-byte header of ASCII hex fields, the name with its NUL, and the data. Name and
//! data are each padded to 4 bytes. The archive ends with an entry named `TRAILER!!!`.

use std::collections::BTreeMap;

use crate::Error;

const MAGIC: &str = "070701";
const TRAILER: &str = "TRAILER!!!";
/// Size to which archives are padded: the kernel unpacks in blocks of 512 bytes, and a second
/// archive may follow.
const BLOCK: usize = 512;

const FOLDER: u32 = 0o040_000;
const CHARACTER: u32 = 0o020_000;
const REGULAR: u32 = 0o100_000;
const LINK: u32 = 0o120_000;

#[derive(Debug)]
struct Entry {
    mode: u32,
    device: (u32, u32),
    data: Vec<u8>,
}

/// Archive under construction. Names are sorted; times, owners and inodes are fixed. So the same
/// content always gives the same bytes.
#[derive(Debug, Default)]
pub struct Cpio {
    entries: BTreeMap<String, Entry>,
}

impl Cpio {
    /// Adds a folder at `name` (relative, no leading slash) with permission bits `mode`.
    pub fn folder(&mut self, name: &str, mode: u32) {
        self.put(name, FOLDER | mode, (0, 0), Vec::new());
    }

    /// Adds a regular file, owned by root.
    pub fn file(&mut self, name: &str, mode: u32, data: Vec<u8>) {
        self.put(name, REGULAR | mode, (0, 0), data);
    }

    /// Adds a character device node.
    pub fn character(&mut self, name: &str, mode: u32, major: u32, minor: u32) {
        self.put(name, CHARACTER | mode, (major, minor), Vec::new());
    }

    /// Adds a symbolic link to `target`.
    pub fn link(&mut self, name: &str, target: &str) {
        self.put(name, LINK | 0o777, (0, 0), target.as_bytes().to_vec());
    }

    /// Returns every name in the archive, in the order of the entries.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    fn put(&mut self, name: &str, mode: u32, device: (u32, u32), data: Vec<u8>) {
        self.entries.insert(name.to_owned(), Entry { mode, device, data });
    }

    /// Returns the bytes of the whole archive.
    pub fn into_bytes(self) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        // Inodes only have to differ between entries: equal ones would be hard links.
        for (inode, (name, entry)) in (1_u32..).zip(&self.entries) {
            append(&mut out, inode, name, entry)?;
        }
        let end = Entry { mode: 0, device: (0, 0), data: Vec::new() };
        append(&mut out, 0, TRAILER, &end)?;
        pad(&mut out, BLOCK);
        Ok(out)
    }
}

fn append(out: &mut Vec<u8>, inode: u32, name: &str, entry: &Entry) -> Result<(), Error> {
    let size = u32::try_from(entry.data.len())
        .map_err(|_| Error::TooLarge { name: name.to_owned(), size: entry.data.len() })?;
    let name_size = u32::try_from(name.len() + 1)
        .map_err(|_| Error::TooLarge { name: name.to_owned(), size: name.len() })?;
    let links = if entry.mode & FOLDER == FOLDER { 2 } else { 1 };
    let (major, minor) = entry.device;
    // inode, mode, uid, gid, links, time, size, device of the archive, device node, name, checksum
    let fields = [inode, entry.mode, 0, 0, links, 0, size, 0, 0, major, minor, name_size, 0];
    out.extend_from_slice(MAGIC.as_bytes());
    for field in fields {
        out.extend_from_slice(format!("{field:08X}").as_bytes());
    }
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    pad(out, 4);
    out.extend_from_slice(&entry.data);
    pad(out, 4);
    Ok(())
}

fn pad(out: &mut Vec<u8>, to: usize) {
    out.resize(out.len().next_multiple_of(to), 0);
}

#[cfg(test)]
mod tests;
