//! Text of a kubeconfig for a token.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use stdx::Secret;

use super::Kubeconfig;

/// Length of a line of a PEM file, in characters (RFC 7468 section 2).
const PEM_LINE: usize = 64;
/// Name of the only cluster, user and context.
const NAME: &str = "tinbox";

impl Kubeconfig {
    /// Returns a kubeconfig for the same API server with a token as the only credential. `server`
    /// replaces the URL; the name in the certificate stays that of the old URL.
    pub fn of_token(&self, server: Option<&str>, token: &Secret) -> Secret {
        let authorities: String = self.authorities.iter().map(|der| pem(der)).collect();
        let mut cluster = json!({
            "server": server.map_or_else(|| self.server(), str::to_owned),
            "certificate-authority-data": STANDARD.encode(authorities),
        });
        let old_host = server.and_then(|_| self.server.host()).map(str::to_owned);
        let name = self.server_name.as_ref().map(|name| name.to_str().into_owned());
        if let Some(name) = name.or(old_host) {
            cluster["tls-server-name"] = name.into();
        }
        let document = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": NAME,
            "clusters": [{ "name": NAME, "cluster": cluster }],
            "users": [{ "name": NAME, "user": { "token": token.expose() } }],
            "contexts": [{ "name": NAME, "context": { "cluster": NAME, "user": NAME } }],
        });
        Secret::from(document.to_string())
    }
}

fn pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<_> = text.as_bytes().chunks(PEM_LINE).map(String::from_utf8_lossy).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}
