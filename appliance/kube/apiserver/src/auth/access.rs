//! The first administrator: made once, handed over as a kubeconfig.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use stdx::Secret;

use super::{Error, Pki, private_file, token};

/// Random bytes of a token.
const TOKEN_BYTES: usize = 32;

/// Where the administrator's way in lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminAccess {
    /// The kubeconfig, mode 0600.
    pub kubeconfig: PathBuf,
    /// Whether this call made it.
    pub created: bool,
}

impl AdminAccess {
    /// Makes the administrator's token and `STATE/admin.kubeconfig` at the first start; afterwards
    /// only says where that lies, even when somebody took it away: the token's hash stays known,
    /// and a new kubeconfig is never made behind the owner's back.
    ///
    /// # Errors
    /// When a file of the state directory cannot be written.
    pub fn ensure(state_dir: &Path, pki: &Pki, server_url: &str) -> Result<Self, Error> {
        let kubeconfig = path(state_dir);
        let tokens = token::file(state_dir);
        if private_file::read(&tokens)?.is_some() {
            return Ok(Self { kubeconfig, created: false });
        }
        private_file::folder(state_dir)?;
        let secret = new_token();
        private_file::write(&kubeconfig, &render(server_url, pki.ca_pem(), &secret))?;
        // Last, because its presence says that all of this was done.
        private_file::write(&tokens, &token::line(secret.expose(), "admin"))?;
        Ok(Self { kubeconfig, created: true })
    }
}

/// The administrator's kubeconfig in a state directory.
pub(super) fn path(state_dir: &Path) -> PathBuf {
    state_dir.join("admin.kubeconfig")
}

/// A new random token.
pub(super) fn new_token() -> Secret {
    Secret::from(stdx::random_hex(TOKEN_BYTES))
}

/// A kubeconfig with a token.
pub(super) fn render(server_url: &str, ca_pem: &str, token: &Secret) -> String {
    let authority = STANDARD.encode(ca_pem);
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         current-context: tinbox\n\
         clusters:\n\
         - name: tinbox\n\
         \x20 cluster:\n\
         \x20   server: {server_url}\n\
         \x20   certificate-authority-data: {authority}\n\
         users:\n\
         - name: admin\n\
         \x20 user:\n\
         \x20   token: {token}\n\
         contexts:\n\
         - name: tinbox\n\
         \x20 context:\n\
         \x20   cluster: tinbox\n\
         \x20   user: admin\n\
         \x20   namespace: default\n",
        token = token.expose(),
    )
}
