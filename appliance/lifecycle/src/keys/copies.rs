//! Second copies of the small files that every start needs, against damage or loss of a file.
//!
//! ```text
//! STATE/pki/ca.key             file in use
//! STATE/copies/pki/ca.key      copy of its last valid content
//! STATE/pki/ca.key.damaged     damaged file that was replaced
//! ```
//!
//! Never: a new key where a valid copy of the old key exists, a deleted file, `owner.json` moved
//! away. Without `owner.json` any person could become the owner.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use apiserver::{Authenticator, Pki};
use box_owner::users::USERS;
use durable_file::replace_private;
use platform::tpm;

use crate::keys::sealing;

/// Folder of the copies, in the state folder.
const FOLDER: &str = "copies";
/// Suffix added to the name of a damaged file.
const DAMAGED: &str = ".damaged";
/// Maximum size of a copied file in bytes. The largest file is `tokens`, with one token per line.
const BYTES_MAX: u64 = 1 << 20;

/// Passphrase hash of the owner. Only this file is never renamed when it is damaged.
const OWNER: &str = "owner.json";

/// Small file that every start of the box needs.
struct VitalFile {
    path: &'static str,
    is_whole: fn(&[u8]) -> bool,
    /// Sentence about the consequence if the file and its copy are unusable.
    lost: &'static str,
}

const VITAL: [VitalFile; 14] = [
    VitalFile {
        path: "sealing.key",
        is_whole: is_32_bytes,
        lost: "the stored data cannot be read",
    },
    VitalFile {
        path: "sealing.key.tpm",
        is_whole: tpm::is_sealed,
        lost: "log in with the owner's passphrase, or restore a backup",
    },
    VitalFile {
        path: "backup.key.tpm",
        is_whole: tpm::is_sealed,
        lost: "log in with the owner's passphrase",
    },
    VitalFile {
        path: "keys.recovery",
        is_whole: sealing::is_recovery,
        lost: "the owner's passphrase cannot decrypt the keys; the next login makes a new file",
    },
    VitalFile {
        path: "boot-token.key",
        is_whole: is_32_bytes,
        lost: "machines that are being installed must boot again",
    },
    VitalFile {
        path: "tokens",
        is_whole: has_tokens,
        lost: "the administrator's kubeconfig is new; fetch it again",
    },
    VitalFile {
        path: OWNER,
        is_whole: is_json,
        lost: "login with the passphrase is not possible; restore a backup, or reset the box",
    },
    VitalFile {
        path: USERS,
        is_whole: is_json,
        lost: "only the owner can log in; add the other users again",
    },
    VitalFile {
        path: "backup.key",
        is_whole: |bytes| bytes.starts_with(b"AGE-SECRET-KEY-1"),
        lost: "the box's own backups cannot be decrypted",
    },
    VitalFile {
        path: "pki/ca.key",
        is_whole: |bytes| text(bytes, Pki::is_key),
        lost: "the box has a new certificate authority; fetch the kubeconfig again",
    },
    VitalFile {
        path: "pki/ca.crt",
        is_whole: |bytes| text(bytes, Pki::is_certificate),
        lost: "the certificate of the authority is new",
    },
    VitalFile {
        path: "pki/server.key",
        is_whole: |bytes| text(bytes, Pki::is_key),
        lost: "the box has a new pin",
    },
    VitalFile {
        path: "pki/server.crt",
        is_whole: |bytes| text(bytes, Pki::is_certificate),
        lost: "the certificate of the box is new",
    },
    VitalFile {
        path: "pki/serviceaccount.key",
        is_whole: |bytes| text(bytes, Pki::is_key),
        lost: "tokens of service accounts are no longer valid; create new ones",
    },
];

/// Secret keys among the copies, by their paths in the state folder.
pub const KEYS: [&str; 6] = [
    "copies/sealing.key",
    "copies/boot-token.key",
    "copies/backup.key",
    "copies/pki/ca.key",
    "copies/pki/server.key",
    "copies/pki/serviceaccount.key",
];

fn is_32_bytes(bytes: &[u8]) -> bool {
    bytes.len() == 32 && bytes.iter().any(|byte| *byte != 0)
}

fn has_tokens(bytes: &[u8]) -> bool {
    text(bytes, Authenticator::has_tokens)
}

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Map<_, _>>(bytes).is_ok()
}

fn text(bytes: &[u8], is_whole: fn(&str) -> bool) -> bool {
    std::str::from_utf8(bytes).is_ok_and(is_whole)
}

/// State of a file or of its copy.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FileState {
    Absent,
    Whole(Vec<u8>),
    Damaged,
}

/// Action on a file and its copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CopyAction {
    /// Changes neither the file nor the copy.
    Leave,
    /// Updates the copy from the file.
    Copy,
    /// Restores the file from the copy.
    PutBack,
    /// Reports the loss: the file is damaged, and has no valid copy.
    Lose,
}

fn act(file: &FileState, copy: &FileState) -> CopyAction {
    match (file, copy) {
        (FileState::Whole(file), FileState::Whole(copy)) if file == copy => CopyAction::Leave,
        (FileState::Whole(_), _) => CopyAction::Copy,
        (_, FileState::Whole(_)) => CopyAction::PutBack,
        (FileState::Damaged, _) => CopyAction::Lose,
        (FileState::Absent, _) => CopyAction::Leave,
    }
}

/// Restores damaged or missing files from their copies, and copies new files. Must run before any
/// file of `state` is read. Returns a sentence for the owner for each restored or lost file.
pub fn mend(state: &Path) -> Vec<String> {
    VITAL.iter().filter_map(|file| mend_one(state, file)).collect()
}

/// Copies the files that have changed since the last copy.
pub fn keep(state: &Path) {
    for file in &VITAL {
        let (now, copy) = (look(state, file.path, file), look_at_copy(state, file));
        if let (CopyAction::Copy, FileState::Whole(bytes)) = (act(&now, &copy), &now) {
            copied(state, file.path, bytes);
        }
    }
}

fn mend_one(state: &Path, file: &VitalFile) -> Option<String> {
    let (now, copy) = (look(state, file.path, file), look_at_copy(state, file));
    let what = match now {
        FileState::Absent => "is missing",
        _ => "is damaged",
    };
    match (act(&now, &copy), now, copy) {
        (CopyAction::Copy, FileState::Whole(bytes), _) => {
            copied(state, file.path, &bytes);
            None
        }
        (CopyAction::PutBack, now, FileState::Whole(bytes)) => {
            let put = match now {
                FileState::Damaged => set_aside(state, file.path),
                _ => Ok(()),
            };
            Some(match put.and_then(|()| write(state, file.path, &bytes)) {
                Ok(()) => format!("The file {} {what}; its second copy is used", file.path),
                Err(error) => format!(
                    "The file {} {what}, and its second copy cannot be restored: {error}",
                    file.path
                ),
            })
        }
        (CopyAction::Lose, ..) => {
            let aside = if file.path == OWNER { Ok(()) } else { set_aside(state, file.path) };
            let also = aside.err().map(|error| format!("; cannot rename the file: {error}"));
            let also = also.unwrap_or_default();
            Some(format!(
                "The file {} {what}, and has no second copy: {}{also}",
                file.path, file.lost
            ))
        }
        _ => None,
    }
}

fn look(state: &Path, path: &str, file: &VitalFile) -> FileState {
    let path = state.join(path);
    let read = match fs::metadata(&path) {
        Ok(found) if found.len() > BYTES_MAX => return FileState::Damaged,
        Ok(_) => fs::read(&path),
        Err(error) => Err(error),
    };
    match read {
        Ok(bytes) if (file.is_whole)(&bytes) => FileState::Whole(bytes),
        Ok(_) => FileState::Damaged,
        Err(error) if error.kind() == ErrorKind::NotFound => FileState::Absent,
        Err(error) => {
            tracing::warn!(%error, path = %path.display(), "cannot read the file");
            FileState::Damaged
        }
    }
}

fn look_at_copy(state: &Path, file: &VitalFile) -> FileState {
    look(&state.join(FOLDER), file.path, file)
}

fn copied(state: &Path, path: &str, bytes: &[u8]) {
    if let Err(error) = write(&state.join(FOLDER), path, bytes) {
        tracing::warn!(%error, path, "cannot write the second copy");
    }
}

fn write(folder: &Path, path: &str, bytes: &[u8]) -> io::Result<()> {
    let (inner, name) = path.rsplit_once('/').unwrap_or(("", path));
    let folder = folder.join(inner);
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    replace_private(&folder, name, bytes)
}

fn set_aside(state: &Path, path: &str) -> io::Result<()> {
    let path = state.join(path);
    let mut aside = path.clone().into_os_string();
    aside.push(DAMAGED);
    fs::rename(&path, &aside)
}

#[cfg(test)]
mod tests;
