//! Installation of a bundle from a stream of bytes into a slot. Needs a thread that may block.

use std::path::Path;

use axum::body::Bytes;
use platform::bundle::{self, Arch, Event, Manifest, PublicKey, Reader};
use platform::slots::{Filling, Slot};
use semver::Version;
use tokio::sync::mpsc;

use super::UpdateError;

/// Inputs for the installation of a bundle.
pub struct Install<'a> {
    /// Trusted public keys. A bundle must be signed with one of these keys.
    pub keys: Vec<PublicKey>,
    /// Slot of the running system.
    pub running: Slot,
    /// Version of the running release.
    pub version: &'a str,
    /// Versions of releases that the owner does not want to install.
    pub hold: Vec<String>,
    /// Pieces of the bundle. The channel closes at the end, or when the client disconnects.
    pub pieces: mpsc::Receiver<Bytes>,
}

/// Step of an installation, reported to the caller.
pub enum Step<'a> {
    /// The signature is valid, and the release is allowed.
    Accepted(&'a Manifest),
    /// Number of bytes received so far.
    Received(u64),
    /// All data was received and verified. The slot is about to be put on trial.
    Written(&'a Manifest),
}

impl Install<'_> {
    /// Writes the bundle to the other slot. Calls `tell` at each step; its error ends the work.
    pub fn run(
        mut self,
        tell: impl Fn(Step<'_>) -> Result<(), UpdateError>,
    ) -> Result<(), UpdateError> {
        let mut reader = Reader::new(std::mem::take(&mut self.keys));
        let mut filling: Option<(Filling, Manifest)> = None;
        let mut received = 0;
        while let Some(piece) = self.pieces.blocking_recv() {
            let mut rest = &piece[..];
            while let Some(event) = reader.read(&mut rest).map_err(UpdateError::Bundle)? {
                match (event, &mut filling) {
                    (Event::Manifest(manifest), _) => {
                        wanted(&manifest, self.version)?;
                        held(&manifest.version, &self.hold)?;
                        tell(Step::Accepted(&manifest))?;
                        let begun = Filling::begin(self.running, (*manifest).clone());
                        filling = Some((begun.map_err(UpdateError::Host)?, *manifest));
                    }
                    (Event::Data { content, offset, bytes }, Some((filling, _))) => {
                        filling.write(content, offset, &bytes).map_err(UpdateError::Host)?;
                    }
                    (Event::Data { .. } | Event::Whole(_) | Event::End, _) => {}
                }
            }
            received += piece.len() as u64;
            tell(Step::Received(received))?;
        }
        reader.finish().map_err(UpdateError::Bundle)?;
        let (filling, manifest) =
            filling.ok_or(UpdateError::Bundle(bundle::Error::Truncated { missing: 1 }))?;
        tell(Step::Written(&manifest))?;
        filling.finish().map_err(UpdateError::Host)
    }
}

/// Checks that the release is for this architecture and not older than the running release.
pub(super) fn wanted(manifest: &Manifest, running: &str) -> Result<(), UpdateError> {
    if manifest.arch != Arch::OWN {
        let why = format!("the release is for {}, but this box is {}", manifest.arch, Arch::OWN);
        return Err(UpdateError::unwanted(why, None));
    }
    let read = |version: &str| {
        Version::parse(version).map_err(|why| {
            UpdateError::unwanted(format!("{version:?} is not a valid version: {why}"), None)
        })
    };
    if read(&manifest.version)? < read(running)? {
        return Err(UpdateError::unwanted(
            format!("the release is {}, older than {running}, which runs here", manifest.version),
            Some("`tinbox update rollback` starts the release in the other slot"),
        ));
    }
    Ok(())
}

/// Checks that the owner does not hold back the release.
pub(super) fn held(version: &str, hold: &[String]) -> Result<(), UpdateError> {
    if !hold.iter().any(|held| held == version) {
        return Ok(());
    }
    Err(UpdateError::unwanted(
        format!("the release {version} is blocked on this box"),
        Some(
            "`tinbox update unhold` allows it; `tinbox box settings history` shows who blocked it",
        ),
    ))
}

/// Reads the public keys of trusted bundle signers.
///
/// # Errors
/// The file cannot be read, or a key is invalid.
pub fn keys(file: &Path) -> anyhow::Result<Vec<PublicKey>> {
    use anyhow::Context as _;
    let what = || format!("cannot read {}", file.display());
    let text = std::fs::read_to_string(file).with_context(what)?;
    PublicKey::list(&text).with_context(what)
}

#[cfg(test)]
mod tests {
    use platform::bundle::{Arch, Manifest, Verity};

    use super::{held, wanted};

    #[test]
    fn a_release_that_is_held_is_refused_with_words() {
        let hold = ["1.5.0".to_owned()];
        assert!(held("1.5.1", &hold).is_ok() && held("1.5.0", &[]).is_ok());
        let message = held("1.5.0", &hold).unwrap_err().to_string();
        assert!(message.starts_with("the release 1.5.0 is blocked"), "{message}");
    }

    #[test]
    fn older_releases_and_those_for_others_are_refused() {
        let other = if Arch::OWN == Arch::X86_64 { Arch::Aarch64 } else { Arch::X86_64 };
        for (version, arch, why) in [
            ("1.4.0", Arch::OWN, ""),
            ("1.4.1-rc.1", Arch::OWN, ""),
            ("1.10.0", Arch::OWN, ""),
            ("1.4.0-rc.1", Arch::OWN, "older than 1.4.0"),
            ("1.3.9", Arch::OWN, "older than 1.4.0"),
            ("1.5.0", other, "this box is"),
            ("later", Arch::OWN, "is not a valid version"),
        ] {
            let verity = Verity { root_hash: [0; 32], salt: [0; 32], data_blocks: 1 };
            let (version, parts) = (version.to_owned(), Vec::new());
            let manifest = Manifest { version, arch, built: 0, verity, parts };
            let message = wanted(&manifest, "1.4.0").map_err(|refused| refused.to_string());
            match message {
                Ok(()) => assert_eq!(why, "", "{}", manifest.version),
                Err(message) => assert!(!why.is_empty() && message.contains(why), "{message}"),
            }
        }
    }
}
