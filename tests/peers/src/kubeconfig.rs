//! Kubeconfig files for clients of a server.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context, Result};

/// Credentials of a client in a kubeconfig.
pub enum Identity<'a> {
    /// Token for the `Authorization: Bearer` header.
    Token(&'a str),
    /// Files of a client certificate and its key.
    Certificate {
        /// Certificate file in PEM format.
        certificate: &'a Path,
        /// Private key file in PEM format.
        key: &'a Path,
    },
}

/// Writes a kubeconfig with one cluster, whose certificate authority is the file `ca`.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, server: &str, ca: &Path, identity: &Identity) -> Result<()> {
    let user = match identity {
        Identity::Token(token) => format!("token: {token}"),
        Identity::Certificate { certificate, key } => format!(
            "client-certificate: {}\n    client-key: {}",
            certificate.display(),
            key.display()
        ),
    };
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: peer\n\
         clusters:\n- name: peer\n  cluster:\n    server: {server}\n    \
         certificate-authority: {}\n\
         users:\n- name: peer\n  user:\n    {user}\n\
         contexts:\n- name: peer\n  context: {{ cluster: peer, user: peer }}\n",
        ca.display(),
    );
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    fs::set_permissions(path, Permissions::from_mode(0o600))
        .with_context(|| format!("cannot protect {}", path.display()))
}
