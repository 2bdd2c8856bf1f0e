//! TLS to devices with self-signed certificates, such as BMCs: the SHA-256 of its DER encoding
//! identifies a certificate. The caller may trust the first certificate on first use.
//!
//! Never: compares names or dates of a certificate, or stores a fingerprint.
//!
//! Enter at [`start`], and for HTTP clients of hyper at [`pinned_certificate`] and
//! [`any_certificate`].

mod certificate;

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, PeerIncompatible,
    SignatureScheme,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use sha2::{Digest as _, Sha256};
use stdx::{hex, unhex};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Server name of the handshake. Devices that are reached by address have one certificate and
/// ignore the name.
const NAME: &str = "bmc";

/// Error of a handshake.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The firmware has no TLS version or cipher suite that the box accepts.
    #[error("too old for TLS: the firmware and the box share no TLS version and cipher suite")]
    TooOldForTls {
        /// Error of the TLS handshake.
        reason: String,
    },
    /// The TLS handshake failed for another reason.
    #[error("the TLS handshake failed: {reason}")]
    Tls {
        /// Error of the TLS handshake.
        reason: String,
    },
    /// The certificate is not the expected one.
    #[error("the TLS certificate changed: expected {expected}, found {found}")]
    Pin {
        /// Fingerprint that was expected.
        expected: Fingerprint,
        /// Fingerprint of the certificate that the device sent.
        found: Fingerprint,
    },
}

/// SHA-256 of a certificate in DER.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// Returns the fingerprint of a certificate in DER.
    pub fn of(certificate: &[u8]) -> Self {
        Self(Sha256::digest(certificate).into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

/// Trust of an owner in the certificate of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Any certificate, because the owner wrote `insecureTLS`.
    Any,
    /// The first certificate, which is expected from then on while the client's memory of the
    /// device exists.
    FirstUse,
    /// The certificate with this fingerprint.
    Pinned(Fingerprint),
}

/// Text that is not a fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a SHA-256 fingerprint of 64 hexadecimal digits, with or without colons")]
pub struct InvalidFingerprint;

impl FromStr for Fingerprint {
    type Err = InvalidFingerprint;

    fn from_str(text: &str) -> Result<Self, InvalidFingerprint> {
        let digits: String = text.chars().filter(|char| *char != ':').collect();
        let bytes = unhex(&digits).ok_or(InvalidFingerprint)?;
        bytes.try_into().map(Self).map_err(|_| InvalidFingerprint)
    }
}

/// Starts TLS on `stream`. `pin` is the expected certificate; `None` accepts any certificate.
/// Returns the stream and the certificate that the device sent.
///
/// # Errors
/// The handshake fails, or the certificate is not the expected one.
pub async fn start(
    stream: TcpStream,
    pin: Option<Fingerprint>,
) -> Result<(TlsStream<TcpStream>, Fingerprint), Error> {
    let unusable = |reason: String| Error::Tls { reason };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = Arc::new(PinVerifier::new(pin, Arc::clone(&provider)));
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(|error| unusable(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::clone(&verifier) as _)
        .with_no_client_auth();
    let name = ServerName::try_from(NAME).map_err(|error| unusable(error.to_string()))?;
    let shaken = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    let found = *verifier.found.lock().unwrap_or_else(PoisonError::into_inner);
    match (shaken, pin, found) {
        (_, Some(expected), Some(found)) if expected != found => {
            Err(Error::Pin { expected, found })
        }
        (Ok(stream), _, Some(found)) => Ok((stream, found)),
        (Ok(_), _, None) => Err(unusable("the device sent no certificate".to_owned())),
        (Err(error), ..) => Err(failure(&error)),
    }
}

/// Returns a verifier that accepts each certificate whose key signed the handshake. The connection
/// is encrypted, but another device in the network may pretend to be the server.
pub fn any_certificate(provider: Arc<CryptoProvider>) -> Arc<dyn ServerCertVerifier> {
    Arc::new(PinVerifier::new(None, provider))
}

/// Returns a verifier that accepts only the certificate with this fingerprint.
pub fn pinned_certificate(
    fingerprint: Fingerprint,
    provider: Arc<CryptoProvider>,
) -> Arc<dyn ServerCertVerifier> {
    Arc::new(PinVerifier::new(Some(fingerprint), provider))
}

/// Classifies the error of a handshake.
fn failure(error: &std::io::Error) -> Error {
    let reason = error.to_string();
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(
            rustls::Error::AlertReceived(
                AlertDescription::HandshakeFailure
                | AlertDescription::ProtocolVersion
                | AlertDescription::InsufficientSecurity,
            )
            | rustls::Error::PeerIncompatible(
                PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
                | PeerIncompatible::ServerDoesNotSupportTls12Or13
                | PeerIncompatible::NoCipherSuitesInCommon
                | PeerIncompatible::NoKxGroupsInCommon,
            ),
        ) => Error::TooOldForTls { reason },
        _ => Error::Tls { reason },
    }
}

/// Verification of a handshake signature in rustls, for one version of TLS.
type VerifySignature = fn(
    &[u8],
    &CertificateDer<'_>,
    &DigitallySignedStruct,
    &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, rustls::Error>;

/// Verifier that compares the certificate with a fingerprint, and records what was found.
#[derive(Debug)]
struct PinVerifier {
    pin: Option<Fingerprint>,
    found: Mutex<Option<Fingerprint>>,
    provider: Arc<CryptoProvider>,
}

impl PinVerifier {
    fn new(pin: Option<Fingerprint>, provider: Arc<CryptoProvider>) -> Self {
        Self { pin, found: Mutex::default(), provider }
    }

    /// Verifies a signature by `verify` of rustls. If rustls refuses the form of the certificate,
    /// the key is read without the other fields.
    fn verify(
        &self,
        verify: VerifySignature,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        match verify(message, certificate, signed, algorithms) {
            Err(rustls::Error::InvalidCertificate(error)) if is_form(&error) => {
                certificate::verify(message, certificate, signed, algorithms)
            }
            verified => verified,
        }
    }
}

impl ServerCertVerifier for PinVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let found = Fingerprint::of(certificate);
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        if self.pin.is_none_or(|pin| pin == found) {
            return Ok(ServerCertVerified::assertion());
        }
        Err(CertificateError::ApplicationVerificationFailure.into())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verify(verify_tls12_signature, message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verify(verify_tls13_signature, message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Returns true if the parser refused the form of the certificate, such as X.509 version 1. A wrong
/// signature is another error.
fn is_form(error: &CertificateError) -> bool {
    !matches!(error, CertificateError::BadSignature)
}

#[cfg(test)]
mod tests;
