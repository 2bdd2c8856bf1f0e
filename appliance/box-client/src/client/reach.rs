//! Classifies connection failures, so that the error can give a hint.

use std::error::Error as StdError;
use std::io;

use rustls::CertificateError;

use crate::error::{ClientError, ReachFailure};

/// Returns the error of a request without a response.
pub fn of(server: &str, error: &hyper_util::client::legacy::Error) -> ClientError {
    let (trouble, why) = tell(error).unwrap_or_else(|| {
        let trouble = if error.is_connect() { ReachFailure::Silent } else { ReachFailure::Broken };
        (trouble, stdx::chain(error))
    });
    ClientError::Reach { server: server.to_owned(), trouble, why }
}

/// Returns the error of a response that was interrupted.
pub fn broken(server: &str, error: &(dyn StdError + 'static)) -> ClientError {
    let why = format!("the response was interrupted: {}", stdx::chain(error));
    ClientError::Reach { server: server.to_owned(), trouble: ReachFailure::Broken, why }
}

/// Returns the error of a request without a response in time.
pub fn silent(server: &str) -> ClientError {
    let why = "it did not respond in time".to_owned();
    ClientError::Reach { server: server.to_owned(), trouble: ReachFailure::Silent, why }
}

fn tell(error: &(dyn StdError + 'static)) -> Option<(ReachFailure, String)> {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(error) = cause.downcast_ref::<rustls::Error>() {
            return Some(tls(error));
        }
        if let Some(found) = cause.downcast_ref::<io::Error>().and_then(inside) {
            return Some(found);
        }
        // The resolver's error has no public type of its own.
        if cause.to_string().contains("dns error") {
            let why = "its name does not resolve".to_owned();
            return Some((ReachFailure::Name, why));
        }
        next = cause.source();
    }
    None
}

/// Classifies the inner error of an I/O error, which `source` does not return.
fn inside(error: &io::Error) -> Option<(ReachFailure, String)> {
    let wrapped = error.get_ref();
    let tls_error = wrapped.and_then(|it| it.downcast_ref::<rustls::Error>());
    let deeper = wrapped.and_then(|it| it.downcast_ref::<io::Error>());
    tls_error.map(tls).or_else(|| deeper.and_then(inside)).or_else(|| socket(error))
}

fn tls(error: &rustls::Error) -> (ReachFailure, String) {
    use CertificateError as C;
    match error {
        rustls::Error::InvalidCertificate(bad) => match bad {
            C::UnknownIssuer | C::BadSignature => (
                ReachFailure::UnknownCa,
                "its certificate is not signed by the kubeconfig's CA".into(),
            ),
            C::NotValidForName | C::NotValidForNameContext { .. } => {
                (ReachFailure::OtherName, "its certificate is for another name or address".into())
            }
            C::Expired
            | C::ExpiredContext { .. }
            | C::NotValidYet
            | C::NotValidYetContext { .. } => {
                (ReachFailure::Expired, "its certificate is not valid at this time".into())
            }
            other => (ReachFailure::Tls, format!("its certificate is refused: {other:?}")),
        },
        other => (ReachFailure::Tls, other.to_string()),
    }
}

fn socket(error: &io::Error) -> Option<(ReachFailure, String)> {
    use io::ErrorKind as K;
    let (trouble, why) = match error.kind() {
        K::ConnectionRefused => (ReachFailure::Refused, "connection refused"),
        K::TimedOut => (ReachFailure::Silent, "no answer"),
        K::HostUnreachable | K::NetworkUnreachable => (ReachFailure::Silent, "no route to it"),
        K::ConnectionReset | K::ConnectionAborted | K::BrokenPipe | K::UnexpectedEof => {
            (ReachFailure::Broken, "it closed the connection")
        }
        _ => return None,
    };
    Some((trouble, why.to_owned()))
}
