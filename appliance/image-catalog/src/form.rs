//! Form of a new image, and its check. All mistakes are reported at once.

use api::os_image::{ImageChecksum, ImageFormat, ImageOs, OsImageSpec};
use machine_install::image::{UPLOADED, is_url};
use serde_json::Value;

use crate::error::{CatalogError, FieldError};
use crate::known::KnownImage;

/// Maximum length of a name in characters: that of a label in the DNS (RFC 1035).
const NAME_CHARS_MAX: usize = 63;
/// Maximum length of a distribution and of a version, as in the definition of the kind.
const WORD_CHARS_MAX: usize = 63;

/// Form of a new image, as a person filled it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageForm {
    /// Name for the OSImage: a label in the DNS, or several with dots.
    pub name: String,
    /// Distribution, such as `debian`; decides how the system is configured.
    pub distro: String,
    /// Version of the distribution, such as `13`.
    pub version: String,
    /// URL of the image; empty for an upload.
    pub url: String,
    /// SHA-256 or SHA-512 of the file, or the URL of a file of checksums; may be empty.
    pub checksum: String,
}

/// Form whose fields are all valid, from [`ImageForm::check`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedImage {
    /// Name of the OSImage.
    pub name: String,
    /// URL of the image; `None` for an upload.
    pub url: Option<String>,
    /// Expected checksum; `None` if it is not known.
    pub checksum: Option<ImageChecksum>,
    os: ImageOs,
}

impl ImageForm {
    /// Checks the form. `is_upload` is true if the file itself comes with the form.
    ///
    /// # Errors
    /// Fields are not valid; the error has all of them.
    pub fn check(&self, is_upload: bool) -> Result<CheckedImage, CatalogError> {
        let mut mistakes = Vec::new();
        let mut add = |field, why: String| mistakes.push(FieldError { field, why });
        let name = self.name.trim();
        if !is_name(name) {
            let why = format!(
                "{name:?} is not a valid name: expected lower-case letters, digits, hyphens and \
                 dots, such as debian-13."
            );
            add("name", why);
        }
        let (distro, version) = (self.distro.trim().to_lowercase(), self.version.trim());
        for (field, word) in [("distro", distro.as_str()), ("version", version)] {
            if word.is_empty() || word.len() > WORD_CHARS_MAX || word.contains(char::is_control) {
                let what = if field == "distro" { "distribution" } else { "version" };
                add(field, format!("Type a {what} of 1 to {WORD_CHARS_MAX} characters."));
            }
        }
        let url = self.url.trim();
        if !is_upload && !is_url(url) {
            let why = format!("{url:?} is not a URL: expected http:// or https:// and a host.");
            add("url", why);
        }
        let checksum = self.checksum.trim();
        let checksum = match (checksum, parsed(checksum)) {
            ("", _) => None,
            (_, Some(ImageChecksum { url: Some(_), .. })) if is_upload => {
                add("checksum", "Type the SHA-256 or SHA-512 of the file, or nothing.".to_owned());
                None
            }
            (_, Some(checksum)) => Some(checksum),
            (_, None) => {
                let why = "This is not a valid checksum: expected the 64 digits of a SHA-256, the \
                           128 digits of a SHA-512, or the URL of a file of checksums.";
                add("checksum", why.to_owned());
                None
            }
        };
        if !mistakes.is_empty() {
            return Err(CatalogError::Fields(mistakes));
        }
        let os = ImageOs { distro, version: version.to_owned() };
        let url = (!is_upload).then(|| url.to_owned());
        Ok(CheckedImage { name: name.to_owned(), url, checksum, os })
    }
}

impl CheckedImage {
    pub(crate) fn of_known(known: &KnownImage) -> Self {
        let url = |url: &str| Some(url.to_owned()).filter(|url| !url.is_empty());
        let sums = url(known.sums_url);
        Self {
            name: known.name.to_owned(),
            url: url(known.url),
            checksum: sums.map(|url| ImageChecksum { url: Some(url), ..ImageChecksum::default() }),
            os: ImageOs { distro: known.distro.to_owned(), version: known.version.to_owned() },
        }
    }

    /// Returns the form with the SHA-256 of the file that was uploaded.
    #[must_use]
    pub fn with_sha256(mut self, sha256: &str) -> Self {
        let sha256 = Some(sha256.to_owned());
        self.checksum = Some(ImageChecksum { sha256, ..ImageChecksum::default() });
        self
    }

    /// Returns the format of the image at the URL of the form, by its extension. The agent detects
    /// the real format.
    pub fn format(&self) -> ImageFormat {
        let url = self.url.as_deref().unwrap_or_default();
        if url.ends_with(".qcow2") { ImageFormat::Qcow2 } else { ImageFormat::Raw }
    }

    pub(crate) fn spec(&self, url: &str, format: ImageFormat) -> Value {
        let (url, checksum, os) = (url.to_owned(), self.checksum.clone(), self.os.clone());
        let spec = OsImageSpec { url, checksum, format, os, ..OsImageSpec::default() };
        serde_json::to_value(spec).unwrap_or_default()
    }

    /// Returns true if the form may replace a stored OSImage: an upload replaces an upload.
    pub(crate) fn may_replace(&self, old: &Value) -> bool {
        let was_uploaded = old["spec"]["url"].as_str().is_some_and(|it| it.starts_with(UPLOADED));
        self.url.is_none() && was_uploaded
    }
}

fn is_name(name: &str) -> bool {
    let allowed = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || "-.".contains(it);
    let ends = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit();
    name.len() <= NAME_CHARS_MAX
        && name.chars().all(allowed)
        && name.starts_with(ends)
        && name.ends_with(ends)
        && !name.contains("..")
}

fn parsed(text: &str) -> Option<ImageChecksum> {
    let digits = text.rsplit(':').next().unwrap_or_default().to_ascii_lowercase();
    let is_hex = digits.chars().all(|it| it.is_ascii_hexdigit());
    let none = ImageChecksum::default();
    match digits.len() {
        64 if is_hex => Some(ImageChecksum { sha256: Some(digits), ..none }),
        128 if is_hex => Some(ImageChecksum { sha512: Some(digits), ..none }),
        _ if is_url(text) => Some(ImageChecksum { url: Some(text.to_owned()), ..none }),
        _ => None,
    }
}
