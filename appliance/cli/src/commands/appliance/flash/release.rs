//! What a release says of its files: `SHA256SUMS`, and `SHA256SUMS.minisig` over it, which is
//! somebody's whose keys one has. Without such keys the sums tell damage from what is whole, and
//! nothing of who made it.

use std::path::{Path, PathBuf};

use minisign_verify::{Error as Minisign, PublicKey, Signature};

use super::image::text;
use crate::error::Error;

/// The sums of a release, beside its files.
const SUMS: &str = "SHA256SUMS";
/// Lists of sums, signatures and keys that are larger are none.
const BYTES_MAX: u64 = 1 << 20;
/// What to do about a signature that is not there or not good.
const ANEW: &str = "fetch the release's files again, all from one place; --key names the keys of \
                    those whose releases you take";

/// Those whose releases are taken.
pub struct Keys {
    file: PathBuf,
    keys: Vec<PublicKey>,
}

impl Keys {
    /// Those in `file`, or in `~/.tinbox/update.pub` where there is such a file.
    ///
    /// # Errors
    /// The file cannot be read, or holds something else than minisign's public keys.
    pub fn find(file: Option<&Path>) -> Result<Option<Self>, Error> {
        let usual = std::env::home_dir().map(|home| home.join(".tinbox/update.pub"));
        let Some(path) = file.map(Path::to_owned).or(usual) else { return Ok(None) };
        match (text(&path, BYTES_MAX)?, file) {
            (Some(text), _) => Self::read(path, &text).map(Some),
            (None, None) => Ok(None),
            (None, Some(_)) => {
                Err(Error::Content { file: path.display().to_string(), why: "it is absent".into() })
            }
        }
    }

    /// Files of minisign's, one after the other: comments, and a line for each key.
    fn read(file: PathBuf, text: &str) -> Result<Self, Error> {
        let wrong = |why: String| Error::Content { file: file.display().to_string(), why };
        let lines = text.lines().map(str::trim).enumerate();
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.contains("comment:"));
        let key = |(at, line): (usize, &str)| {
            PublicKey::from_base64(line).map_err(|error| {
                wrong(format!("line {} is no public key of minisign's: {error}", at + 1))
            })
        };
        let keys = lines.map(key).collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() {
            return Err(wrong("no public key is in it".to_owned()));
        }
        Ok(Self { file, keys })
    }

    /// That one of them signed `sums`; else why not, as a phrase.
    fn judge(&self, sums: &str, signature: &str) -> Result<(), String> {
        let signature = Signature::decode(signature)
            .map_err(|error| format!("it is no signature of minisign's: {error}"))?;
        let mut judged = self.keys.iter().map(|key| key.verify(sums.as_bytes(), &signature, false));
        let known = judged.find(|judged| !matches!(judged, Err(Minisign::UnexpectedKeyId)));
        match known {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(format!("the signature is not over this {SUMS}: {error}")),
            None => Err(format!("the key that signed is not in {}", self.file.display())),
        }
    }
}

/// What is known of a release's files.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sums {
    text: Option<String>,
    /// Somebody whose key one has says so.
    pub signed: bool,
}

impl Sums {
    /// Of the release that the file at `image` is of.
    ///
    /// # Errors
    /// There are keys, and no good signature of theirs.
    pub fn beside(image: &Path, keys: Option<&Keys>) -> Result<Self, Error> {
        let place = image.with_file_name(SUMS);
        let sums = text(&place, BYTES_MAX)?;
        let Some(keys) = keys else { return Ok(Self { text: sums, signed: false }) };
        let signature = place.with_added_extension("minisig");
        let unsigned = |file: &Path, why: String| Error::Unable {
            what: format!("believe {}", file.display()),
            why,
            hint: ANEW,
        };
        let absent = |file: &Path| unsigned(file, "it is absent".to_owned());
        let sums = sums.ok_or_else(|| absent(&place))?;
        let said = text(&signature, BYTES_MAX)?.ok_or_else(|| absent(&signature))?;
        keys.judge(&sums, &said).map_err(|why| unsigned(&signature, why))?;
        Ok(Self { text: Some(sums), signed: true })
    }

    /// The sum of the file at `path`, in lower-case hexadecimal digits.
    ///
    /// # Errors
    /// The list is signed and has none: nobody vouches for that file.
    pub fn of(&self, path: &Path) -> Result<Option<String>, Error> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let sum = self.text.as_deref().and_then(|sums| sum_of(sums, &name));
        if sum.is_none() && self.signed {
            return Err(Error::Unable {
                what: format!("believe {}", path.display()),
                why: format!("the signed {SUMS} does not name it"),
                hint: ANEW,
            });
        }
        Ok(sum)
    }
}

/// The sum of the file `name` in a list as sha256sum(1) writes it.
fn sum_of(sums: &str, name: &str) -> Option<String> {
    let mut lines = sums.lines().filter_map(|line| line.split_once([' ', '\t']));
    let (sum, _) = lines.find(|(_, named)| named.trim_start_matches([' ', '*']) == name)?;
    Some(sum.to_ascii_lowercase())
}

#[cfg(test)]
mod tests;
