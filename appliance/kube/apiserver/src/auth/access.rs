//! Credential of the first administrator: a token and a kubeconfig, created once for the owner.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use stdx::Secret;

use super::{Error, Pki, private_file, token};

/// Random bytes of a token.
const TOKEN_BYTES: usize = 32;

/// Location of the administrator's kubeconfig.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminAccess {
    /// Path of the kubeconfig, which has mode 0600.
    pub kubeconfig: PathBuf,
    /// True if this call created the kubeconfig.
    pub created: bool,
}

impl AdminAccess {
    /// Creates the administrator's token and `STATE/admin.kubeconfig` if there is no token file.
    /// Later calls only return the path, even if the kubeconfig was removed: no administrator's
    /// credential is created without the owner's knowledge.
    ///
    /// # Errors
    /// Returns an error if a file of the state directory cannot be written.
    pub fn ensure(state_dir: &Path, pki: &Pki, server_url: &str) -> Result<Self, Error> {
        let kubeconfig = path(state_dir);
        let tokens = token::file(state_dir);
        if private_file::read(&tokens)?.is_some() {
            return Ok(Self { kubeconfig, created: false });
        }
        private_file::folder(state_dir)?;
        let secret = new_token();
        private_file::write(&kubeconfig, &render(server_url, pki.ca_pem(), "admin", &secret))?;
        // Written last, because the presence of this file means that all steps are done.
        private_file::write(&tokens, &token::line(secret.expose(), "admin"))?;
        Ok(Self { kubeconfig, created: true })
    }
}

/// Returns the path of the administrator's kubeconfig in a state directory.
pub(super) fn path(state_dir: &Path) -> PathBuf {
    state_dir.join("admin.kubeconfig")
}

/// Returns a new random token of 64 hexadecimal digits.
pub(super) fn new_token() -> Secret {
    Secret::from(stdx::random_hex(TOKEN_BYTES))
}

/// Returns the text of a kubeconfig with the server, its CA certificate, and a user with `token`.
pub(super) fn render(server_url: &str, ca_pem: &str, user: &str, token: &Secret) -> String {
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
         - name: {user}\n\
         \x20 user:\n\
         \x20   token: {token}\n\
         contexts:\n\
         - name: tinbox\n\
         \x20 context:\n\
         \x20   cluster: tinbox\n\
         \x20   user: {user}\n\
         \x20   namespace: default\n",
        token = token.expose(),
    )
}
