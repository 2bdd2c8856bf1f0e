//! The box's own certificate authority and the server certificate it issues.
//!
//! ```text
//! STATE/pki/ca.key      ca.crt       EC P-256, created once
//! STATE/pki/server.key  server.crt   EC P-256, replaced when names change or expiry is near
//! STATE/pki/server.json              names and expiry of server.crt
//! STATE/pki/serviceaccount.key       EC P-256, created once: see `signing`
//! ```
//!
//! A box without a battery-backed clock may create certificates with its clock in 1970. Therefore
//! validity starts on 1 January 2025, and the lifetime is counted from the clock's year, at least
//! 2025.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData as _, date_time_ymd,
};
use rustls::crypto::CryptoProvider;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{Error, private_file};

/// TLS versions of the box as a server: all clients support TLS 1.3. The box accepts older versions
/// only when it downloads from other servers.
const SERVED: &[&rustls::SupportedProtocolVersion] = &[&rustls::version::TLS13];

/// First year of validity: every certificate is valid from 1 January 2025.
const FIRST_YEAR: i16 = 2025;
/// Lifetime of the CA certificate, in years.
const CA_YEARS: i16 = 30;
/// Lifetime of a server certificate, in years.
const SERVER_YEARS: i16 = 10;
/// Years before expiry from which a server certificate is replaced at the next start.
const RENEW_YEARS: i16 = 2;

/// Certificate authority of the box, and a server certificate for the box's names.
pub struct Pki {
    folder: PathBuf,
    ca_pem: String,
    served: Arc<ServedCertificate>,
}

/// Present server certificate, shared by all TLS configurations of a [`Pki`], so that a new
/// certificate is used from the next handshake on.
#[derive(Debug, Default)]
struct ServedCertificate(RwLock<Option<Arc<CertifiedKey>>>);

impl ResolvesServerCert for ServedCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[derive(Serialize, Deserialize, PartialEq)]
struct CertificateRecord {
    names: Vec<String>,
    last_year: i16,
}

impl Pki {
    /// Reads the CA and the server certificate in `state_dir`; creates missing files, and replaces
    /// an outdated server certificate. `names` are the DNS names and IP addresses of the box.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or written, or if a name is invalid.
    pub fn ensure(state_dir: &Path, names: &[String], now: Timestamp) -> Result<Self, Error> {
        let folder = state_dir.join("pki");
        private_file::folder(&folder)?;
        let year = now.to_zoned(TimeZone::UTC).year().max(FIRST_YEAR);
        let key = ensure_key(&folder.join("ca.key"), "authority's key")?;
        let mut params = authority(&key);
        let path = folder.join("ca.crt");
        let ca_pem = match private_file::read(&path)? {
            Some(pem) => pem,
            None => {
                params.not_after = date_time_ymd(i32::from(year.saturating_add(CA_YEARS)), 1, 1);
                let made = params.self_signed(&key).map_err(failed("authority"))?;
                private_file::write(&path, &made.pem())?;
                made.pem()
            }
        };
        let pki = Self { folder, ca_pem, served: Arc::default() };
        let ensured = pki.ensure_server(names, year, &Issuer::new(params, key));
        // A box with a full disk starts with its present certificate. A client that frees the disk
        // verifies the pin, whatever names the certificate contains.
        match ensured {
            Err(error) if error.is_full() && pki.server_certificate().is_ok() => {
                tracing::warn!(%error, "cannot renew the box's certificate");
            }
            ensured => ensured?,
        }
        pki.serve()?;
        Ok(pki)
    }

    /// Reissues the server certificate for `names`, used from the next handshake on. The key stays
    /// the same, so clients that pinned the key still trust the box (TL-1).
    ///
    /// # Errors
    /// Returns the errors of [`Pki::ensure`]; the old certificate then stays in use.
    pub fn rename(&self, names: &[String], now: Timestamp) -> Result<(), Error> {
        let year = now.to_zoned(TimeZone::UTC).year().max(FIRST_YEAR);
        let key = ensure_key(&self.folder.join("ca.key"), "authority's key")?;
        self.ensure_server(names, year, &Issuer::new(authority(&key), key))?;
        self.serve()
    }

    fn serve(&self) -> Result<(), Error> {
        let certificate = self.server_certificate()?;
        let path = self.folder.join("server.key");
        let key =
            PrivateKeyDer::from_pem_file(&path).map_err(|source| Error::Pem { path, source })?;
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let made = CertifiedKey::from_der(vec![certificate], key, &provider).map_err(Error::Tls)?;
        *self.served.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(made));
        Ok(())
    }

    /// Returns true if `pem` is a private key that [`Pki::ensure`] could use.
    pub fn is_key(pem: &str) -> bool {
        KeyPair::from_pem(pem).is_ok()
    }

    /// Returns true if `pem` is a valid certificate.
    pub fn is_certificate(pem: &str) -> bool {
        let read = CertificateDer::from_pem_slice(pem.as_bytes());
        read.is_ok_and(|certificate| ParsedCertificate::try_from(&certificate).is_ok())
    }

    /// Returns the CA certificate, which clients trust, as PEM.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// Returns the server certificate. A renewed certificate has the same key.
    ///
    /// # Errors
    /// Returns an error if the file is not what [`Pki::ensure`] wrote.
    pub fn server_certificate(&self) -> Result<CertificateDer<'static>, Error> {
        let path = self.folder.join("server.crt");
        CertificateDer::from_pem_file(&path).map_err(|source| Error::Pem { path, source })
    }

    /// Returns the TLS configuration of the API server: TLS 1.3, HTTP/2 preferred. Client
    /// certificates are optional, and must be issued by this CA for client authentication.
    ///
    /// # Errors
    /// Returns an error if the files are not what [`Pki::ensure`] wrote.
    pub fn server_config(&self) -> Result<Arc<ServerConfig>, Error> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let clients = self.client_verifier(provider.clone())?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(SERVED)
            .map_err(Error::Tls)?
            .with_client_cert_verifier(clients)
            .with_cert_resolver(Arc::clone(&self.served) as _);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// Works as [`Pki::server_config`], for web pages: without a request for a client certificate,
    /// for which browsers would show a dialog.
    ///
    /// # Errors
    /// Returns the errors of [`Pki::server_config`].
    pub fn page_config(&self) -> Result<Arc<ServerConfig>, Error> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(SERVED)
            .map_err(Error::Tls)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&self.served) as _);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// Makes the verifier of client certificates. Clients without a certificate may connect.
    fn client_verifier(
        &self,
        provider: Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ClientCertVerifier>, Error> {
        let path = self.folder.join("ca.crt");
        let authority = CertificateDer::from_pem_slice(self.ca_pem.as_bytes())
            .map_err(|source| Error::Pem { path, source })?;
        let mut roots = RootCertStore::empty();
        roots.add(authority).map_err(Error::Tls)?;
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .allow_unauthenticated()
            .build()
            .map_err(Error::Verifier)
    }

    fn ensure_server(
        &self,
        names: &[String],
        year: i16,
        issuer: &Issuer<'_, KeyPair>,
    ) -> Result<(), Error> {
        let record = self.folder.join("server.json");
        let issued = private_file::read(&record)?;
        let issued = issued.and_then(|text| serde_json::from_str::<CertificateRecord>(&text).ok());
        let fits = issued.is_some_and(|issued| {
            issued.names == names && issued.last_year > year.saturating_add(RENEW_YEARS)
        });
        if fits {
            return Ok(());
        }
        let key = ensure_key(&self.folder.join("server.key"), "server's key")?;
        let mut params =
            CertificateParams::new(names.to_vec()).map_err(failed("server certificate"))?;
        params.distinguished_name = distinguished("Tinbox".to_owned());
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let last_year = year.saturating_add(SERVER_YEARS);
        params.not_before = date_time_ymd(i32::from(FIRST_YEAR), 1, 1);
        params.not_after = date_time_ymd(i32::from(last_year), 1, 1);
        let made = params.signed_by(&key, issuer).map_err(failed("server certificate"))?;
        private_file::write(&self.folder.join("server.crt"), &made.pem())?;
        let issued = CertificateRecord { names: names.to_vec(), last_year };
        let text = serde_json::to_string(&issued).expect("texts and a number are always JSON");
        private_file::write(&record, &text)
    }
}

/// Returns the content of the CA certificate. The content depends only on the key, because issued
/// certificates must contain exactly the same issuer name.
fn authority(key: &KeyPair) -> CertificateParams {
    let print = Sha256::digest(key.der_bytes());
    let print = stdx::hex(print.get(..4).unwrap_or_default());
    let mut params = CertificateParams::default();
    params.distinguished_name = distinguished(format!("Tinbox authority {print}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.not_before = date_time_ymd(i32::from(FIRST_YEAR), 1, 1);
    params
}

fn distinguished(common_name: String) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}

pub(super) fn ensure_key(path: &Path, what: &'static str) -> Result<KeyPair, Error> {
    if let Some(pem) = private_file::read(path)? {
        return KeyPair::from_pem(&pem).map_err(failed(what));
    }
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed(what))?;
    private_file::write(path, &key.serialize_pem())?;
    Ok(key)
}

fn failed(what: &'static str) -> impl FnOnce(rcgen::Error) -> Error {
    move |source| Error::Certificate { what, source }
}
