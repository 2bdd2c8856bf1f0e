//! Reading of a backup: from a file to parts.

use std::cell::Cell;
use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

use flate2::bufread::GzDecoder;
use stdx::Secret;

use crate::age::{Decryptor, IDENTITY_PREFIX, Identity, Unlock};
use crate::tar::TarReader;
use crate::{ARCHIVE_BYTES_MAX, Contents, Error, Header, PASSPHRASE_BYTES_MAX, Part};

/// Bytes read from the stream at once.
const READ_BYTES: usize = 64 << 10;

/// Secret that opens a backup.
pub enum Key {
    /// Passphrase that was chosen for the backup.
    Passphrase(Secret),
    /// Secret key of one of the public keys that the backup is encrypted for.
    Identity(Identity),
}

impl Key {
    /// Parses a supplied secret: a secret key of age if it begins like one, else a passphrase.
    ///
    /// # Errors
    /// The text begins as a secret key but is not valid, or is longer than a passphrase may be.
    pub fn given(secret: Secret) -> Result<Self, Error> {
        let text = secret.expose();
        if text.len() > PASSPHRASE_BYTES_MAX {
            return Err(Error::Passphrase);
        }
        match text.trim().starts_with(IDENTITY_PREFIX) {
            true => Ok(Key::Identity(Identity::parse(text.trim())?)),
            false => Ok(Key::Passphrase(secret)),
        }
    }
}

enum Payload<R: Read> {
    Plain(BufReader<R>),
    Age(Box<Decryptor<BufReader<R>>>),
}

impl<R: Read> Read for Payload<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Payload::Plain(input) => input.read(bytes),
            Payload::Age(input) => input.read(bytes),
        }
    }
}

/// Stream that counts the bytes read.
struct Counted<R> {
    input: R,
    bytes: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(bytes)?;
        self.bytes.set(self.bytes.get() + count as u64);
        Ok(count)
    }
}

/// Stream that fails beyond [`ARCHIVE_BYTES_MAX`].
struct Bounded<R> {
    input: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(bytes)?;
        self.left = self.left.checked_sub(count as u64).ok_or_else(Error::archive_too_large)?;
        Ok(count)
    }
}

type Unpacked<R> = Bounded<GzDecoder<BufReader<Payload<Counted<R>>>>>;

/// Reader of a backup, part by part. No part is trustworthy before [`Reader::next_part`] has
/// returned `None`: a truncation shows only at the end.
pub struct Reader<R: Read> {
    header: Header,
    /// Number of bytes that were read, and the file size according to the header.
    came: Rc<Cell<u64>>,
    whole: u64,
    tar: Option<TarReader<Unpacked<R>>>,
    found: Contents,
    seen: HashSet<u64>,
    hasher: RandomState,
}

/// Reads the header, for a reader of version `own`. The header is not authenticated yet.
///
/// # Errors
/// [`Error::NotOne`], [`Error::Newer`], [`Error::Truncated`], [`Error::Damaged`].
pub fn head(input: &mut impl BufRead, own: &str) -> Result<Header, Error> {
    Header::decode(input, own).map(|(header, _)| header)
}

impl<R: Read> Reader<R> {
    /// Opens a backup, for a reader of version `own`. Hashing a passphrase takes as much memory as
    /// it did when the backup was made.
    ///
    /// # Errors
    /// The errors of [`head`], or a missing or wrong key.
    pub fn open(input: R, key: Option<&Key>, own: &str) -> Result<Self, Error> {
        let came = Rc::new(Cell::new(0));
        let input = Counted { input, bytes: Rc::clone(&came) };
        let mut input = BufReader::with_capacity(READ_BYTES, input);
        let (header, lines) = Header::decode(&mut input, own)?;
        let whole = header.size.saturating_add(lines.len() as u64);
        let begun = begin(input, &header, key, &lines).map_err(|error| judged(error, &came, whole));
        let (found, seen, hasher) = (Contents::default(), HashSet::new(), RandomState::new());
        let tar = Some(begun?);
        Ok(Self { header, came, whole, tar, found, seen, hasher })
    }

    /// Returns the header, which the payload has authenticated.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the next part, or `None` once all parts were read and match the header.
    ///
    /// # Errors
    /// [`Error::Truncated`], [`Error::Damaged`], [`Error::TooLarge`], or an error of the stream.
    pub fn next_part(&mut self) -> Result<Option<(Part, Vec<u8>)>, Error> {
        self.part().map_err(|error| judged(error, &self.came, self.whole))
    }

    fn part(&mut self) -> Result<Option<(Part, Vec<u8>)>, Error> {
        let Some(tar) = &mut self.tar else { return Ok(None) };
        if let Some((name, content)) = tar.next()? {
            let unknown = || Error::damaged(format!("unknown part {name:?}"));
            let part = Part::at(&name).ok_or_else(unknown)?;
            if !self.seen.insert(self.hasher.hash_one(&part)) {
                return Err(Error::damaged(format!("it has {} twice", part.what())));
            }
            self.found.count(&part);
            return Ok(Some((part, content)));
        }
        if let Some(tar) = self.tar.take() {
            end(tar.into_inner())?;
        }
        if self.found != self.header.contents {
            let (found, expected) = (self.found, self.header.contents);
            return Err(Error::damaged(format!(
                "its parts are {found}, its header has {expected}"
            )));
        }
        Ok(None)
    }
}

/// Reports [`Error::Truncated`] as damage if `came`, the bytes read, reach `whole`, the file size
/// according to the header.
fn judged(error: Error, came: &Cell<u64>, whole: u64) -> Error {
    match error {
        Error::Truncated if came.get() >= whole => Error::damaged("its end was changed"),
        error => error,
    }
}

/// Decrypts, unpacks and checks the archive's first entry, which must equal the header.
fn begin<R: Read>(
    input: BufReader<Counted<R>>,
    header: &Header,
    key: Option<&Key>,
    lines: &[u8],
) -> Result<TarReader<Unpacked<R>>, Error> {
    let payload = match (header.encryption.as_str(), key) {
        ("none", _) => Payload::Plain(input),
        ("passphrase", Some(Key::Passphrase(secret))) => {
            let unlock = Unlock::Passphrase(secret.expose());
            Payload::Age(Box::new(Decryptor::open(input, &unlock)?))
        }
        ("recipients", Some(Key::Identity(identity))) => {
            let opened = Decryptor::open(input, &Unlock::Identity(identity));
            Payload::Age(Box::new(opened.map_err(|error| match error {
                Error::WrongIdentity { .. } => {
                    Error::WrongIdentity { recipients: header.key_ids.join(", ") }
                }
                other => other,
            })?))
        }
        ("passphrase", _) => return Err(Error::KeyNeeded { with: "its passphrase" }),
        ("recipients", _) => {
            let with = "one of its secret keys (AGE-SECRET-KEY-1…)";
            return Err(Error::KeyNeeded { with });
        }
        (other, _) => return Err(Error::damaged(format!("its encryption {other:?} is unknown"))),
    };
    let packed = BufReader::with_capacity(READ_BYTES, payload);
    let unpacked = Bounded { input: GzDecoder::new(packed), left: ARCHIVE_BYTES_MAX };
    let mut tar = TarReader::new(unpacked);
    match tar.next()? {
        Some((name, bytes)) if name == "header" && bytes == Header::unsized_lines(lines) => {}
        Some((name, _)) if name == "header" => {
            return Err(Error::damaged("its unencrypted lines were changed"));
        }
        _ => return Err(Error::damaged("its archive does not begin with the header")),
    }
    Ok(tar)
}

/// Reads to the end of the stream, which checks gzip's checksum and age's last piece. Extra bytes
/// are an error.
fn end<R: Read>(mut unpacked: Unpacked<R>) -> Result<(), Error> {
    let mut rest = [0; 512];
    loop {
        match unpacked.read(&mut rest).map_err(Error::read)? {
            0 => break,
            count if rest[..count].iter().any(|byte| *byte != 0) => {
                return Err(Error::damaged("it has extra bytes after its archive"));
            }
            _ => {}
        }
    }
    match unpacked.input.into_inner().read(&mut rest).map_err(Error::read)? {
        0 => Ok(()),
        _ => Err(Error::damaged("it has extra bytes after its archive")),
    }
}
