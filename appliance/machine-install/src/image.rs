//! Choice of the operating system image of a machine: an OSImage by name, or an image lookup as in
//! CAPT.

use api::os_image::{ImageChecksum, ImageFormat, OsImage};
use oci_reference::Reference;
use serde_json::json;

use super::InstallError;

/// First characters of the URL of an image that a person uploaded to the box. Only the box has the
/// file, and serves it to machines by HTTP.
pub const UPLOADED: &str = "upload://box/";
/// Maximum number of OSImages that an error names.
const NAMED_IMAGES_MAX: usize = 10;
/// Maximum length in bytes of an image's URL or reference.
const LOCATION_BYTES_MAX: usize = 2048;
/// URL scheme of a registry reference; optional.
const OCI_SCHEME: &str = "oci://";

/// Lookup format of CAPT's webhook.
const DEFAULT_FORMAT: &str =
    "{{.BaseRegistry}}/{{.OSDistro}}-{{.OSVersion}}:{{.KubernetesVersion}}.gz";
/// Registry of CAPT's published images, the default in CAPT's TinkerbellCluster.
const DEFAULT_REGISTRY: &str = "ghcr.io/tinkerbell/cluster-api-provider-tinkerbell";
const DEFAULT_DISTRO: &str = "ubuntu";
/// Version for [`DEFAULT_DISTRO`]; other distributions have no default.
const DEFAULT_VERSION: &str = "20.04";

/// Fields `imageLookup…` of a TinkerbellMachine or TinkerbellCluster. An empty text counts as
/// unset, except the registry of a TinkerbellCluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageLookup {
    /// Go template of the image's URL or reference.
    pub format: Option<String>,
    /// Registry and path. `Some("")` in a TinkerbellCluster means no registry: CAPT's cluster
    /// template writes an empty text, which replaces the default.
    pub base_registry: Option<String>,
    /// Distribution of the operating system.
    pub os_distro: Option<String>,
    /// Version of the distribution.
    pub os_version: Option<String>,
}

/// Requirements for the image of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageRequest {
    /// Value of `osImage`: name of an OSImage, or `distro-version`. `None` or empty: the image
    /// lookup decides.
    pub os_image: Option<String>,
    /// Kubernetes version of the Machine; empty if the Machine has none.
    pub kubernetes_version: String,
    /// CPU architecture of the Hardware, such as `x86_64`; `None` if unknown.
    pub architecture: Option<String>,
    /// Lookup fields of the TinkerbellMachine, which take precedence.
    pub machine: ImageLookup,
    /// Lookup fields of the TinkerbellCluster.
    pub cluster: ImageLookup,
}

/// Resolved operating system image, which the machine installs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Location of the image.
    pub location: ImageLocation,
    /// Expected checksum; `None` if unknown.
    pub checksum: Option<Checksum>,
    /// Distribution in lower case; empty if unknown.
    pub distro: String,
    /// Version of the distribution; empty if unknown.
    pub version: String,
}

/// Location of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageLocation {
    /// `http` or `https` URL of a file.
    Url(String),
    /// Reference in an OCI registry, without scheme.
    Registry(String),
}

/// Expected checksum of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checksum {
    /// SHA-256, as hexadecimal digits.
    Sha256(String),
    /// SHA-512, as hexadecimal digits.
    Sha512(String),
    /// MD5, as hexadecimal digits.
    Md5(String),
    /// URL of a file of checksums.
    SumsUrl(String),
}

/// Returns the image of a machine. `images` are the OSImages of the machine's namespace.
///
/// # Errors
/// No OSImage or several OSImages fit, the chosen OSImage is invalid, or the lookup fails.
pub fn resolve(request: &ImageRequest, images: &[OsImage]) -> Result<Image, InstallError> {
    match request.os_image.as_deref() {
        Some(name) if !name.is_empty() => of_catalog(chosen(name, request, images)?),
        _ => looked_up(request),
    }
}

/// Returns the OSImage with this name, else the best OSImage with this operating system. The best
/// OSImage states most of the Kubernetes version, then the architecture.
fn chosen<'a>(
    name: &str,
    request: &ImageRequest,
    images: &'a [OsImage],
) -> Result<&'a OsImage, InstallError> {
    let mismatch = |why: String| InstallError::ImageMismatch { name: name.to_owned(), why };
    if let Some(image) = images.iter().find(|image| image.metadata.name == name) {
        return fitness(image, request).map(|_| image).map_err(mismatch);
    }
    let is_of_os = |image: &&OsImage| image.spec.os.to_string().eq_ignore_ascii_case(name);
    let of_os: Vec<&OsImage> = images.iter().filter(is_of_os).collect();
    let rated: Vec<_> = of_os.iter().map(|image| (fitness(image, request), *image)).collect();
    let best = rated.iter().filter_map(|(rate, _)| rate.as_ref().ok()).max();
    let Some(best) = best else {
        return Err(match rated.into_iter().find_map(|(rate, _)| rate.err()) {
            Some(why) => mismatch(why),
            None => {
                InstallError::ImageNotFound { name: name.to_owned(), known: known(images.iter()) }
            }
        });
    };
    let best: Vec<&OsImage> =
        rated.iter().filter(|(rate, _)| rate.as_ref() == Ok(best)).map(|(_, it)| *it).collect();
    match best.as_slice() {
        [only] => Ok(only),
        _ => Err(InstallError::ImageAmbiguous {
            name: name.to_owned(),
            images: names(best.into_iter()),
        }),
    }
}

/// Returns the number of stated parts of the Kubernetes version, and true if the architecture is
/// stated.
///
/// # Errors
/// The image does not fit, with the reason as a clause.
fn fitness(image: &OsImage, request: &ImageRequest) -> Result<(usize, bool), String> {
    let own = &image.metadata.name;
    let version = image.spec.kubernetes_version.as_deref().map_or("", plain_version);
    let wanted = plain_version(&request.kubernetes_version);
    let parts: Vec<&str> = version.split('.').filter(|part| !part.is_empty()).collect();
    let fits = wanted.is_empty()
        || wanted == version
        || (parts.len() < 3 && wanted.split('.').zip(&parts).all(|(a, b)| a == *b));
    if !fits {
        let wanted = &request.kubernetes_version;
        return Err(format!(
            "OSImage {own} has Kubernetes v{version}, but the Machine has version {wanted}"
        ));
    }
    let architecture = image.spec.architecture.as_deref().filter(|it| !it.is_empty());
    if let (Some(has), Some(wanted)) = (architecture, request.architecture.as_deref())
        && !wanted.is_empty()
        && plain_architecture(has) != plain_architecture(wanted)
    {
        return Err(format!("OSImage {own} is for {has}, but the Hardware is {wanted}"));
    }
    Ok((parts.len(), architecture.is_some()))
}

fn plain_version(version: &str) -> &str {
    version.strip_prefix('v').unwrap_or(version)
}

/// Returns Linux' name of an architecture instead of Go's.
fn plain_architecture(name: &str) -> &str {
    match name {
        "amd64" => "x86_64",
        "arm64" => "aarch64",
        other => other,
    }
}

fn known<'a>(images: impl Iterator<Item = &'a OsImage>) -> String {
    match names(images) {
        names if names.is_empty() => "the namespace has no OSImage".to_owned(),
        names => format!("known: {names}"),
    }
}

/// Returns the names of at most [`NAMED_IMAGES_MAX`] OSImages, sorted.
fn names<'a>(images: impl Iterator<Item = &'a OsImage>) -> String {
    let mut names: Vec<&str> = images.map(|image| image.metadata.name.as_str()).collect();
    names.sort_unstable();
    let more = names.len().saturating_sub(NAMED_IMAGES_MAX);
    names.truncate(NAMED_IMAGES_MAX);
    let names = names.join(", ");
    if more == 0 { names } else { format!("{names} and {more} more") }
}

fn of_catalog(image: &OsImage) -> Result<Image, InstallError> {
    let invalid =
        |why: String| InstallError::ImageInvalid { name: image.metadata.name.clone(), why };
    let url = image.spec.url.as_str();
    let location = match image.spec.format {
        ImageFormat::Oci => registry(url).map_err(|why| invalid(format!("spec.url: {why}")))?,
        ImageFormat::Raw | ImageFormat::Qcow2 if is_url(url) || is_upload(url) => {
            ImageLocation::Url(url.to_owned())
        }
        ImageFormat::Raw | ImageFormat::Qcow2 => {
            let why = "spec.url: expected an http or https URL without user name";
            return Err(invalid(why.to_owned()));
        }
    };
    Ok(Image {
        location,
        checksum: image.spec.checksum.as_ref().map_or(Ok(None), checksum).map_err(invalid)?,
        distro: image.spec.os.distro.to_lowercase(),
        version: image.spec.os.version.clone(),
    })
}

fn checksum(sums: &ImageChecksum) -> Result<Option<Checksum>, String> {
    let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let found = [
        text(&sums.sha512).map(Checksum::Sha512),
        text(&sums.sha256).map(Checksum::Sha256),
        text(&sums.md5).map(Checksum::Md5),
        text(&sums.url).map(Checksum::SumsUrl),
    ];
    let mut found = found.into_iter().flatten();
    let first = found.next();
    if found.next().is_some() {
        return Err("spec.checksum: expected one field, found several".to_owned());
    }
    match &first {
        Some(Checksum::SumsUrl(url)) if !is_url(url) => {
            Err("spec.checksum.url: expected an http or https URL without user name".to_owned())
        }
        _ => Ok(first),
    }
}

/// Renders the lookup format: lower-case distribution, version without dots.
fn looked_up(request: &ImageRequest) -> Result<Image, InstallError> {
    let (machine, cluster) = (&request.machine, &request.cluster);
    let set = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let or = |machine: &Option<String>, cluster: &Option<String>| set(machine).or(set(cluster));
    let format = or(&machine.format, &cluster.format);
    let format = format.unwrap_or_else(|| DEFAULT_FORMAT.to_owned());
    let registry_base = set(&machine.base_registry).or(cluster.base_registry.clone());
    let registry_base = registry_base.unwrap_or_else(|| DEFAULT_REGISTRY.to_owned());
    let distro = or(&machine.os_distro, &cluster.os_distro);
    let distro = distro.unwrap_or_else(|| DEFAULT_DISTRO.to_owned()).to_lowercase();
    let default_version = if distro == DEFAULT_DISTRO { DEFAULT_VERSION } else { "" };
    let version = or(&machine.os_version, &cluster.os_version);
    let version = version.unwrap_or_else(|| default_version.to_owned()).replace('.', "");
    for (variable, field, value) in [
        ("BaseRegistry", "imageLookupBaseRegistry", registry_base.as_str()),
        ("OSDistro", "imageLookupOSDistro", distro.as_str()),
        ("OSVersion", "imageLookupOSVersion", version.as_str()),
        ("KubernetesVersion", "spec.version of the Machine", request.kubernetes_version.as_str()),
    ] {
        if value.is_empty() && format.contains(&format!(".{variable}")) {
            return Err(InstallError::LookupIncomplete { variable, field });
        }
    }
    let data = json!({
        "BaseRegistry": registry_base,
        "OSDistro": distro,
        "OSVersion": version,
        "KubernetesVersion": request.kubernetes_version,
    });
    let invalid = |why: String| InstallError::LookupInvalid { why };
    let text = ::template::render(&format, &data)
        .map_err(|error| invalid(format!("imageLookupFormat: {error}")))?;
    let location = match is_url(&text) {
        true => ImageLocation::Url(text),
        false => registry(&text).map_err(invalid)?,
    };
    Ok(Image { location, checksum: None, distro, version })
}

/// Parses a reference in a registry, with or without `oci://`.
fn registry(text: &str) -> Result<ImageLocation, String> {
    let reference = text.strip_prefix(OCI_SCHEME).unwrap_or(text);
    if reference.len() > LOCATION_BYTES_MAX {
        return Err(format!("longer than {LOCATION_BYTES_MAX} bytes"));
    }
    if reference.contains("://") {
        return Err("expected a reference in a registry such as ghcr.io/owner/image:tag, found \
                    another URL"
            .to_owned());
    }
    Reference::parse(reference).map(|_| ImageLocation::Registry(reference.to_owned()))
}

/// Returns true for the URL of an uploaded file.
fn is_upload(text: &str) -> bool {
    let name = text.strip_prefix(UPLOADED).unwrap_or_default();
    let allowed = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    !name.is_empty() && name.len() <= LOCATION_BYTES_MAX && name.chars().all(allowed)
}

/// Returns true for an `http` or `https` URL with a host, without user name and without blanks.
pub fn is_url(text: &str) -> bool {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let authority = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    !authority.is_empty()
        && !authority.contains('@')
        && text.len() <= LOCATION_BYTES_MAX
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

#[cfg(test)]
mod tests;
