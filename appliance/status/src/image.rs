//! The files of other servers that the box keeps, fetches or failed to fetch.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::story::plain;

/// Characters of a digest that people see and may type.
pub const SHORT_NAME: usize = 12;

/// What `/apis/tinbox.dev/v1alpha1/images` answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Images {
    /// Bytes of the cache's partition.
    pub capacity: u64,
    /// Those that are taken, by whatever.
    pub used: u64,
    /// What the owner should know of that; may be empty.
    pub warning: String,
    /// What is on its way, what is missing, then what is here, the next to go first.
    pub items: Vec<Image>,
}

/// What can be done to an image: the body of a POST there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Order {
    /// Its URL, or the digest of the file or the beginning of that.
    pub image: String,
    /// What.
    pub act: Act,
}

/// What can be done to an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Act {
    /// Keep it whatever happens; fetch it if need be.
    Pin,
    /// No longer.
    Unpin,
    /// Take it out of the cache.
    Remove,
}

/// How a file is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// All of it is here.
    Ready,
    /// It comes.
    Fetching,
    /// Others come first.
    Waiting,
    /// It did not come.
    Failed,
    /// It is not here, and nobody asked for it yet.
    #[default]
    Missing,
}

/// One file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Image {
    /// `sha256:…`; empty while it is not known.
    pub digest: String,
    /// The URL that it came from, without what may be a secret in it; may be empty.
    pub origin: String,
    /// Bytes; 0 while that is not known.
    pub size: u64,
    /// When it was last wanted.
    pub last_used: Option<Timestamp>,
    /// How it is.
    pub state: State,
    /// Why it did not come.
    pub message: String,
    /// Bytes that arrived.
    pub received: u64,
    /// Bytes that arrive in a second; 0 while that is not known.
    pub bytes_per_second: u64,
    /// The owner wants it to stay.
    pub pinned: bool,
    /// A workflow will need it.
    pub needed: bool,
    /// A machine reads it.
    pub in_use: bool,
    /// `namespace/name` of the workflows that mention it.
    pub workflows: Vec<String>,
    /// Its place among those that go when there is no room, from 1 on; 0: it stays.
    pub goes: u32,
}

impl Image {
    /// The digest's first characters; empty while it is not known.
    pub fn short_name(&self) -> &str {
        let name = self.digest.trim_start_matches("sha256:");
        name.get(..SHORT_NAME).unwrap_or(name)
    }

    /// `fetching 40 %, 45 MiB/s, 4.0 s left`, `failed: it answers 404 Not Found`.
    pub fn line(&self) -> String {
        match self.state {
            State::Ready => "ready".to_owned(),
            State::Waiting => "waiting".to_owned(),
            State::Missing => "missing".to_owned(),
            State::Failed => format!("failed: {}", plain(&self.message)),
            State::Fetching => self.fetching(),
        }
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

    /// Why it stays, or when it goes: `pinned, needed`, `goes first`.
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
    use super::{Image, State};

    #[test]
    fn lines() {
        let fetching = |received, size, bytes_per_second| {
            let state = State::Fetching;
            Image { state, received, size, bytes_per_second, ..Image::default() }.line()
        };
        assert_eq!(fetching(40 << 20, 100 << 20, 0), "fetching 40 %");
        let with_rate = fetching(40 << 20, 100 << 20, 10 << 20);
        assert_eq!(with_rate, "fetching 40 %, 10 MiB/s, 6.0 s left");
        assert_eq!(fetching(5 << 20, 0, 0), "fetching, 5.0 MiB so far");
        assert_eq!(fetching(u64::MAX, 1, 1), "fetching 100 %, 1 B/s");
        let failed = Image { state: State::Failed, message: "no".into(), ..Image::default() };
        assert_eq!(failed.line(), "failed: no");
        let kept = Image { pinned: true, in_use: true, ..Image::default() };
        assert_eq!(kept.stays(), "pinned, in use");
        assert_eq!(Image { goes: 1, ..Image::default() }.stays(), "goes first");
    }
}
