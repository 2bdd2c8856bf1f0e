//! Boot tokens of agents. The box writes a token into the kernel command line for one boot of one
//! machine and one workflow. Only the box can create tokens, with its key.
//!
//! A token consists of a nonce and the HMAC-SHA-256 of nonce, agent and workflow. The box therefore
//! stores no issued tokens, and tokens stay valid after a restart of the box.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agent_service::{Service, TokenUse};
use anyhow::Context as _;
use durable_file::replace_private;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

const FILE: &str = "boot-token.key";
/// Length of the key in bytes.
const KEY_BYTES: usize = 32;
/// Length of a nonce in bytes.
const NONCE_BYTES: usize = 12;
/// Nonce of the token on a boot medium. All boots use the same token, because a medium is read in
/// parts, which must not differ.
const MEDIUM: &str = "medium";

/// File in the state folder with the boot of each token.
const BOUND: &str = "bound-boots";
/// Minimum time between two writes, so that machines that boot together cause one write.
const WRITE_EVERY: Duration = Duration::from_secs(1);

/// Restores the bindings of tokens to boots. After an unreadable file, each token is bound again at
/// its next use.
pub fn restore(service: &Service, state: &Path) {
    match std::fs::read_to_string(state.join(BOUND)) {
        Ok(text) => service.boots().restore(&text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(%error, "cannot read the boots of tokens"),
    }
}

/// Writes the bindings of tokens to boots to `STATE/bound-boots` after each change. Never returns.
pub async fn keep(service: Arc<Service>, state: PathBuf) {
    loop {
        service.boots().changed().await;
        let (text, folder) = (service.boots().text(), state.clone());
        let write = move || replace_private(&folder, BOUND, text.as_bytes());
        match tokio::task::spawn_blocking(write).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "cannot write the boots of tokens"),
            Err(error) => {
                tracing::error!(%error, "writing the boots of tokens stopped unexpectedly")
            }
        }
        tokio::time::sleep(WRITE_EVERY).await;
    }
}

/// Issuer and verifier of boot tokens, with the secret key.
#[derive(Clone)]
pub struct BootTokens([u8; KEY_BYTES]);

impl BootTokens {
    /// Creates an issuer with the given key, for tests.
    pub fn with_key(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// Reads the key from `STATE/boot-token.key`; creates the file at the first start. An error
    /// means that the file cannot be read or written, or has a wrong length.
    pub fn ensure(state: &Path) -> anyhow::Result<Self> {
        let path = state.join(FILE);
        match std::fs::read(&path) {
            Ok(bytes) => {
                let key = bytes.try_into().map_err(|_| {
                    anyhow::anyhow!("{} is not {KEY_BYTES} bytes long", path.display())
                })?;
                return Ok(Self(key));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).context(format!("cannot read {}", path.display())),
        }
        let mut key = [0_u8; KEY_BYTES];
        getrandom::fill(&mut key).map_err(|error| anyhow::anyhow!("no randomness: {error}"))?;
        replace_private(state, FILE, &key)
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self(key))
    }

    /// Returns a token for an agent and a workflow UID. With [`TokenUse::OneBoot`] each call
    /// returns a new token, with [`TokenUse::EveryBoot`] always the same.
    pub fn token(&self, kind: TokenUse, agent_id: &str, workflow_uid: &str) -> String {
        let nonce = match kind {
            TokenUse::OneBoot => stdx::random_hex(NONCE_BYTES),
            TokenUse::EveryBoot => MEDIUM.to_owned(),
        };
        let line = format!("{nonce}\n");
        let mac = self.mac(&line, agent_id, workflow_uid).finalize().into_bytes();
        format!("{nonce}.{}", stdx::hex(&mac))
    }

    /// Returns the use of a token; `None` if the box did not issue the token to this agent for this
    /// workflow. The HMAC is compared in constant time.
    pub fn verify(&self, token: &str, agent_id: &str, workflow_uid: &str) -> Option<TokenUse> {
        let (nonce, mac) = match token.split_once('.') {
            Some((nonce, mac)) => (format!("{nonce}\n"), mac),
            // Token of an agent that an earlier release of the box has booted.
            None => (String::new(), token),
        };
        let bytes = stdx::unhex(mac).unwrap_or_default();
        self.mac(&nonce, agent_id, workflow_uid).verify_slice(&bytes).ok()?;
        Some(if nonce.trim_end() == MEDIUM { TokenUse::EveryBoot } else { TokenUse::OneBoot })
    }

    /// Computes the HMAC of a token. `nonce` is empty for tokens of earlier releases.
    fn mac(&self, nonce: &str, agent_id: &str, workflow_uid: &str) -> Hmac<Sha256> {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of every length");
        // None of the parts can contain a line feed: tokens are header values, agent IDs are
        // limited to printable text, and UIDs are UUIDs.
        mac.update(format!("tinbox boot token\n{nonce}{agent_id}\n{workflow_uid}").as_bytes());
        mac
    }
}

#[cfg(test)]
mod tests {
    use agent_service::TokenUse;

    use super::BootTokens;

    #[test]
    fn each_boot_has_a_token_of_its_own_for_one_agent_and_one_workflow() {
        let tokens = BootTokens([7; 32]);
        let token = tokens.token(TokenUse::OneBoot, "a", "w");
        assert_ne!(token, tokens.token(TokenUse::OneBoot, "a", "w"));
        assert_eq!(tokens.verify(&token, "a", "w"), Some(TokenUse::OneBoot));
        let digest = token.split_once('.').unwrap().1;
        let of_a_medium = format!("medium.{digest}");
        for (token, agent, workflow) in [
            (token.as_str(), "b", "w"),
            (&token, "a", "x"),
            ("", "a", "w"),
            (".", "a", "w"),
            ("zz.zz", "a", "w"),
            (digest, "a", "w"),
            (&of_a_medium, "a", "w"),
        ] {
            assert_eq!(tokens.verify(token, agent, workflow), None, "{token}");
        }
        assert_eq!(BootTokens([8; 32]).verify(&token, "a", "w"), None);
    }

    #[test]
    fn a_medium_has_one_token_however_often_it_is_read() {
        let tokens = BootTokens([7; 32]);
        let token = tokens.token(TokenUse::EveryBoot, "a", "w");
        assert_eq!(token, tokens.token(TokenUse::EveryBoot, "a", "w"));
        assert_eq!(tokens.verify(&token, "a", "w"), Some(TokenUse::EveryBoot));
        assert_eq!(tokens.verify(&token, "a", "x"), None);
    }
}
