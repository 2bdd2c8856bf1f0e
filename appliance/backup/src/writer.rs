//! Writing of a backup: from parts to a file.

use std::io::{self, Seek, SeekFrom, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use stdx::Secret;

use crate::age::{self, Encryptor, IDENTITY_PREFIX, Recipient};
use crate::tar::TarWriter;
use crate::{
    Contents, ENTRY_BYTES_MAX, Error, Header, PASSPHRASE_BYTES_MAX, PASSPHRASE_CHARS_MIN, Part,
};

/// Protection of a new backup.
pub enum Lock {
    /// Not encrypted. Callers leave secrets out.
    Plain,
    /// Encrypted with this passphrase.
    Passphrase(Secret),
    /// Encrypted for these public keys.
    Recipients(Vec<Recipient>),
}

impl Lock {
    /// Checks a passphrase. A secret key of age is refused, because the text that opens a backup is
    /// read as a key if it has the form of one.
    ///
    /// # Errors
    /// [`Error::Passphrase`] if the passphrase is too short or too long, [`Error::SecretKey`] for a
    /// secret key.
    pub fn passphrase(secret: Secret) -> Result<Self, Error> {
        let text = secret.expose();
        if text.trim().starts_with(IDENTITY_PREFIX) {
            return Err(Error::SecretKey);
        }
        let good = text.chars().count() >= PASSPHRASE_CHARS_MIN;
        match good && text.len() <= PASSPHRASE_BYTES_MAX {
            true => Ok(Lock::Passphrase(secret)),
            false => Err(Error::Passphrase),
        }
    }

    /// Returns the header's fields `encryption` and `key_ids`.
    pub fn words(&self) -> (String, Vec<String>) {
        match self {
            Lock::Plain => ("none".to_owned(), Vec::new()),
            Lock::Passphrase(_) => ("passphrase".to_owned(), Vec::new()),
            Lock::Recipients(all) => {
                ("recipients".to_owned(), all.iter().map(Recipient::text).collect())
            }
        }
    }
}

enum Payload<W: Write> {
    Plain(W),
    Age(Encryptor<W>),
}

impl<W: Write> Write for Payload<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Payload::Plain(out) => out.write(bytes),
            Payload::Age(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Payload::Plain(out) => out.flush(),
            Payload::Age(out) => out.flush(),
        }
    }
}

/// Writer of a backup, from the start of the stream `W`.
pub struct Writer<W: Write + Seek> {
    tar: TarWriter<GzEncoder<Payload<W>>>,
    seconds: u64,
    /// Offset of the payload in the file.
    begin: u64,
    promised: Contents,
    kept: Contents,
}

impl<W: Write + Seek> Writer<W> {
    /// Begins a backup. `header.contents` announces the parts. `lock` replaces the header's fields
    /// about encryption.
    ///
    /// # Errors
    /// The header is too long, or the stream cannot be written.
    pub fn begin(out: W, header: &Header, lock: &Lock) -> Result<Self, Error> {
        Self::begin_with(out, header, lock, age::LOG_N)
    }

    /// Begins a backup with another scrypt work factor, for tests that hash often.
    pub(crate) fn begin_with(
        mut out: W,
        header: &Header,
        lock: &Lock,
        log_n: u8,
    ) -> Result<Self, Error> {
        let (encryption, key_ids) = lock.words();
        let header = Header { size: 0, encryption, key_ids, ..header.clone() };
        let lines = header.encode()?;
        out.write_all(&lines).map_err(Error::write)?;
        let payload = match lock {
            Lock::Plain => Payload::Plain(out),
            Lock::Passphrase(secret) => {
                Payload::Age(Encryptor::with_passphrase(out, secret.expose(), log_n)?)
            }
            Lock::Recipients(all) => Payload::Age(Encryptor::with_recipients(out, all)?),
        };
        let seconds = u64::try_from(header.made.as_second()).unwrap_or(0);
        let mut tar = TarWriter::new(GzEncoder::new(payload, Compression::default()));
        tar.add("header", seconds, &lines)?;
        let (promised, kept) = (header.contents, Contents::default());
        Ok(Self { tar, seconds, begin: lines.len() as u64, promised, kept })
    }

    /// Adds a part to the archive.
    ///
    /// # Errors
    /// The part cannot be stored, or the stream cannot be written.
    pub fn add(&mut self, part: &Part, content: &[u8]) -> Result<(), Error> {
        let path = part.path()?;
        if content.len() > ENTRY_BYTES_MAX {
            let why = format!("it has {} bytes, the limit is {ENTRY_BYTES_MAX}", content.len());
            return Err(Error::Unkept { what: part.what(), why });
        }
        self.kept.count(part);
        self.tar.add(&path, self.seconds, content)
    }

    /// Completes the backup and returns the stream.
    ///
    /// # Errors
    /// The added parts differ from the header, or the stream cannot be written.
    pub fn finish(self) -> Result<W, Error> {
        if self.kept != self.promised {
            let why = format!("the header has {}, the parts are {}", self.promised, self.kept);
            return Err(Error::Unkept { what: "all parts".to_owned(), why });
        }
        let payload = self.tar.finish()?.finish().map_err(Error::write)?;
        let mut out = match payload {
            Payload::Plain(out) => out,
            Payload::Age(out) => out.finish()?,
        };
        let size = out.stream_position().map_err(Error::write)?.saturating_sub(self.begin);
        let (at, digits) = Header::size_at(size);
        out.seek(SeekFrom::Start(at)).map_err(Error::write)?;
        out.write_all(digits.as_bytes()).map_err(Error::write)?;
        out.seek(SeekFrom::End(0)).map_err(Error::write)?;
        Ok(out)
    }
}

impl Contents {
    /// Adds `part` to the numbers.
    pub fn count(&mut self, part: &Part) {
        match part {
            Part::Object { resource, .. } => {
                self.objects += 1;
                self.hardware += u64::from(resource == "tinkerbell.org/hardware");
                self.secrets += u64::from(resource == "/secrets");
            }
            Part::Leases { .. } => self.leases += 1,
            Part::File { .. } => self.files += 1,
            Part::Settings => self.settings = true,
            Part::Images => {}
        }
    }
}
