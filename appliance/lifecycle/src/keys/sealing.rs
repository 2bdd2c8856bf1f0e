//! Keys of the state folder that are sealed to the TPM of the box's board, and their recovery file.
//!
//! ```text
//! STATE/sealing.key        an unsealed key: there is no TPM, or no recovery file yet
//! STATE/sealing.key.tpm    the same key, sealed to the TPM
//! STATE/keys.recovery      all keys, encrypted with the owner's passphrase (age)
//! ```
//!
//! The passphrase is known only during a login of the owner, so the keys are sealed at the first
//! login or claim. The unsealed key file is removed only after its sealed form and the recovery
//! file are on the disk and were read again. It also stays while a slot holds an older release,
//! which would not find the key. An unsealed key has priority over its sealed form, because a
//! restore writes an unsealed key. If the TPM does not unseal a key, the next login writes the keys
//! unsealed again, and the box restarts.

mod recovery;

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::SystemKind;
use durable_file::replace_private;
use platform::init::{self, Leave};
use platform::slots::{BootVolume, Slot};
use platform::tpm::{self, Sealer, Tpm};
use stdx::Secret;

/// Names of the keys that are sealed: the key of the store, and the key of the daily backups.
pub const SEALED: [&str; 2] = ["sealing.key", "backup.key"];
/// Suffix added to the name of a key for its sealed form.
const ENDING: &str = ".tpm";
/// File with all keys, encrypted with the owner's passphrase.
const RECOVERY: &str = "keys.recovery";
/// Key files that a factory reset destroys: the sealed keys, the recovery file, and their copies.
pub const KEYS: [&str; 6] = [
    "sealing.key.tpm",
    "backup.key.tpm",
    RECOVERY,
    "copies/sealing.key.tpm",
    "copies/backup.key.tpm",
    "copies/keys.recovery",
];
/// Maximum size of a key in bytes.
const BYTES_MAX: u64 = tpm::SECRET_MAX as u64;

/// Error of reading or sealing a key.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The TPM does not unseal the key.
    #[error(
        "cannot unseal the key {name}: log in on the box's page with the owner's passphrase, or \
         restore a backup"
    )]
    Closed {
        /// Name of the key.
        name: &'static str,
        /// Error of the TPM.
        #[source]
        source: tpm::Error,
    },
    /// The key is sealed, and this board has no TPM.
    #[error(
        "the key {0} is sealed to a TPM, but this board has no TPM: put the disk back into the \
         former board, log in on the box's page with the owner's passphrase, or restore a backup"
    )]
    NoTpm(&'static str),
    /// The TPM cannot seal the keys.
    #[error("cannot seal the keys to the TPM; the keys stay unencrypted")]
    Unsealed(#[source] tpm::Error),
    /// The recovery file was made with another passphrase, or is damaged.
    #[error("cannot decrypt {RECOVERY} with this passphrase; restore a backup")]
    Unrecovered(#[source] backup::Error),
    /// A file operation in the state folder failed.
    #[error("cannot read or write the keys in the state folder")]
    Disk(#[from] io::Error),
}

/// Effect of a login on the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login {
    /// No change was needed, or this box cannot seal its keys.
    Unchanged,
    /// At least one key was sealed, or the recovery file was renewed.
    Sealed,
    /// The keys were written unsealed again. The box must restart.
    Recovered,
}

/// Function that opens the TPM. Returns `None` if the board has no TPM.
type OpenTpm = Arc<dyn Fn() -> Result<Option<Box<dyn Sealer>>, tpm::Error> + Send + Sync>;

/// Keys of a state folder.
#[derive(Clone)]
pub struct Keys {
    state: PathBuf,
    open: OpenTpm,
}

impl Keys {
    /// Creates access to the keys in the folder `state`. A guest uses no TPM, because the TPM
    /// belongs to the host system.
    pub fn of(state: &Path, system_kind: SystemKind) -> Self {
        match system_kind {
            SystemKind::Guest => Self::with(state, || Ok(None)),
            SystemKind::Firmware => {
                Self::with(state, || Ok(Tpm::open()?.map(|tpm| Box::new(tpm) as Box<dyn Sealer>)))
            }
        }
    }

    fn with(
        state: &Path,
        open: impl Fn() -> Result<Option<Box<dyn Sealer>>, tpm::Error> + Send + Sync + 'static,
    ) -> Self {
        Self { state: state.to_owned(), open: Arc::new(open) }
    }

    /// Reads a key. Returns `None` if the key does not exist.
    ///
    /// # Errors
    /// The TPM does not unseal the key, or the key's file cannot be read.
    pub fn read(&self, name: &'static str) -> Result<Option<Vec<u8>>, Error> {
        if let Some(plain) = read(&self.state.join(name))? {
            return Ok(Some(plain));
        }
        let Some(sealed) = read_any(&self.state.join(sealed_name(name)))? else { return Ok(None) };
        let closed = |source| Error::Closed { name, source };
        let mut board = (self.open)().map_err(closed)?.ok_or(Error::NoTpm(name))?;
        board.unseal(&sealed).map(Some).map_err(closed)
    }

    /// Seals the unsealed keys, or recovers the keys that the TPM does not unseal. `may_seal` is
    /// true if no slot holds an older release. Blocks: it hashes, and uses the TPM and the disk.
    ///
    /// # Errors
    /// The keys cannot be sealed or recovered.
    pub fn login(&self, passphrase: &Secret, may_seal: bool) -> Result<Login, Error> {
        let mut keys = Vec::new();
        for name in SEALED {
            match self.read(name) {
                Ok(found) => keys.extend(found.map(|bytes| (name, bytes))),
                Err(Error::Closed { .. } | Error::NoTpm(_)) => return self.recover(passphrase),
                Err(error) => return Err(error),
            }
        }
        let Some(mut board) = (self.open)().map_err(Error::Unsealed)? else {
            return Ok(Login::Unchanged);
        };
        let is_sealed = |name: &str| self.state.join(sealed_name(name)).exists();
        if !may_seal && !SEALED.into_iter().any(is_sealed) {
            return Ok(Login::Unchanged);
        }
        let is_open = |name: &&str| self.state.join(name).exists();
        let owner = recovery::mark(&self.state)?;
        let known = recovery::read_mark(&self.state.join(RECOVERY))?;
        let open: Vec<&str> = SEALED.into_iter().filter(is_open).collect();
        if open.is_empty() && known.as_ref() == Some(&owner) {
            return Ok(Login::Unchanged);
        }
        let bytes = recovery::made(&keys, &owner, passphrase).map_err(Error::Unrecovered)?;
        replace_private(&self.state, RECOVERY, &bytes)?;
        let again = read_any(&self.state.join(RECOVERY))?.unwrap_or_default();
        if recovery::opened(&again, passphrase).map_err(Error::Unrecovered)? != keys {
            return Err(
                io::Error::other(format!("{RECOVERY} has other content than was written")).into()
            );
        }
        for (name, bytes) in keys.iter().filter(|(name, _)| open.contains(name)) {
            self.seal(board.as_mut(), name, bytes)?;
        }
        Ok(Login::Sealed)
    }

    fn seal(&self, board: &mut dyn Sealer, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let sealed = board.seal(bytes).map_err(Error::Unsealed)?;
        replace_private(&self.state, &sealed_name(name), &sealed)?;
        let again = read_any(&self.state.join(sealed_name(name)))?.unwrap_or_default();
        if board.unseal(&again).map_err(Error::Unsealed)? != bytes {
            return Err(
                io::Error::other(format!("{name} has other content than was sealed")).into()
            );
        }
        // The copy is destroyed last: a start that finds only the copy restores the key from it.
        for path in [self.state.join(name), self.state.join("copies").join(name)] {
            destroy(&path)?;
        }
        Ok(())
    }

    /// Writes the keys of the recovery file unsealed. The sealed keys stay until the next login.
    fn recover(&self, passphrase: &Secret) -> Result<Login, Error> {
        let bytes = read_any(&self.state.join(RECOVERY))?.unwrap_or_default();
        for (name, key) in recovery::opened(&bytes, passphrase).map_err(Error::Unrecovered)? {
            if read(&self.state.join(name))?.is_none() {
                replace_private(&self.state, name, &key)?;
            }
        }
        Ok(Login::Recovered)
    }
}

/// Returns the function that seals or recovers the keys at a login, for
/// `box_owner::Owner::on_passphrase`. Firmware only.
pub fn at_login(state: &Path) -> impl Fn(&str) + Send + Sync + 'static {
    let keys = Keys::of(state, SystemKind::Firmware);
    move |passphrase| {
        let (keys, passphrase) = (keys.clone(), Secret::from(passphrase.to_owned()));
        // Sealing takes seconds, so the login does not wait for the result.
        std::thread::spawn(move || match keys.login(&passphrase, no_slot_is_older()) {
            Ok(Login::Unchanged) => {}
            Ok(Login::Sealed) => tracing::info!("the keys of this box are sealed to its TPM"),
            Ok(Login::Recovered) => {
                tracing::warn!("the keys were recovered; the box restarts to open its store");
                if let Err(error) = init::ask(Leave::Restart) {
                    tracing::error!(error = %stdx::chain(&error), "cannot restart the box");
                }
            }
            Err(error) => tracing::error!(
                error = stdx::chain(&error),
                "cannot seal or recover the keys; they were not changed"
            ),
        });
    }
}

/// Returns true if the file begins with the header of a recovery file.
pub fn is_recovery(mut bytes: &[u8]) -> bool {
    backup::head(&mut bytes, env!("CARGO_PKG_VERSION")).is_ok()
}

/// Returns true if the other slot holds no release that is older than the running release.
fn no_slot_is_older() -> bool {
    let is_b = init::slot().ok().flatten().as_deref() == Some("b");
    let (own, other) = if is_b { (Slot::B, Slot::A) } else { (Slot::A, Slot::B) };
    let volume = BootVolume::own();
    !is_older(volume.version(other).as_deref(), volume.version(own).as_deref())
}

/// True if `other` is older than `own`, or cannot be parsed; false for an empty slot.
fn is_older(other: Option<&str>, own: Option<&str>) -> bool {
    let version = |text: Option<&str>| semver::Version::parse(text?).ok();
    match (version(other), version(own)) {
        (Some(other), Some(own)) => other < own,
        _ => other.is_some() && other != own,
    }
}

fn sealed_name(name: &str) -> String {
    format!("{name}{ENDING}")
}

/// Reads a key; `None` if its file is missing. A file longer than [`BYTES_MAX`] is an error.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let found = read_any(path)?;
    if found.as_ref().is_some_and(|bytes| bytes.len() as u64 > BYTES_MAX) {
        let what = format!("{} is longer than a key", path.display());
        return Err(io::Error::new(ErrorKind::InvalidData, what));
    }
    Ok(found)
}

fn read_any(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Overwrites a file and removes it. A disk that remaps blocks may still keep the old data.
fn destroy(path: &Path) -> io::Result<()> {
    let mut file = match File::options().write(true).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    file.write_all(&vec![0; length])?;
    file.sync_all()?;
    fs::remove_file(path)?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

#[cfg(test)]
mod tests;
