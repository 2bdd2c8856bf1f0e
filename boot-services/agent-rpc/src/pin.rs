//! TLS for agents. An agent trusts one public key, whose hash (pin) is on the kernel command line.
//! The agent checks neither the certificate's dates nor its name: an agent has no reliable clock,
//! and the box has no fixed name. The key stays the same when the certificate is renewed.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use sha2::{Digest as _, Sha256};

/// ALPN identifier of HTTP/2 (RFC 7301 registry).
const H2: &[u8] = b"h2";

/// SHA-256 of a server's SubjectPublicKeyInfo (RFC 7469 section 2.4), in hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pin([u8; 32]);

impl Pin {
    /// Computes the pin of the public key in a certificate.
    ///
    /// # Errors
    /// The certificate is malformed.
    pub fn of(certificate: &CertificateDer<'_>) -> Result<Self, Error> {
        let key = ParsedCertificate::try_from(certificate)?.subject_public_key_info();
        Ok(Self(Sha256::digest(key.as_ref()).into()))
    }

    /// Returns the 32 bytes of the SHA-256.
    pub fn bytes(self) -> [u8; 32] {
        self.0
    }

    /// Builds the TLS 1.3 configuration of a client that trusts only the owner of the pinned key.
    ///
    /// # Errors
    /// The cryptography provider does not support TLS 1.3.
    pub fn client_config(self) -> Result<ClientConfig, Error> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = Verifier { pin: self, provider: provider.clone() };
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        config.alpn_protocols = vec![H2.to_vec()];
        // An address is no name, and the box needs none.
        config.enable_sni = false;
        Ok(config)
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&stdx::hex(&self.0))
    }
}

impl FromStr for Pin {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = stdx::unhex(text).and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or("it is not 64 hexadecimal digits")
    }
}

/// Certificate verifier that accepts only certificates with the pinned key.
#[derive(Debug)]
struct Verifier {
    pin: Pin,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if Pin::of(certificate)? == self.pin {
            return Ok(ServerCertVerified::assertion());
        }
        Err(CertificateError::ApplicationVerificationFailure.into())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.2 is not supported".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
