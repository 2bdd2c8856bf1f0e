use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use stdx::unhex;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::{Error, Fingerprint, start};

/// Self-signed certificate of X.509 version 1, and its key of P-256, made for this test.
const VERSION_1: &str = "\
    308201173081bf0214763c5fc46eb73732991d4b23882ca6c2a0e6acaf300a06082a8648ce3d040302300e31\
    0c300a06035504030c03616d743020170d3236313132373233343830325a180f323132363131303332333438\
    30325a300e310c300a06035504030c03616d743059301306072a8648ce3d020106082a8648ce3d0301070342\
    00047a7bc561d4a50e132020cb22c7f4c2a71cc17fc3daed62712d095b1b3a8f120ab55e0e46d7405170bcaf\
    b28898104f6399c40111b47e0e07ca5bc2b51581adc4300a06082a8648ce3d04030203470030440220491ef5\
    3093d61f6c795216e37461f07dbecf30f74103947807f4d2dec5950a9c02207dfb5cc47ddbb315351c085d80\
    c73199c2328e890e09d41bc41e39c4f8cd5501";
const VERSION_1_KEY: &str = "\
    308187020100301306072a8648ce3d020106082a8648ce3d030107046d306b0201010420940db0205080ccbd\
    5f25fb2a7d492a5f91333179d4ab3ac4c22ced8d7d2c2838a144034200047a7bc561d4a50e132020cb22c7f4\
    c2a71cc17fc3daed62712d095b1b3a8f120ab55e0e46d7405170bcafb28898104f6399c40111b47e0e07ca5b\
    c2b51581adc4";

/// Server that sends one certificate, of whatever form.
#[derive(Debug)]
struct Server(Arc<CertifiedKey>);

impl ResolvesServerCert for Server {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

/// Runs one handshake with a server that has this certificate.
async fn handshake(
    certificate: Vec<u8>,
    key: Vec<u8>,
    version: &'static rustls::SupportedProtocolVersion,
    pin: Option<Fingerprint>,
) -> Result<Fingerprint, Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let key = PrivateKeyDer::try_from(key).unwrap();
    let key = provider.key_provider.load_private_key(key).unwrap();
    let certified = CertifiedKey::new(vec![CertificateDer::from(certificate)], key);
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Server(Arc::new(certified))));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let serve = async {
        let (stream, _) = listener.accept().await.unwrap();
        let _ = TlsAcceptor::from(Arc::new(config)).accept(stream).await;
    };
    let connect = async { start(TcpStream::connect(at).await.unwrap(), pin).await };
    let ((), shaken) = tokio::join!(serve, connect);
    shaken.map(|(_, found)| found)
}

#[tokio::test]
async fn a_certificate_is_pinned_and_its_change_refused() {
    let made = rcgen::generate_simple_self_signed(["amt".to_owned()]).unwrap();
    let certificate = || made.cert.der().to_vec();
    let key = || made.signing_key.serialize_der();
    let right = Fingerprint::of(&certificate());
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        for pin in [None, Some(right)] {
            let found = handshake(certificate(), key(), version, pin).await.unwrap();
            assert_eq!(found, right);
        }
        let other = Fingerprint([7; 32]);
        match handshake(certificate(), key(), version, Some(other)).await {
            Err(Error::Pin { expected, found }) => assert_eq!((expected, found), (other, right)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(right.to_string().parse(), Ok(right));
    assert!("00:11".parse::<Fingerprint>().is_err());
}

#[tokio::test]
async fn a_certificate_of_version_1_is_accepted_with_its_own_key_only() {
    let certificate = || unhex(VERSION_1).unwrap();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let key = unhex(VERSION_1_KEY).unwrap();
        let found = handshake(certificate(), key, version, None).await.unwrap();
        assert_eq!(found, Fingerprint::of(&certificate()));
        let other = rcgen::KeyPair::generate().unwrap().serialize_der();
        let forged = handshake(certificate(), other, version, Some(found)).await.unwrap_err();
        assert!(matches!(forged, Error::Tls { .. }), "{forged}");
    }
}

/// AMT 12 and older share no cipher suite with rustls: they end the handshake with an alert.
#[tokio::test]
async fn old_firmware_is_too_old_for_tls() {
    // Fatal alerts (RFC 5246 §7.2): handshake_failure, protocol_version, insufficient_security.
    for (alert, is_old) in [(40, true), (70, true), (71, true), (80, false)] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(&[21, 3, 1, 0, 2, 2, alert]).await.unwrap();
            stream
        };
        let connect = async { start(TcpStream::connect(at).await.unwrap(), None).await };
        let (_stream, shaken) = tokio::join!(serve, connect);
        let error = shaken.err().unwrap();
        assert_eq!(matches!(error, Error::TooOldForTls { .. }), is_old, "{alert}: {error}");
    }
}
