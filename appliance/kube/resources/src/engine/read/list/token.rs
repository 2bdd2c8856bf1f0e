//! Continue tokens of paged lists: last key of the page, and revision of the listed state.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use store::Key;

use crate::definition::ResourceDefinition;
use crate::status_error::StatusError;

/// Maximum length of a continue token from a client, in bytes.
const MAX_TOKEN: usize = 2048;

const FORM: &str = "meta.k8s.io/v1";
/// Revision in a token that means the newest state.
const NEWEST: i64 = -1;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Token {
    v: String,
    rv: i64,
    start: String,
}

impl Token {
    /// Makes a token that continues after `key` in the state of `revision`.
    pub fn after(key: &Key, revision: u64) -> Self {
        let start = match key.namespace.as_str() {
            "" => format!("{}\0", key.name),
            namespace => format!("{namespace}/{}\0", key.name),
        };
        Self { v: FORM.to_owned(), rv: i64::try_from(revision).unwrap_or(NEWEST), start }
    }

    /// Returns a token with the same position and the newest state as revision.
    pub fn of_the_newest(&self) -> Self {
        Self { rv: NEWEST, ..self.clone() }
    }

    /// Parses a token from a client.
    pub fn read(text: &str) -> Result<Self, StatusError> {
        let refused = |why: String| {
            let text = format!("invalid continue token: continue key is not valid: {why}");
            StatusError::bad_request(text)
        };
        if text.len() > MAX_TOKEN {
            return Err(refused(format!("it is longer than {MAX_TOKEN} bytes")));
        }
        let bytes = URL_SAFE_NO_PAD
            .decode(text.trim_end_matches('='))
            .map_err(|error| refused(error.to_string()))?;
        let token: Self =
            serde_json::from_slice(&bytes).map_err(|error| refused(error.to_string()))?;
        let known = token.v == FORM && (token.rv == NEWEST || token.rv > 0);
        if !known || token.start.is_empty() {
            return Err(refused("server does not recognize this encoded version".to_owned()));
        }
        Ok(token)
    }

    /// Returns the encoded token that clients receive.
    pub fn text(&self) -> String {
        let json = serde_json::to_vec(self).unwrap_or_default();
        URL_SAFE_NO_PAD.encode(json)
    }

    /// Returns the revision of the listed state; `None` means the newest state.
    pub fn revision(&self) -> Option<u64> {
        u64::try_from(self.rv).ok()
    }

    /// Returns the key after which the next page starts.
    pub fn key(&self, definition: &ResourceDefinition) -> Key {
        let start = self.start.strip_suffix('\0').unwrap_or(&self.start);
        match start.split_once('/').filter(|_| definition.namespaced) {
            Some((namespace, name)) => Key::new(definition.id(), namespace, name),
            None => Key::new(definition.id(), "", start),
        }
    }
}
