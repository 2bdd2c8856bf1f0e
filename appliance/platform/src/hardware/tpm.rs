//! Secrets sealed to the TPM of this board and to the state of its Secure Boot, by TPM 2.0 commands
//! to `/dev/tpmrm0`.
//!
//! A sealed secret can only be unsealed on the board that sealed it, and only while PCR 7 is
//! unchanged. PCR 7 contains the state of Secure Boot, its keys and its revocations. PCR 7 survives
//! an update of the box. PCR 4 and 9 would change: they contain the loader and the kernel, which an
//! update replaces. Another system that this board is allowed to start can therefore unseal the
//! secret too. A disk in another board cannot.
//!
//! The secret crosses the bus of a discrete TPM unencrypted.
//!
//! Enter at [`Tpm::open`].

mod wire;

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use wire::{Fields, Session};

/// Device file of the TPM with the kernel's resource manager.
const DEVICE: &str = "/dev/tpmrm0";
/// PCR with the state of Secure Boot (TCG, "PC Client Platform Firmware Profile" §3.3.4.8).
const SECURE_BOOT: u8 = 7;
/// Magic bytes at the start of a stored secret. The private and the public part follow, each after
/// its length.
const MAGIC: &[u8; 8] = b"tinboxT1";
/// Maximum length of a secret in bytes (`MAX_SYM_DATA`).
pub const SECRET_MAX: usize = 128;
/// Mask for the error in a response code about a session, parameter or handle (`TPM_RC_FMT1`).
/// `INTEGRITY`: another TPM made the object. `POLICY_FAIL`: the policy does not match.
const FORMAT_1: u32 = 0x0bf;
const INTEGRITY: u32 = 0x09f;
const POLICY_FAIL: u32 = 0x09d;

/// Error of sealing or unsealing a secret.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Communication with the device failed.
    #[error("TPM: cannot {doing}")]
    Device {
        /// Operation that failed, as a verb phrase.
        doing: &'static str,
        /// Error that the kernel returned.
        #[source]
        source: io::Error,
    },
    /// The TPM returned an error code.
    #[error("TPM: cannot {doing}: response code {code:#x}; `tpm2_rc_decode` explains the code")]
    Refused {
        /// Operation that failed, as a verb phrase.
        doing: &'static str,
        /// Response code of the TPM (`TPM_RC`).
        code: u32,
    },
    /// Another TPM sealed the secret, or this TPM was cleared after sealing.
    #[error("the key is sealed to another TPM: the disk was moved, or the TPM was cleared")]
    OtherTpm,
    /// The state of Secure Boot has changed.
    #[error("Secure Boot changed after the key was sealed: restore its state in the firmware")]
    Changed,
    /// The stored bytes are not a complete sealed secret.
    #[error("the sealed key is damaged")]
    Damaged,
    /// The secret is longer than [`SECRET_MAX`].
    #[error("cannot seal {0} bytes to a TPM: the limit is {SECRET_MAX} bytes")]
    TooLong(usize),
}

/// TPM that seals short secrets to its board.
pub trait Sealer {
    /// Seals a secret of at most [`SECRET_MAX`] bytes. The result may be stored without protection.
    ///
    /// # Errors
    /// The TPM returns an error or does not respond.
    fn seal(&mut self, secret: &[u8]) -> Result<Vec<u8>, Error>;

    /// Returns the secret from the result of [`Sealer::seal`].
    ///
    /// # Errors
    /// Another TPM sealed the secret, or Secure Boot is in another state.
    fn unseal(&mut self, sealed: &[u8]) -> Result<Vec<u8>, Error>;
}

/// True if `stored` has the form of a sealed secret.
pub fn is_sealed(stored: &[u8]) -> bool {
    parts(stored).is_some()
}

/// TPM 2.0 behind a device file or a stream.
#[derive(Debug)]
pub struct Tpm<D>(D);

impl Tpm<File> {
    /// Opens the TPM of this board. Returns `None` if the board has no TPM.
    ///
    /// # Errors
    /// The device exists but cannot be opened.
    pub fn open() -> Result<Option<Self>, Error> {
        match OpenOptions::new().read(true).write(true).open(Path::new(DEVICE)) {
            Ok(device) => Ok(Some(Self(device))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::Device { doing: "open /dev/tpmrm0", source }),
        }
    }
}

impl<D: Read + Write> Sealer for Tpm<D> {
    fn seal(&mut self, secret: &[u8]) -> Result<Vec<u8>, Error> {
        if secret.len() > SECRET_MAX {
            return Err(Error::TooLong(secret.len()));
        }
        let policy = self.with_session(Session::Trial, |tpm, session| {
            let answer = tpm.ask("compute the policy", &wire::policy_digest(session))?;
            answer.take("compute the policy", |fields| fields.sized().map(<[u8]>::to_vec))
        })?;
        self.with_primary(|tpm, parent| {
            let doing = "seal a secret";
            let answer = tpm.ask(doing, &wire::create(parent, secret, &policy))?;
            answer.take(doing, |fields| {
                // The size of the parameters precedes them.
                fields.u32()?;
                let (private, public) = (fields.sized()?, fields.sized()?);
                let mut sealed = MAGIC.to_vec();
                for part in [private, public] {
                    sealed.extend(u16::try_from(part.len()).ok()?.to_be_bytes());
                    sealed.extend(part);
                }
                Some(sealed)
            })
        })
    }

    fn unseal(&mut self, sealed: &[u8]) -> Result<Vec<u8>, Error> {
        let (private, public) = parts(sealed).ok_or(Error::Damaged)?;
        self.with_primary(|tpm, parent| {
            let doing = "load a sealed secret";
            let answer = tpm.ask(doing, &wire::load(parent, private, public))?;
            let item = answer.take(doing, |fields| fields.u32())?;
            let secret = tpm.with_session(Session::Policy, |tpm, session| {
                let doing = "unseal a secret";
                let answer = tpm.ask(doing, &wire::unseal(item, session))?;
                answer.take(doing, |fields| {
                    fields.u32()?;
                    fields.sized().map(<[u8]>::to_vec)
                })
            });
            tpm.forget(item);
            secret
        })
    }
}

impl<D: Read + Write> Tpm<D> {
    fn with_primary<T>(
        &mut self,
        work: impl FnOnce(&mut Self, u32) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let doing = "derive the storage key";
        let parent =
            self.ask(doing, &wire::create_primary())?.take(doing, |fields| fields.u32())?;
        let done = work(self, parent);
        self.forget(parent);
        done
    }

    /// Runs `work` with a session that is bound to the current value of PCR 7.
    fn with_session<T>(
        &mut self,
        kind: Session,
        work: impl FnOnce(&mut Self, u32) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let doing = "begin a session";
        let mut nonce = [0; 16];
        aws_lc_rs::rand::fill(&mut nonce).map_err(|error| {
            let source = io::Error::other(error);
            Error::Device { doing, source }
        })?;
        let session = self.ask(doing, &wire::start_session(kind, &nonce))?;
        let session = session.take(doing, |fields| fields.u32())?;
        let bound = self.ask("read PCR 7", &wire::policy_pcr(session, SECURE_BOOT));
        let done = bound.and_then(|_| work(self, session));
        self.forget(session);
        done
    }

    /// Frees a handle. An error is ignored, because the TPM may already have freed the handle.
    fn forget(&mut self, handle: u32) {
        let _ = self.ask("free a handle", &wire::flush(handle));
    }

    fn ask(&mut self, doing: &'static str, command: &[u8]) -> Result<TpmResponse, Error> {
        let answer = exchange(&mut self.0, command);
        let answer = answer.map_err(|source| Error::Device { doing, source })?;
        match wire::parse(&answer) {
            Some(Ok(_)) => Ok(TpmResponse(answer)),
            Some(Err(code)) => Err(refused(doing, code)),
            None => Err(unreadable(doing)),
        }
    }
}

/// Returns the private and public part of a stored secret, or `None` if damaged.
fn parts(sealed: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut fields = Fields::of(sealed.strip_prefix(MAGIC)?);
    Some((fields.sized()?, fields.sized()?))
}

/// Response of the TPM with a success code.
struct TpmResponse(Vec<u8>);

impl TpmResponse {
    fn take<T>(
        &self,
        doing: &'static str,
        read: impl FnOnce(&mut Fields<'_>) -> Option<T>,
    ) -> Result<T, Error> {
        let fields = wire::parse(&self.0).and_then(Result::ok);
        fields.and_then(|mut fields| read(&mut fields)).ok_or_else(|| unreadable(doing))
    }
}

fn unreadable(doing: &'static str) -> Error {
    let source = io::Error::new(io::ErrorKind::InvalidData, "the response is incomplete");
    Error::Device { doing, source }
}

/// Converts a response code to an error. The mask removes the number of the parameter, handle or
/// session from codes of the form `TPM_RC_FMT1`.
fn refused(doing: &'static str, code: u32) -> Error {
    match code & FORMAT_1 {
        INTEGRITY => Error::OtherTpm,
        POLICY_FAIL => Error::Changed,
        _ => Error::Refused { doing, code },
    }
}

/// Writes a command and reads the complete response. A stream may return the response in pieces.
fn exchange(device: &mut (impl Read + Write), command: &[u8]) -> io::Result<Vec<u8>> {
    device.write_all(command)?;
    let mut answer = vec![0; wire::ANSWER_MAX];
    let mut count = 0;
    loop {
        match device.read(&mut answer[count..])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            more => count += more,
        }
        let size = wire::size_of_answer(&answer[..count]);
        if let Some(size) = size.filter(|size| count >= (*size).max(wire::HEADER)) {
            answer.truncate(size.max(wire::HEADER));
            return Ok(answer);
        }
        if count == answer.len() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the response is too long"));
        }
    }
}

#[cfg(test)]
mod tests;
