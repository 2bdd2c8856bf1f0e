//! Files that the box downloads and caches, with their state.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::plain;

/// Number of leading digest characters in a short name.
pub const SHORT_NAME: usize = 12;

/// State of the cache, as `/apis/tinbox.dev/v1alpha1/images` reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Images {
    /// Size of the cache's partition, in bytes.
    pub capacity: u64,
    /// Bytes in use on the partition, by any file.
    pub used: u64,
    /// Warning about the space for the owner; may be empty.
    pub warning: String,
    /// Downloads in progress, missing images, then cached images in the order of their eviction.
    pub items: Vec<Image>,
}

/// Operation on a cached image: the body of a POST.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageRequest {
    /// URL of the image, digest of the file, or first characters of the digest.
    pub image: String,
    /// Operation to carry out.
    pub act: ImageOperation,
}

/// Operations on an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ImageOperation {
    /// Downloads the image if it is not cached, and protects it from eviction until `Unpin`.
    Pin,
    /// Allows the eviction of a pinned image.
    Unpin,
    /// Removes the image from the cache.
    Remove,
}

/// State of a file in the cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ImageState {
    /// The whole file is in the cache.
    Ready,
    /// The download is in progress.
    Fetching,
    /// The download waits for other downloads.
    Waiting,
    /// The last download failed.
    Failed,
    /// The file is not cached, and no download was requested.
    #[default]
    Missing,
}

/// File of the cache with its state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Image {
    /// Digest `sha256:…`; empty while unknown.
    pub digest: String,
    /// URL of the origin, with secrets removed; may be empty.
    pub origin: String,
    /// Size in bytes; 0 while unknown.
    pub size: u64,
    /// Time of the last use; `None` if unknown.
    pub last_used: Option<Timestamp>,
    /// State of the file.
    pub state: ImageState,
    /// Reason why the last download failed; empty after the first bytes of a new one.
    pub message: String,
    /// Bytes downloaded so far.
    pub received: u64,
    /// Download rate in bytes per second; 0 while unknown.
    pub bytes_per_second: u64,
    /// True if the owner pinned the file.
    pub pinned: bool,
    /// True if a workflow will need the file.
    pub needed: bool,
    /// True while a machine reads the file.
    pub in_use: bool,
    /// `namespace/name` of each workflow that uses the file.
    pub workflows: Vec<String>,
    /// Position in the order of eviction, from 1 on; 0 means never evicted.
    pub goes: u32,
}

impl Image {
    /// Returns the first characters of the digest; empty while the digest is unknown.
    pub fn short_name(&self) -> &str {
        let name = self.digest.trim_start_matches("sha256:");
        name.get(..SHORT_NAME).unwrap_or(name)
    }

    /// Formats the state: `fetching 40 %, 45 MiB/s, 4.0 s left`, `failed: 404 Not Found`.
    pub fn line(&self) -> String {
        match self.state {
            ImageState::Ready => "ready".to_owned(),
            ImageState::Waiting if self.message.is_empty() => "waiting".to_owned(),
            ImageState::Waiting => {
                format!("waiting; the last attempt failed: {}", plain(&self.message))
            }
            ImageState::Missing => "missing".to_owned(),
            ImageState::Failed => format!("failed: {}", plain(&self.message)),
            ImageState::Fetching => self.fetching(),
        }
    }

    /// Returns the reason of a failed download without the URL, which [`Image::origin`] has.
    pub fn reason(&self) -> &str {
        let start = format!("could not fetch {}: ", self.origin);
        self.message.strip_prefix(&start).unwrap_or(&self.message)
    }

    fn fetching(&self) -> String {
        let mut line = match u128::from(self.received) * 100 / u128::from(self.size.max(1)) {
            percent if self.size > 0 => format!("fetching {} %", percent.min(100)),
            _ => format!("fetching, {} so far", stdx::bytes(self.received)),
        };
        if self.bytes_per_second > 0 {
            line.push_str(&format!(", {}/s", stdx::bytes(self.bytes_per_second)));
            let left = u128::from(self.size.saturating_sub(self.received)) * 1000;
            let millis = left / u128::from(self.bytes_per_second);
            if millis > 0 {
                let millis = u64::try_from(millis).unwrap_or(u64::MAX);
                line.push_str(&format!(", {} left", stdx::seconds(millis)));
            }
        }
        line
    }

    /// Returns the reasons to keep the file (`pinned, needed`), else its eviction place (`goes
    /// first`).
    pub fn stays(&self) -> String {
        let reasons = [(self.pinned, "pinned"), (self.needed, "needed"), (self.in_use, "in use")];
        let words: Vec<&str> =
            reasons.into_iter().filter(|(is, _)| *is).map(|(_, word)| word).collect();
        match self.goes {
            0 => words.join(", "),
            1 => "goes first".to_owned(),
            place => format!("goes as no. {place}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Image, ImageState};

    #[test]
    fn lines() {
        let fetching = |received, size, bytes_per_second| {
            let state = ImageState::Fetching;
            Image { state, received, size, bytes_per_second, ..Image::default() }.line()
        };
        assert_eq!(fetching(40 << 20, 100 << 20, 0), "fetching 40 %");
        let with_rate = fetching(40 << 20, 100 << 20, 10 << 20);
        assert_eq!(with_rate, "fetching 40 %, 10 MiB/s, 6.0 s left");
        assert_eq!(fetching(5 << 20, 0, 0), "fetching, 5.0 MiB so far");
        assert_eq!(fetching(u64::MAX, 1, 1), "fetching 100 %, 1 B/s");
        let failed = Image { state: ImageState::Failed, message: "no".into(), ..Image::default() };
        assert_eq!(failed.line(), "failed: no");
        let kept = Image { pinned: true, in_use: true, ..Image::default() };
        assert_eq!(kept.stays(), "pinned, in use");
        assert_eq!(Image { goes: 1, ..Image::default() }.stays(), "goes first");
    }
}
