//! Pinned images in `STATE/image-pins`, one line `DIGEST URL` per pin, with a dash for an unknown
//! value. The file is not in the cache volume, which may be lost.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use artifact_cache::{Checksum, Digest, RemoteFile};
use durable_file::replace_private;

const FILE: &str = "image-pins";
/// Maximum number of pins.
const MAX_PINS: usize = 256;
/// Maximum length of a URL in bytes.
const MAX_URL: usize = 2048;
const UNKNOWN: &str = "-";

/// Pin of one image. At least one field is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// Digest of the file; `None` until the first download is complete.
    pub digest: Option<Digest>,
    /// URL of the file; `None` if only the digest is known.
    pub url: Option<String>,
}

impl Pin {
    /// Returns the file to download if it is not in the cache; `None` without a URL.
    pub fn wanted(&self) -> Option<RemoteFile> {
        let checksum = self.digest.map(Checksum::Sha256);
        self.url.clone().map(|url| RemoteFile { url, checksum })
    }

    fn line(&self) -> String {
        let digest = self.digest.map(|digest| digest.to_string());
        let known = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.to_owned());
        format!("{} {}\n", known(digest), known(self.url.clone()))
    }

    fn read(line: &str) -> Option<Self> {
        let (digest, url) = line.split_once(' ')?;
        let digest = match digest.parse() {
            Ok(Checksum::Sha256(digest)) => Some(digest),
            _ => None,
        };
        let url = Some(url).filter(|url| *url != UNKNOWN && !url.is_empty()).map(str::to_owned);
        (digest.is_some() || url.is_some()).then_some(Self { digest, url })
    }
}

/// Pins, stored in the state folder.
pub struct Pins {
    state: PathBuf,
    list: Vec<Pin>,
}

impl Pins {
    /// Reads the stored pins; a missing file means no pins.
    pub fn open(state: &Path) -> anyhow::Result<Self> {
        let file = state.join(FILE);
        let text = match std::fs::read_to_string(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            read => read.with_context(|| format!("cannot read {}", file.display()))?,
        };
        Ok(Self {
            list: text.lines().filter_map(Pin::read).take(MAX_PINS).collect(),
            state: state.to_owned(),
        })
    }

    /// Returns the pins, at most 256.
    pub fn list(&self) -> &[Pin] {
        &self.list
    }

    /// Adds a pin and stores the list. An error means that the URL is invalid, the list is full, or
    /// the file cannot be written.
    pub fn add(&mut self, pin: Pin) -> anyhow::Result<()> {
        let long = pin.url.as_ref().is_some_and(|url| url.len() > MAX_URL || !is_one_line(url));
        anyhow::ensure!(!long, "a URL of an image has at most {MAX_URL} printable characters");
        anyhow::ensure!(self.list.len() < MAX_PINS, "{MAX_PINS} images are pinned already");
        if self.list.contains(&pin) {
            return Ok(());
        }
        let mut list = self.list.clone();
        list.push(pin);
        self.replace(list)
    }

    /// Sets the digest of the pins with the URL `url` after a download.
    pub fn learn(&mut self, url: &str, digest: Digest) -> anyhow::Result<()> {
        let mut list = self.list.clone();
        let unknown = |pin: &&mut Pin| pin.digest.is_none() && pin.url.as_deref() == Some(url);
        list.iter_mut().filter(unknown).for_each(|pin| pin.digest = Some(digest));
        self.replace(list)
    }

    /// Removes the pins that `is_it` selects. Returns true if at least one was removed.
    pub fn drop_if(&mut self, is_it: impl Fn(&Pin) -> bool) -> anyhow::Result<bool> {
        let list: Vec<Pin> = self.list.iter().filter(|pin| !is_it(pin)).cloned().collect();
        let some = list.len() < self.list.len();
        self.replace(list)?;
        Ok(some)
    }

    fn replace(&mut self, list: Vec<Pin>) -> anyhow::Result<()> {
        if list == self.list {
            return Ok(());
        }
        let text: String = list.iter().map(Pin::line).collect();
        // The file is private, because a URL may contain a token.
        replace_private(&self.state, FILE, text.as_bytes())
            .with_context(|| format!("cannot write {}", self.state.join(FILE).display()))?;
        self.list = list;
        Ok(())
    }
}

fn is_one_line(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() || c.is_whitespace())
}

#[cfg(test)]
mod tests {
    use artifact_cache::Digest;

    use super::{Pin, Pins};

    #[test]
    fn pins_outlive_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let mut pins = Pins::open(folder).unwrap();
        let url = "https://a.example/b.raw?token=x";
        pins.add(Pin { digest: None, url: Some(url.to_owned()) }).unwrap();
        pins.add(Pin { digest: Some(Digest::of(b"b")), url: None }).unwrap();
        pins.learn(url, Digest::of(b"a")).unwrap();
        assert!(pins.add(Pin { digest: None, url: Some("http://a\nb".to_owned()) }).is_err());

        let mut again = Pins::open(folder).unwrap();
        assert_eq!(again.list(), pins.list());
        assert_eq!(again.list()[0].digest, Some(Digest::of(b"a")));
        assert!(again.drop_if(|pin| pin.url.is_some()).unwrap());
        assert!(!again.drop_if(|pin| pin.url.is_some()).unwrap());
        assert_eq!(Pins::open(folder).unwrap().list().len(), 1);
    }
}
