//! UEFI HTTPS boot (one-click recovery, AMT 15 and newer): conditions, and the parameters for the
//! firmware as records of type, length and value.

use std::str::FromStr;

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

/// Maximum bytes of a root certificate in DER (AMT_PublicKeyCertificate.X509Certificate).
const CERTIFICATE_BYTES_MAX: usize = 4100;
/// Marks of a certificate in PEM (RFC 7468 section 5).
const PEM_BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const PEM_END: &str = "-----END CERTIFICATE-----";

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

/// Root certificate of the servers that a machine may boot from, in DER (RFC 5280).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootCertificate(Vec<u8>);

/// Text that is not one certificate in PEM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected one certificate in PEM (-----BEGIN CERTIFICATE-----) of at most 4100 bytes")]
pub struct InvalidCertificate;

impl FromStr for RootCertificate {
    type Err = InvalidCertificate;

    /// Reads one certificate in PEM (RFC 7468). Text around it is ignored.
    fn from_str(text: &str) -> Result<Self, InvalidCertificate> {
        let (_, rest) = text.split_once(PEM_BEGIN).ok_or(InvalidCertificate)?;
        let (body, after) = rest.split_once(PEM_END).ok_or(InvalidCertificate)?;
        let body: String = body.split_whitespace().collect();
        let bytes = STANDARD.decode(body).map_err(|_| InvalidCertificate)?;
        // A certificate is a SEQUENCE in DER.
        let is_valid = bytes.first() == Some(&0x30) && bytes.len() <= CERTIFICATE_BYTES_MAX;
        if is_valid && !after.contains(PEM_BEGIN) {
            Ok(Self(bytes))
        } else {
            Err(InvalidCertificate)
        }
    }
}

impl RootCertificate {
    /// Returns the certificate in Base64, as AMT stores it.
    pub(crate) fn blob(&self) -> String {
        STANDARD.encode(&self.0)
    }

    /// Returns true if `stored`, an instance of AMT_PublicKeyCertificate, is this root certificate.
    pub(crate) fn is_stored_as(&self, stored: &Element) -> bool {
        // The name of the flag is written so by Intel.
        let is_root = stored.text_of("TrustedRootCertficate") == Some("true");
        let text = stored.text_of("X509Certificate").unwrap_or_default();
        is_root && text.split_whitespace().collect::<String>() == self.blob()
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
