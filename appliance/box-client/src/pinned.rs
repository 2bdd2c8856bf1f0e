//! HTTPS to a box that is identified by its pin only, before its CA certificate is known.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use sha2::{Digest as _, Sha256};
use status::access::{is_same, pin};

use crate::error::{ClientError, ReachFailure};

/// Maximum size of a response, in bytes.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Maximum wait for a response; the box may have to hash a passphrase.
const ANSWER_WAIT: Duration = Duration::from_secs(30);

/// Certificate verifier that compares the pin of the box with an expected pin.
#[derive(Debug)]
struct PinVerifier {
    wanted: Option<String>,
    found: Mutex<Option<String>>,
    provider: Arc<CryptoProvider>,
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
        let key = ParsedCertificate::try_from(certificate)?.subject_public_key_info();
        let found = pin(&Sha256::digest(key.as_ref()).into());
        let good = self.wanted.as_ref().is_none_or(|wanted| is_same(wanted, &found));
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        if good {
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
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Requests `https://ADDRESS/PATH` from the box with the pin `wanted`; `None` accepts any box.
/// Returns the response and the box's pin.
///
/// # Errors
/// The box does not respond, or its pin differs from `wanted`.
pub async fn ask(
    address: &str,
    wanted: Option<&str>,
    request: http::request::Builder,
    body: String,
) -> Result<(Response<Bytes>, String), ClientError> {
    ask_for(address, (wanted, ANSWER_WAIT), request, body.into()).await
}

/// Sends a request as [`ask`] does, with another time limit.
///
/// # Errors
/// The box does not respond, or its pin differs from `wanted`.
pub async fn ask_for(
    address: &str,
    (wanted, wait): (Option<&str>, Duration),
    request: http::request::Builder,
    body: Bytes,
) -> Result<(Response<Bytes>, String), ClientError> {
    let unusable =
        |why: String| ClientError::Answer { what: format!("connect to the box at {address}"), why };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = Arc::new(PinVerifier {
        wanted: wanted.map(str::to_owned),
        found: Mutex::default(),
        provider: Arc::clone(&provider),
    });
    let tls = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| unusable(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::clone(&verifier) as _)
        .with_no_client_auth();
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_connect_timeout(Some(ANSWER_WAIT));
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_only()
        .enable_http1()
        .wrap_connector(tcp);
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build(connector);
    let request: Request<Full<Bytes>> =
        request.body(Full::from(body)).map_err(|error| unusable(error.to_string()))?;
    let asked = tokio::time::timeout(wait, client.request(request)).await;
    let found = verifier.found.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let reach = |trouble, why: String| ClientError::Reach {
        server: format!("https://{address}"),
        trouble,
        why,
    };
    let answer = match (asked, wanted, found.clone()) {
        (Ok(Ok(answer)), _, _) => answer,
        (_, Some(wanted), Some(found)) if !is_same(wanted, &found) => {
            let (address, wanted) = (address.to_owned(), wanted.to_owned());
            return Err(ClientError::Untrusted { address, found, wanted });
        }
        (Ok(Err(error)), _, _) => return Err(reach(ReachFailure::Address, stdx::chain(&error))),
        (Err(_), _, _) => return Err(reach(ReachFailure::Silent, "no answer in time".to_owned())),
    };
    let (head, body) = answer.into_parts();
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
    let body = body.map_err(|error| unusable(error.to_string()))?.to_bytes();
    Ok((Response::from_parts(head, body), found.unwrap_or_default()))
}

/// Builds a request for a path of the box.
pub fn request(method: Method, address: &str, path: &str) -> http::request::Builder {
    Request::builder()
        .method(method)
        .uri(format!("https://{address}{path}"))
        .header("accept", "text/plain")
}
