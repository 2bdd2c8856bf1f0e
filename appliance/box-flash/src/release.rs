//! Checksums of a release's files, `SHA256SUMS`, with their signature, `SHA256SUMS.minisig`.
//! Without public keys the checksums detect only damage, not a file of another author.

use std::path::{Path, PathBuf};

use release::{Error as KeyError, PublicKey, SUMS, Unverified, sum_of, verify};

use crate::error::FlashError;
use crate::file::text;

/// Maximum size in bytes of a file with checksums, signatures or keys.
const BYTES_MAX: u64 = 1 << 20;

/// Public keys of the authors whose releases are accepted.
pub struct Keys {
    file: PathBuf,
    keys: Vec<PublicKey>,
}

impl Keys {
    /// Reads the keys of `file`, else of `~/.tinbox/update.pub`. Returns `None` if `file` is not
    /// given and the default file does not exist.
    ///
    /// # Errors
    /// The file cannot be read, or is not a list of minisign public keys.
    pub fn find(file: Option<&Path>) -> Result<Option<Self>, FlashError> {
        let usual = std::env::home_dir().map(|home| home.join(".tinbox/update.pub"));
        let Some(path) = file.map(Path::to_owned).or(usual) else { return Ok(None) };
        match (text(&path, BYTES_MAX)?, file) {
            (Some(text), _) => Self::read(path, &text).map(Some),
            (None, None) => Ok(None),
            (None, Some(_)) => Err(FlashError::Content {
                file: path.display().to_string(),
                why: "it does not exist".into(),
            }),
        }
    }

    /// Parses concatenated public key files of minisign: comments, and a line for each key.
    fn read(file: PathBuf, text: &str) -> Result<Self, FlashError> {
        let wrong = |why: String| FlashError::Content { file: file.display().to_string(), why };
        let keys = PublicKey::list(text).map_err(|error| match error {
            KeyError::PublicKey { line, why } => {
                wrong(format!("line {line}: not a valid minisign public key: {why}"))
            }
            error => wrong(error.to_string()),
        })?;
        if keys.is_empty() {
            return Err(wrong("it contains no public key".to_owned()));
        }
        Ok(Self { file, keys })
    }

    /// Checks that `signature` of `sums` was made by one of the keys; the error is a phrase.
    fn judge(&self, sums: &str, signature: &str) -> Result<(), String> {
        verify(&self.keys, sums.as_bytes(), signature).map_err(|unverified| match unverified {
            Unverified::Content(why) => format!("the signature does not match this {SUMS}: {why}"),
            Unverified::UnknownKey => {
                format!("the signing key is not in {}", self.file.display())
            }
            format @ Unverified::Format(_) => format.to_string(),
        })
    }
}

/// Checksums of a release's files.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sums {
    text: Option<String>,
    /// True if one of the given keys signed the list.
    pub signed: bool,
}

impl Sums {
    /// Reads the checksums of the release of `image`.
    ///
    /// # Errors
    /// `keys` is given, and none of these keys signed the list.
    pub fn beside(image: &Path, keys: Option<&Keys>) -> Result<Self, FlashError> {
        let place = image.with_file_name(SUMS);
        let sums = text(&place, BYTES_MAX)?;
        let Some(keys) = keys else { return Ok(Self { text: sums, signed: false }) };
        let signature = place.with_added_extension("minisig");
        let absent = |file: &Path| untrusted(file, "it does not exist".to_owned());
        let sums = sums.ok_or_else(|| absent(&place))?;
        let signature_text = text(&signature, BYTES_MAX)?.ok_or_else(|| absent(&signature))?;
        keys.judge(&sums, &signature_text).map_err(|why| untrusted(&signature, why))?;
        Ok(Self { text: Some(sums), signed: true })
    }

    /// Returns the SHA-256 of the file at `path` from the list, in lower-case hexadecimal digits;
    /// `None` if the list has no entry.
    ///
    /// # Errors
    /// The list is signed and has no entry for the file.
    pub fn of(&self, path: &Path) -> Result<Option<String>, FlashError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let sum = self.text.as_deref().and_then(|sums| sum_of(sums, &name));
        if sum.is_none() && self.signed {
            return Err(untrusted(path, format!("the signed {SUMS} does not list this file")));
        }
        Ok(sum)
    }
}

fn untrusted(file: &Path, why: String) -> FlashError {
    FlashError::Untrusted { file: file.display().to_string(), why }
}

#[cfg(test)]
mod tests;
