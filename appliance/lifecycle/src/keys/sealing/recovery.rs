//! Recovery file of sealed keys. The file is a backup of the keys only, encrypted with the owner's
//! passphrase. The header has the hash of `owner.json`, which identifies the passphrase.

use std::fs::File;
use std::io::{self, BufReader, Cursor};
use std::path::Path;

use ::backup::{Contents, Error, Header, Key, Lock, NEEDS, Part, Reader, Writer, head};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use stdx::Secret;

use super::SEALED;

const OWN: &str = env!("CARGO_PKG_VERSION");

/// Keys with their names.
pub type NamedKeys = Vec<(&'static str, Vec<u8>)>;

/// Returns the mark of the current passphrase: the SHA-256 of `owner.json`.
pub fn mark(state: &Path) -> io::Result<String> {
    let owner = std::fs::read(state.join("owner.json"))?;
    Ok(stdx::hex(&Sha256::digest(owner)))
}

/// Returns the mark in the recovery file at `path`, or `None` if the file is missing or damaged.
pub fn read_mark(path: &Path) -> io::Result<Option<String>> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        file => Ok(head(&mut BufReader::new(file?), OWN).ok().map(|header| header.pin)),
    }
}

/// Returns the bytes of a recovery file with `keys`. `mark` identifies the passphrase.
pub fn made(
    keys: &[(&'static str, Vec<u8>)],
    mark: &str,
    passphrase: &Secret,
) -> Result<Vec<u8>, Error> {
    let part = |name: &str| Part::File { path: name.to_owned() };
    let mut contents = Contents::default();
    keys.iter().for_each(|(name, _)| contents.count(&part(name)));
    let header = Header {
        name: "keys".to_owned(),
        version: OWN.to_owned(),
        needs: NEEDS.to_owned(),
        made: Timestamp::now(),
        pin: mark.to_owned(),
        contents,
        ..Header::default()
    };
    let lock = Lock::passphrase(passphrase.clone())?;
    let mut writer = Writer::begin(Cursor::new(Vec::new()), &header, &lock)?;
    for (name, bytes) in keys {
        writer.add(&part(name), bytes)?;
    }
    writer.finish().map(Cursor::into_inner)
}

/// Decrypts the keys of a recovery file. Unknown keys of later releases are skipped.
pub fn opened(file: &[u8], passphrase: &Secret) -> Result<NamedKeys, Error> {
    let key = Key::Passphrase(passphrase.clone());
    let mut reader = Reader::open(file, Some(&key), OWN)?;
    let mut found = Vec::new();
    while let Some((part, bytes)) = reader.next_part()? {
        let Part::File { path } = part else { continue };
        let known = SEALED.into_iter().find(|name| *name == path);
        found.extend(known.map(|name| (name, bytes)));
    }
    Ok(found)
}
