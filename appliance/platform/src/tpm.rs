//! Secrets sealed to the TPM of this board and to the state of its Secure Boot, by TPM 2.0
//! commands to `/dev/tpmrm0`.
//!
//! A sealed secret opens on the board that sealed it alone, while PCR 7 is as it was: Secure Boot
//! on or off, its keys and its revocations. PCR 7 survives an update of the box. PCR 4 and 9 do
//! not: they hold the loader and the kernel, which an update replaces. So another system that this
//! board is allowed to start can open the secret too; a disk in another board cannot.
//!
//! The secret crosses the wires of a discrete TPM in the clear.
//!
//! Enter at [`Tpm::open`].

mod wire;

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use wire::{Fields, Session};

/// The device with the kernel's resource manager.
const DEVICE: &str = "/dev/tpmrm0";
/// Register of the state of Secure Boot (TCG, "PC Client Platform Firmware Profile" §3.3.4.8).
const SECURE_BOOT: u8 = 7;
/// Beginning of a sealed secret as it is stored; then private and public part, each after its
/// count.
const MAGIC: &[u8; 8] = b"tinboxT1";
/// Bytes of the longest secret (`MAX_SYM_DATA`).
pub const SECRET_MAX: usize = 128;
/// Bits of a response code that name the error of a session, parameter or handle
/// (`TPM_RC_FMT1`), and the errors: the object is of another TPM, the policy does not hold.
const FORMAT_1: u32 = 0x0bf;
const INTEGRITY: u32 = 0x09f;
const POLICY_FAIL: u32 = 0x09d;

/// A secret that is not sealed or unsealed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The device does not work.
    #[error("cannot {doing} by the TPM")]
    Device {
        /// The step.
        doing: &'static str,
        /// Its reason.
        #[source]
        source: io::Error,
    },
    /// The TPM refuses.
    #[error(
        "cannot {doing} by the TPM: it answers {code:#x}; look the code up with tpm2_rc_decode"
    )]
    Refused {
        /// The step.
        doing: &'static str,
        /// `TPM_RC`.
        code: u32,
    },
    /// Another TPM sealed the secret, or this one has been cleared since.
    #[error("it is sealed to another TPM: the disk is in another board, or the TPM was cleared")]
    OtherTpm,
    /// The state of Secure Boot is another one.
    #[error(
        "it is sealed to another state of Secure Boot: change it back in the firmware's settings"
    )]
    Changed,
    /// The stored bytes are not what was sealed.
    #[error("it is damaged")]
    Damaged,
    /// The secret does not fit.
    #[error("a TPM seals at most {SECRET_MAX} bytes, found {0}")]
    TooLong(usize),
}

/// Something that seals short secrets to the board that it is in.
pub trait Sealer {
    /// Seals a secret of at most [`SECRET_MAX`] bytes. The result may lie in the open.
    ///
    /// # Errors
    /// The TPM refuses, or does not work.
    fn seal(&mut self, secret: &[u8]) -> Result<Vec<u8>, Error>;

    /// The secret that [`Sealer::seal`] sealed.
    ///
    /// # Errors
    /// Another TPM sealed it, or Secure Boot is in another state.
    fn unseal(&mut self, sealed: &[u8]) -> Result<Vec<u8>, Error>;
}

/// True for a sealed secret as it is stored.
pub fn is_sealed(stored: &[u8]) -> bool {
    parts(stored).is_some()
}

/// A TPM 2.0 behind a device or a stream.
#[derive(Debug)]
pub struct Tpm<D>(D);

impl Tpm<File> {
    /// The TPM of this board; `None` when there is none.
    ///
    /// # Errors
    /// It cannot be opened.
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
                // Their size stands before the parameters.
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

    /// With a session that is bound to the present state of Secure Boot.
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

    /// One that the TPM has forgotten by itself is no loss.
    fn forget(&mut self, handle: u32) {
        let _ = self.ask("forget a handle", &wire::flush(handle));
    }

    fn ask(&mut self, doing: &'static str, command: &[u8]) -> Result<Answer, Error> {
        let answer = exchange(&mut self.0, command);
        let answer = answer.map_err(|source| Error::Device { doing, source })?;
        match wire::parse(&answer) {
            Some(Ok(_)) => Ok(Answer(answer)),
            Some(Err(code)) => Err(refused(doing, code)),
            None => Err(unreadable(doing)),
        }
    }
}

/// Parts of a stored secret: private and public.
fn parts(sealed: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut fields = Fields::of(sealed.strip_prefix(MAGIC)?);
    Some((fields.sized()?, fields.sized()?))
}

/// An answer without an error.
struct Answer(Vec<u8>);

impl Answer {
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
    let source = io::Error::new(io::ErrorKind::InvalidData, "its answer is not whole");
    Error::Device { doing, source }
}

/// Codes of the form `TPM_RC_FMT1` name the parameter, handle or session too.
fn refused(doing: &'static str, code: u32) -> Error {
    match code & FORMAT_1 {
        INTEGRITY => Error::OtherTpm,
        POLICY_FAIL => Error::Changed,
        _ => Error::Refused { doing, code },
    }
}

/// Writes a command and reads its whole answer. A device gives the answer at once, a stream may
/// give it in pieces.
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
            return Err(io::Error::new(io::ErrorKind::InvalidData, "its answer is too long"));
        }
    }
}

#[cfg(test)]
mod tests;
