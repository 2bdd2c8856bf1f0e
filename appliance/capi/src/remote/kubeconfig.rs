//! Kubeconfig of a management cluster, with all its data embedded. The box never runs a program and
//! never reads a file because a kubeconfig says so.

mod text;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use serde::Deserialize;
use serde::de::IgnoredAny;
use stdx::{Hint, Secret};

/// Maximum size of a kubeconfig. Larger ones embed more than one cluster's certificates.
const TEXT_BYTES_MAX: usize = 256 * 1024;

const EMBED: &str = "embed the files: kubectl config view --raw --minify --flatten";
const CREDENTIAL: &str = "create a client certificate or a ServiceAccount token for the box, and \
                          put it into the kubeconfig";
const TOKEN: &str = "write the token itself into the field `token`";
const COMPLETE: &str = "print the kubeconfig of the current context again: kubectl config view \
                        --raw --minify --flatten";
const DIRECT: &str = "use the https:// URL by which the box reaches the API server directly";
const AUTHORITY: &str = "remove the field, and add the CA of the API server as \
                         certificate-authority-data";

/// Error of a kubeconfig. No text contains a value of a secret field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KubeconfigError {
    /// The text is longer than a kubeconfig of one cluster.
    #[error("the kubeconfig has {0} bytes, more than {TEXT_BYTES_MAX}")]
    TooLarge(usize),
    /// The text is not YAML, or not a kubeconfig. The decoder's message is left out, because it
    /// could quote a secret.
    #[error("expected a kubeconfig in YAML; the error is at line {line}, column {column}")]
    Syntax {
        /// Line from 1; 0 if unknown.
        line: u64,
        /// Column from 1; 0 if unknown.
        column: u64,
    },
    /// A field has a valid value that the box does not support.
    #[error("{field}: {why}")]
    Unsupported {
        /// Path of the field, such as `users[admin].exec`.
        field: String,
        /// Reason of the refusal.
        why: &'static str,
        /// Advice for the owner of the kubeconfig.
        hint: &'static str,
    },
    /// A field is missing or has an invalid value.
    #[error("{field}: {why}")]
    Invalid {
        /// Path of the field.
        field: String,
        /// Difference between the value and a valid one.
        why: String,
        /// Advice for the owner of the kubeconfig.
        hint: &'static str,
    },
}

impl Hint for KubeconfigError {
    fn hint(&self) -> Option<&str> {
        Some(match self {
            Self::TooLarge(_) | Self::Syntax { .. } => COMPLETE,
            Self::Unsupported { hint, .. } | Self::Invalid { hint, .. } => hint,
        })
    }
}

/// Server and credential of the current context of a kubeconfig.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kubeconfig {
    /// URL of the API server, always `https`.
    pub(super) server: Uri,
    /// CA certificates in DER.
    pub(super) authorities: Vec<Vec<u8>>,
    /// Name in the server's certificate, if other than the host of the URL.
    pub(super) server_name: Option<ServerName<'static>>,
    pub(super) token: Option<Secret>,
    pub(super) certificate: Option<ClientCertificate>,
    /// Path of the user in the kubeconfig, for errors.
    pub(super) user: String,
}

/// Client certificate and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClientCertificate {
    /// Certificates in DER, that of the client first.
    pub chain: Vec<Vec<u8>>,
    /// Private key in PEM.
    pub key: Secret,
}

impl Kubeconfig {
    /// Reads the current context of a kubeconfig in YAML or JSON.
    ///
    /// # Errors
    /// The text is not a kubeconfig, is incomplete, or needs a file or a program.
    pub fn parse(text: &str) -> Result<Self, KubeconfigError> {
        Self::parse_context(text, None)
    }

    /// Reads one context of a kubeconfig; `None` for the current context.
    ///
    /// # Errors
    /// As [`Kubeconfig::parse`].
    pub fn parse_context(text: &str, context: Option<&str>) -> Result<Self, KubeconfigError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(KubeconfigError::TooLarge(text.len()));
        }
        let options = serde_saphyr::options! { with_snippet: false };
        let document: Document =
            serde_saphyr::from_str_with_options(text, options).map_err(|error| {
                let at = error.location().map(|at| (at.line(), at.column()));
                let (line, column) = at.unwrap_or_default();
                KubeconfigError::Syntax { line, column }
            })?;
        let context = context.unwrap_or(&document.current_context);
        if context.is_empty() {
            return Err(invalid("current-context", "expected the name of a context", COMPLETE));
        }
        let context = pick(&document.contexts, "contexts", context, |it| it.context.as_ref())?;
        let name = &context.cluster;
        let cluster = pick(&document.clusters, "clusters", name, |it| it.cluster.as_ref())?;
        let cluster_path = format!("clusters[{name}]");
        let user = pick(&document.users, "users", &context.user, |it| it.user.as_ref())?;
        let user_path = format!("users[{}]", context.user);
        refuse(&cluster_path, &cluster.refusals())?;
        refuse(&user_path, &user.refusals())?;
        let certificate = certificate(&user_path, user)?;
        let token = token(&user_path, user)?;
        if certificate.is_none() && token.is_none() {
            let why = "expected client-certificate-data and client-key-data, or token";
            return Err(invalid(user_path, why, CREDENTIAL));
        }
        Ok(Self {
            server: server(&cluster_path, &cluster.server)?,
            authorities: authorities(&cluster_path, cluster)?,
            server_name: server_name(&cluster_path, cluster)?,
            token,
            certificate,
            user: user_path,
        })
    }

    /// Returns the URL of the API server.
    pub fn server(&self) -> String {
        self.server.to_string().trim_end_matches('/').to_owned()
    }

    /// Returns the token of the user; `None` for a user with a client certificate.
    pub fn token(&self) -> Option<&Secret> {
        self.token.as_ref()
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", default)]
struct Document {
    current_context: String,
    // kubectl writes an empty list as null.
    clusters: Option<Vec<Entry>>,
    users: Option<Vec<Entry>>,
    contexts: Option<Vec<Entry>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Entry {
    name: String,
    cluster: Option<Cluster>,
    user: Option<User>,
    context: Option<Context>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Context {
    cluster: String,
    user: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", default)]
struct Cluster {
    server: String,
    certificate_authority: Option<IgnoredAny>,
    certificate_authority_data: Option<String>,
    insecure_skip_tls_verify: bool,
    tls_server_name: Option<String>,
    proxy_url: Option<IgnoredAny>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", default)]
struct User {
    token: Option<Secret>,
    client_certificate_data: Option<String>,
    client_key_data: Option<Secret>,
    #[serde(rename = "tokenFile")]
    token_file: Option<IgnoredAny>,
    client_certificate: Option<IgnoredAny>,
    client_key: Option<IgnoredAny>,
    exec: Option<IgnoredAny>,
    auth_provider: Option<IgnoredAny>,
    username: Option<IgnoredAny>,
    password: Option<IgnoredAny>,
    r#as: Option<IgnoredAny>,
    as_uid: Option<IgnoredAny>,
    as_groups: Option<IgnoredAny>,
    as_user_extra: Option<IgnoredAny>,
}

/// Field name, true if the kubeconfig has the field, reason of the refusal, advice.
type Refusal = (&'static str, bool, &'static str, &'static str);

impl Cluster {
    fn refusals(&self) -> [Refusal; 3] {
        let unchecked = "the box would send its credential to an unknown server";
        let file = "the box cannot read a file of the computer where the kubeconfig was made";
        let proxy = "proxies are not supported";
        [
            ("insecure-skip-tls-verify", self.insecure_skip_tls_verify, unchecked, AUTHORITY),
            ("certificate-authority", self.certificate_authority.is_some(), file, EMBED),
            ("proxy-url", self.proxy_url.is_some(), proxy, DIRECT),
        ]
    }
}

impl User {
    fn refusals(&self) -> [Refusal; 11] {
        let program = "the box never runs a program of a kubeconfig";
        let file = "the box cannot read a file of the computer where the kubeconfig was made";
        let plugin = "authentication providers are not supported";
        let password = "API servers do not accept passwords since Kubernetes 1.19";
        let other = "the box does not act as another user";
        [
            ("exec", self.exec.is_some(), program, CREDENTIAL),
            ("auth-provider", self.auth_provider.is_some(), plugin, CREDENTIAL),
            ("tokenFile", self.token_file.is_some(), file, TOKEN),
            ("client-certificate", self.client_certificate.is_some(), file, EMBED),
            ("client-key", self.client_key.is_some(), file, EMBED),
            ("username", self.username.is_some(), password, CREDENTIAL),
            ("password", self.password.is_some(), password, CREDENTIAL),
            ("as", self.r#as.is_some(), other, CREDENTIAL),
            ("as-uid", self.as_uid.is_some(), other, CREDENTIAL),
            ("as-groups", self.as_groups.is_some(), other, CREDENTIAL),
            ("as-user-extra", self.as_user_extra.is_some(), other, CREDENTIAL),
        ]
    }
}

fn refuse(path: &str, refusals: &[Refusal]) -> Result<(), KubeconfigError> {
    match refusals.iter().find(|(_, is_there, ..)| *is_there) {
        Some((name, _, why, hint)) => {
            Err(KubeconfigError::Unsupported { field: format!("{path}.{name}"), why, hint })
        }
        None => Ok(()),
    }
}

fn invalid(
    field: impl Into<String>,
    why: impl Into<String>,
    hint: &'static str,
) -> KubeconfigError {
    KubeconfigError::Invalid { field: field.into(), why: why.into(), hint }
}

fn pick<'a, T>(
    entries: &'a Option<Vec<Entry>>,
    list: &str,
    name: &str,
    part: impl Fn(&'a Entry) -> Option<&'a T>,
) -> Result<&'a T, KubeconfigError> {
    let found = entries.iter().flatten().find(|it| it.name == name).and_then(part);
    found.ok_or_else(|| invalid(list, format!("expected an entry named {name:?}"), COMPLETE))
}

fn server(cluster: &str, text: &str) -> Result<Uri, KubeconfigError> {
    let field = || format!("{cluster}.server");
    let Ok(uri) = text.parse::<Uri>() else {
        return Err(invalid(field(), "expected a URL", DIRECT));
    };
    let has_password = uri.authority().is_some_and(|it| it.as_str().contains('@'));
    match uri.scheme_str() {
        Some("https") if !has_password && uri.query().is_none() => Ok(uri),
        Some("https") => Err(invalid(field(), "expected a URL without password and query", DIRECT)),
        Some("http") => Err(KubeconfigError::Unsupported {
            field: field(),
            why: "http would send the credential without encryption",
            hint: DIRECT,
        }),
        _ => Err(invalid(field(), format!("expected an https:// URL, found {text:?}"), DIRECT)),
    }
}

fn authorities(path: &str, cluster: &Cluster) -> Result<Vec<Vec<u8>>, KubeconfigError> {
    let field = || format!("{path}.certificate-authority-data");
    let Some(data) = &cluster.certificate_authority_data else {
        return Err(invalid(field(), "expected the CA certificate of the API server", COMPLETE));
    };
    certificates(data).map_err(|why| invalid(field(), why, COMPLETE))
}

/// Decodes PEM certificates in base64.
fn certificates(data: &str) -> Result<Vec<Vec<u8>>, &'static str> {
    let pem = STANDARD.decode(data.trim()).map_err(|_| "expected base64")?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found.iter().map(|der| der.to_vec()).collect()),
        _ => Err("expected PEM certificates in base64"),
    }
}

fn server_name(
    path: &str,
    cluster: &Cluster,
) -> Result<Option<ServerName<'static>>, KubeconfigError> {
    let Some(name) = cluster.tls_server_name.as_deref().filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let name = ServerName::try_from(name.to_owned());
    name.map(Some).map_err(|_| {
        invalid(format!("{path}.tls-server-name"), "expected a host name or IP address", COMPLETE)
    })
}

fn certificate(path: &str, user: &User) -> Result<Option<ClientCertificate>, KubeconfigError> {
    let (certificate, key_field) = ("client-certificate-data", "client-key-data");
    match (&user.client_certificate_data, &user.client_key_data) {
        (None, None) => Ok(None),
        (Some(_), None) => Err(invalid(
            format!("{path}.{key_field}"),
            "expected the key of the certificate",
            COMPLETE,
        )),
        (None, Some(_)) => {
            let field = format!("{path}.{certificate}");
            Err(invalid(field, "expected the certificate of the key", COMPLETE))
        }
        (Some(chain), Some(key)) => {
            let chain = certificates(chain)
                .map_err(|why| invalid(format!("{path}.{certificate}"), why, COMPLETE))?;
            let pem = STANDARD.decode(key.expose().trim()).ok();
            let pem = pem.and_then(|pem| String::from_utf8(pem).ok()).map(Secret::from);
            let wrong = || invalid(format!("{path}.{key_field}"), "expected base64", COMPLETE);
            Ok(Some(ClientCertificate { chain, key: pem.ok_or_else(wrong)? }))
        }
    }
}

fn token(path: &str, user: &User) -> Result<Option<Secret>, KubeconfigError> {
    let Some(token) = &user.token else { return Ok(None) };
    let text = token.expose().trim();
    // A header value: RFC 6750 section 2.1 allows fewer characters still.
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        let why = "expected ASCII characters without spaces";
        return Err(invalid(format!("{path}.token"), why, CREDENTIAL));
    }
    Ok(Some(Secret::from(text)))
}

#[cfg(test)]
mod tests;
