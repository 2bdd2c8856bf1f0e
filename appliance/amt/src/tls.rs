//! TLS to management engines: certificates are self-signed, so a fingerprint identifies one.

use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

pub use tls_pin::{Fingerprint, InvalidFingerprint, Trust};

use crate::Error;

/// Starts TLS on `stream`. `pin` is the expected certificate; `None` accepts any certificate.
/// Returns the stream and the certificate that the machine sent.
pub(crate) async fn start(
    stream: TcpStream,
    pin: Option<Fingerprint>,
) -> Result<(TlsStream<TcpStream>, Fingerprint), Error> {
    tls_pin::start(stream, pin).await.map_err(|error| match error {
        tls_pin::Error::TooOldForTls { reason } => Error::TooOldForTls { reason },
        tls_pin::Error::Tls { reason } => Error::Tls { reason },
        tls_pin::Error::Pin { expected, found } => Error::Pin { expected, found },
    })
}
