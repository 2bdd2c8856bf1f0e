//! Reads address, CA and token of the box from a kubeconfig.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde::Deserialize;
use stdx::Secret;

use crate::error::ClientError;

/// Maximum size in bytes of a kubeconfig, and of a file that it names.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Address and credentials for one box.
#[derive(Debug)]
pub struct Kubeconfig {
    /// URL of the box: `https://host:port`, without a slash at the end.
    pub server: String,
    /// CA certificates that may sign the box's certificate.
    pub authorities: Vec<CertificateDer<'static>>,
    /// Bearer token of the user, sent with every request.
    pub token: Secret,
    /// Namespace of the current context; `None` if the context has none.
    pub namespace: Option<String>,
}

impl Kubeconfig {
    /// Returns the path of the kubeconfig: `given`, else `~/.tinbox/admin.kubeconfig`, else
    /// `/var/lib/tinbox/admin.kubeconfig`.
    ///
    /// # Errors
    /// None of the files exists.
    pub fn find(given: Option<PathBuf>, home: Option<PathBuf>) -> Result<PathBuf, ClientError> {
        if let Some(path) = given {
            return Ok(path);
        }
        let own = home.map(|home| home.join(".tinbox/admin.kubeconfig"));
        let places = own.into_iter().chain(["/var/lib/tinbox/admin.kubeconfig".into()]);
        let places: Vec<PathBuf> = places.collect();
        if let Some(path) = places.iter().find(|path| path.exists()) {
            return Ok(path.clone());
        }
        let looked: Vec<String> = places.iter().map(|path| path.display().to_string()).collect();
        Err(ClientError::NoKubeconfig(looked.join(", ")))
    }

    /// Reads the kubeconfig, and the files that it names.
    ///
    /// # Errors
    /// A file cannot be read, or a field is missing or not valid.
    pub fn read(path: &Path) -> Result<Kubeconfig, ClientError> {
        let text = read_text(path)
            .map_err(|source| ClientError::Read { file: path.display().to_string(), source })?;
        let folder = path.parent().unwrap_or(Path::new("."));
        parse(&text, folder).map_err(|why| ClientError::Kubeconfig { path: path.to_owned(), why })
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", default)]
struct Document {
    current_context: String,
    clusters: Vec<NamedEntry>,
    users: Vec<NamedEntry>,
    contexts: Vec<NamedEntry>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct NamedEntry {
    name: String,
    cluster: Option<Cluster>,
    user: Option<User>,
    context: Option<Context>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", default)]
struct Cluster {
    server: String,
    certificate_authority: Option<PathBuf>,
    certificate_authority_data: Option<String>,
    insecure_skip_tls_verify: bool,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct User {
    token: Option<Secret>,
    #[serde(rename = "tokenFile")]
    token_file: Option<PathBuf>,
    #[serde(flatten)]
    rest: BTreeMap<String, serde_json::Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Context {
    cluster: String,
    user: String,
    namespace: Option<String>,
}

fn parse(text: &str, folder: &Path) -> Result<Kubeconfig, String> {
    // A snippet of this file in a message could show the token.
    let options = serde_saphyr::options! { with_snippet: false };
    let document: Document =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())?;
    let name = &document.current_context;
    let context = pick(&document.contexts, name, |it| it.context.as_ref())
        .ok_or_else(|| format!("current-context {name:?} is not among its contexts"))?;
    let cluster = pick(&document.clusters, &context.cluster, |it| it.cluster.as_ref())
        .ok_or_else(|| format!("cluster {:?} is not among its clusters", context.cluster))?;
    let user = pick(&document.users, &context.user, |it| it.user.as_ref())
        .ok_or_else(|| format!("user {:?} is not among its users", context.user))?;
    if !cluster.server.starts_with("https://") {
        return Err(format!("server {:?} is not an https:// URL", cluster.server));
    }
    if cluster.insecure_skip_tls_verify {
        return Err("insecure-skip-tls-verify is not supported, a CA is needed".to_owned());
    }
    Ok(Kubeconfig {
        server: cluster.server.trim_end_matches('/').to_owned(),
        authorities: authorities(cluster, folder)?,
        token: token(user, folder)?,
        namespace: context.namespace.clone().filter(|namespace| !namespace.is_empty()),
    })
}

fn pick<'a, T>(
    all: &'a [NamedEntry],
    name: &str,
    part: impl Fn(&'a NamedEntry) -> Option<&'a T>,
) -> Option<&'a T> {
    all.iter().find(|it| it.name == name).and_then(part)
}

fn authorities(cluster: &Cluster, folder: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let pem = match (&cluster.certificate_authority_data, &cluster.certificate_authority) {
        (Some(data), _) => STANDARD
            .decode(data.trim())
            .map_err(|_| "certificate-authority-data is not base64".to_owned())?,
        (None, Some(file)) => named(folder, file)?.into_bytes(),
        (None, None) => return Err("its cluster has no certificate-authority-data".to_owned()),
    };
    let found: Vec<_> = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("its certificate authority is not PEM: {error}"))?;
    if found.is_empty() {
        return Err("its certificate authority has no certificate".to_owned());
    }
    Ok(found)
}

fn token(user: &User, folder: &Path) -> Result<Secret, String> {
    if let Some(token) = &user.token {
        return Ok(token.clone());
    }
    if let Some(file) = &user.token_file {
        return Ok(Secret::from(named(folder, file)?.trim()));
    }
    let has: Vec<&str> = user.rest.keys().map(String::as_str).collect();
    Err(match has.as_slice() {
        [] => "its user has no token".to_owned(),
        has => format!("its user has no token (it has {}, which is not used)", has.join(", ")),
    })
}

/// Reads a file that the kubeconfig names; a relative path begins at the folder of the kubeconfig.
fn named(folder: &Path, file: &Path) -> Result<String, String> {
    let path = folder.join(file);
    read_text(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// Reads a small text file, such as a kubeconfig or a passphrase; at most its first
/// [`FILE_BYTES_MAX`] bytes.
///
/// # Errors
/// The file cannot be read, or is not UTF-8.
pub fn read_text(path: &Path) -> std::io::Result<String> {
    use std::io::Read as _;
    let mut text = String::new();
    std::fs::File::open(path)?.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests;
