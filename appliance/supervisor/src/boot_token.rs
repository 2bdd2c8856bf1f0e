//! The token an agent shows: it stands in the kernel command line the box wrote for one machine and
//! one workflow, and cannot be made without the box's key.

use std::path::Path;

use anyhow::Context as _;
use hmac::{Hmac, KeyInit as _, Mac as _};
use platform::kept::replace_private;
use sha2::Sha256;

const FILE: &str = "boot-token.key";
/// Bytes of the key.
const KEY_BYTES: usize = 32;

/// Makes and checks boot tokens.
#[derive(Clone)]
pub struct BootTokens([u8; KEY_BYTES]);

impl BootTokens {
    /// The key in `STATE/boot-token.key`, made at the first start.
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

    /// The token of an agent for one workflow (by its uid).
    pub fn token(&self, agent_id: &str, workflow_uid: &str) -> String {
        stdx::hex(&self.mac(agent_id, workflow_uid).finalize().into_bytes())
    }

    /// Whether `token` is that token; takes the same time whatever it holds.
    pub fn verify(&self, token: &str, agent_id: &str, workflow_uid: &str) -> bool {
        let bytes = stdx::unhex(token).unwrap_or_default();
        self.mac(agent_id, workflow_uid).verify_slice(&bytes).is_ok()
    }

    fn mac(&self, agent_id: &str, workflow_uid: &str) -> Hmac<Sha256> {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of every length");
        // Neither part can hold a newline: ids are bounded printable text, uids are UUIDs.
        mac.update(format!("tinbox boot token\n{agent_id}\n{workflow_uid}").as_bytes());
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::BootTokens;

    #[test]
    fn a_token_fits_one_agent_and_one_workflow() {
        let tokens = BootTokens([7; 32]);
        let token = tokens.token("a", "w");
        assert!(tokens.verify(&token, "a", "w"));
        for (token, agent, workflow) in
            [(token.as_str(), "b", "w"), (&token, "a", "x"), ("", "a", "w"), ("zz", "a", "w")]
        {
            assert!(!tokens.verify(token, agent, workflow));
        }
        assert!(!BootTokens([8; 32]).verify(&token, "a", "w"));
    }
}
