//! UEFI HTTPS boot (one-click recovery, AMT 15 and newer): conditions, and the parameters for the
//! firmware as records of type, length and value.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::Error;
use crate::message::{Element, Malformed};

use super::BootTarget;

/// Vendor of the parameters: Intel.
const VENDOR: u16 = 0x8086;
/// Type of the parameter with the URL, as text.
const URL: u16 = 1;
/// Type of the parameter that makes the firmware trust the root certificates stored in AMT.
const SYNC_ROOT_CA: u16 = 20;
/// Number of the parameters of one boot.
const PARAMETERS: u8 = 2;
/// Maximum bytes of the URL.
const URL_BYTES_MAX: usize = 300;

/// Name of the function in errors.
const WHAT: &str = "UEFI HTTPS boot";
/// Reason of a connection without TLS.
pub const NEEDS_TLS: &str = "AMT accepts it over TLS only (hostScheme https)";
/// Reason of a switched-off option of the firmware setup.
const SWITCHED_OFF: &str =
    "it is switched off in the firmware setup of this machine (UEFIHTTPSBootEnabled)";

/// URL that the firmware boots from, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpsUrl(String);

impl HttpsUrl {
    /// Checks a URL.
    ///
    /// # Errors
    /// The scheme is not `https`, the URL has no host, is longer than 300 bytes, or has a
    /// character that a URL must not have (RFC 3986).
    pub fn new(url: &str) -> Result<Self, Error> {
        let refused = |reason| Err(Error::Unsupported { what: WHAT, reason });
        let Some((scheme, rest)) = url.split_once("://") else {
            return refused("the URL has no scheme; it must begin with https://");
        };
        if !scheme.eq_ignore_ascii_case("https") {
            return refused("the firmware boots from a URL with https:// only");
        }
        if rest.is_empty() || rest.starts_with(['/', '?', '#', ':', '@']) {
            return refused("the URL has no host");
        }
        if url.len() > URL_BYTES_MAX {
            return refused("the URL is longer than the 300 bytes that the firmware takes");
        }
        let is_valid = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte);
        if !url.bytes().all(is_valid) {
            return refused("the URL has a space, or a character that must be percent-encoded");
        }
        Ok(Self(url.to_owned()))
    }

    /// Returns the parameters of the boot in Base64, and their number.
    pub(super) fn parameters(&self) -> (String, u8) {
        let mut bytes = Vec::new();
        for (kind, value) in [(URL, self.0.as_bytes()), (SYNC_ROOT_CA, &[1])] {
            bytes.extend(VENDOR.to_le_bytes());
            bytes.extend(kind.to_le_bytes());
            // The URL has at most 300 bytes.
            bytes.extend(u32::try_from(value.len()).unwrap_or(u32::MAX).to_le_bytes());
            bytes.extend(value);
        }
        (STANDARD.encode(bytes), PARAMETERS)
    }
}

/// Availability of UEFI HTTPS boot; the error is the reason, as a clause.
pub type Availability = Result<(), &'static str>;

/// Returns whether the firmware boots by HTTPS. A missing class or flag means false.
///
/// # Errors
/// A flag is not a truth value.
pub fn availability(
    capabilities: Option<&Element>,
    settings: Option<&Element>,
) -> Result<Availability, Malformed> {
    let absent = Element::default();
    if let Err(reason) = BootTarget::Https.offer(capabilities.unwrap_or(&absent))? {
        return Ok(Err(reason));
    }
    let is_on = settings.unwrap_or(&absent).flag("UEFIHTTPSBootEnabled")?.unwrap_or(false);
    Ok(if is_on { Ok(()) } else { Err(SWITCHED_OFF) })
}

/// Returns the error of a request for a boot that is not available.
pub fn unavailable(reason: &'static str) -> Error {
    Error::Unsupported { what: WHAT, reason }
}
