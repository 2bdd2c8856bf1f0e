//! Keys of the state folder that are sealed to the TPM of the box's board, with a way back.
//!
//! ```text
//! STATE/sealing.key        a key in the open: there is no TPM, or no way back yet
//! STATE/sealing.key.tpm    the same key, sealed to the TPM
//! STATE/keys.recovery      all keys, encrypted with the owner's passphrase (age)
//! ```
//!
//! Only the owner's login gives the passphrase, so the keys are sealed at the first login or claim.
//! A key leaves the open after its sealed form and the way back are on the disk and were read
//! again, and when no slot holds an older release, which would not find the key. A key in the open
//! wins: a restore puts one there. Where the TPM does not open a key, the
//! next login puts the keys into the open again, and the box restarts.

mod recovery;

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::Home;
use durable_file::replace_private;
use platform::init::{self, Leave};
use platform::slots::{BootVolume, Slot};
use platform::tpm::{self, Sealer, Tpm};
use stdx::Secret;

/// Keys that are sealed: the one of the store, and the one of the backups that the box keeps.
pub const SEALED: [&str; 2] = ["sealing.key", "backup.key"];
/// Ending of the name of a sealed key.
const ENDING: &str = ".tpm";
/// The way back.
const RECOVERY: &str = "keys.recovery";
/// Files that a factory reset destroys: the sealed keys, the way back, and their copies.
pub const KEYS: [&str; 6] = [
    "sealing.key.tpm",
    "backup.key.tpm",
    RECOVERY,
    "copies/sealing.key.tpm",
    "copies/backup.key.tpm",
    "copies/keys.recovery",
];
/// Bytes of the longest key.
const BYTES_MAX: u64 = tpm::SECRET_MAX as u64;

/// A key that cannot be read or sealed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The TPM does not open it.
    #[error(
        "the key {name} stays closed: log in on the box's page with the owner's passphrase, or \
         restore a backup"
    )]
    Closed {
        /// Name of the key.
        name: &'static str,
        /// Reason of the TPM.
        #[source]
        source: tpm::Error,
    },
    /// This board has no TPM.
    #[error(
        "the key {0} is sealed to a TPM, and this board has none: put the disk back into its \
         board, log in on the box's page with the owner's passphrase, or restore a backup"
    )]
    NoTpm(&'static str),
    /// The TPM does not seal.
    #[error("the keys stay in the open")]
    Unsealed(#[source] tpm::Error),
    /// The way back is of another passphrase, or damaged.
    #[error("{RECOVERY} does not open with this passphrase; restore a backup")]
    Unrecovered(#[source] backup::Error),
    /// The disk does not work.
    #[error("cannot use the keys of the state folder")]
    Disk(#[from] io::Error),
}

/// The outcome of a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login {
    /// Nothing was to be done, or nothing can be sealed here.
    Unchanged,
    /// Keys were sealed.
    Sealed,
    /// Keys are in the open again; the box has to start anew.
    Recovered,
}

/// Opens the TPM; `None` when the board has none.
type Open = Arc<dyn Fn() -> Result<Option<Box<dyn Sealer>>, tpm::Error> + Send + Sync>;

/// The keys of a state folder.
#[derive(Clone)]
pub struct Keys {
    state: PathBuf,
    open: Open,
}

impl Keys {
    /// The keys in the folder `state`. A guest leaves the TPM to its system.
    pub fn of(state: &Path, home: Home) -> Self {
        match home {
            Home::Guest => Self::with(state, || Ok(None)),
            Home::Firmware => {
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

    /// The key of this name; `None` when there is none.
    ///
    /// # Errors
    /// It is sealed, and the TPM does not open it; or the disk's.
    pub fn read(&self, name: &'static str) -> Result<Option<Vec<u8>>, Error> {
        if let Some(plain) = read(&self.state.join(name))? {
            return Ok(Some(plain));
        }
        let Some(sealed) = read_any(&self.state.join(sealed_name(name)))? else { return Ok(None) };
        let closed = |source| Error::Closed { name, source };
        let mut board = (self.open)().map_err(closed)?.ok_or(Error::NoTpm(name))?;
        board.unseal(&sealed).map(Some).map_err(closed)
    }

    /// Seals what lies in the open, or brings back what the TPM does not open, now that the owner
    /// gave the passphrase. `may_seal` says that no slot holds an older release. Blocks: it hashes,
    /// waits for the TPM, and writes to disk.
    ///
    /// # Errors
    /// The keys are as they were.
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
            return Err(io::Error::other(format!("{RECOVERY} is not what was written")).into());
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
            return Err(io::Error::other(format!("{name} is not what was sealed")).into());
        }
        // The copy goes last: a start that finds it alone puts the key into the open again.
        for path in [self.state.join(name), self.state.join("copies").join(name)] {
            destroy(&path)?;
        }
        Ok(())
    }

    /// Puts the keys that do not open into the open; sealed forms stay until the next login.
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

/// The act of a login on the keys of a box of its own, for `web::owner::Owner::on_passphrase`.
pub fn at_login(state: &Path) -> impl Fn(&str) + Send + Sync + 'static {
    let keys = Keys::of(state, Home::Firmware);
    move |passphrase| {
        let (keys, passphrase) = (keys.clone(), Secret::from(passphrase.to_owned()));
        // The login does not wait for it.
        std::thread::spawn(move || match keys.login(&passphrase, no_slot_is_older()) {
            Ok(Login::Unchanged) => {}
            Ok(Login::Sealed) => tracing::info!("the keys of this box are sealed to its TPM"),
            Ok(Login::Recovered) => {
                tracing::warn!("the keys are recovered; the box restarts to open its store");
                if let Err(error) = init::ask(Leave::Restart) {
                    tracing::error!(error = %stdx::chain(&error), "the box does not restart");
                }
            }
            Err(error) => tracing::error!(error = stdx::chain(&error), "the keys are as they were"),
        });
    }
}

/// True for a file that begins as the way back does.
pub fn is_recovery(mut bytes: &[u8]) -> bool {
    backup::head(&mut bytes, env!("CARGO_PKG_VERSION")).is_ok()
}

/// True if the other slot holds no release that is older than the running one.
fn no_slot_is_older() -> bool {
    let is_b = init::slot().ok().flatten().as_deref() == Some("b");
    let (own, other) = if is_b { (Slot::B, Slot::A) } else { (Slot::A, Slot::B) };
    let volume = BootVolume::own();
    !is_older(volume.version(other).as_deref(), volume.version(own).as_deref())
}

/// A version that cannot be read counts as older; an empty slot does not.
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

/// A key, if it is there and no longer than one may be.
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

/// Overwrites a file and removes it. A disk that moves its blocks may keep the old ones.
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
