//! Code and addresses for the claim of a box by its first owner.

use serde::{Deserialize, Serialize};

use super::Text;

/// Maximum length of a link in characters (QR code version 2, level M, alphanumeric mode).
pub const LINK_CHARS_MAX: usize = 38;

/// One-time code, and the URLs of the page that accepts the code. Only an unclaimed box has a code.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Claim {
    /// URLs of the box, best first: `https://10.20.30.40`, `https://box-7f3a.local`.
    pub urls: Vec<Text>,
    /// Code of six characters: `7KQ4M2`.
    pub code: Text,
    /// Number of wrong codes that are still allowed before the code changes.
    pub tries_left: u32,
    /// Number of wrong codes after which the code changes.
    pub tries_max: u32,
}

impl Claim {
    /// Returns the text of the QR code: `HTTPS://10.20.30.40/S/7KQ4M2`. Upper case allows the
    /// alphanumeric mode, which needs fewer modules. `None` if no URL is short enough.
    pub fn link(&self) -> Option<String> {
        let links = self.urls.iter().map(|url| {
            format!("{}/S/{}", url.trim_end_matches('/'), self.code).to_ascii_uppercase()
        });
        let fits =
            |link: &String| link.chars().all(is_alphanumeric) && link.len() <= LINK_CHARS_MAX;
        if self.code.is_empty() { None } else { links.into_iter().find(fits) }
    }

    /// Returns the first URL without its scheme, for typing: `10.20.30.40`. `None` without a URL.
    pub fn address(&self) -> Option<&str> {
        let url = self.urls.first()?;
        let bare = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
        Some(bare.trim_end_matches('/'))
    }
}

/// Returns true for a character of the QR code's alphanumeric mode.
fn is_alphanumeric(char: char) -> bool {
    char.is_ascii_digit() || char.is_ascii_uppercase() || " $%*+-./:".contains(char)
}
