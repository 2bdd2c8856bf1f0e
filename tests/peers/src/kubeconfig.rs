//! The file a client finds its server by.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context, Result};

/// Who a client is, in a kubeconfig.
pub enum Identity<'a> {
    /// A bearer token.
    Token(&'a str),
    /// Files of a client certificate and its key.
    Certificate {
        /// The certificate, PEM.
        certificate: &'a Path,
        /// Its key, PEM.
        key: &'a Path,
    },
}

/// Writes a kubeconfig with one cluster, whose authority is the file `ca`.
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
