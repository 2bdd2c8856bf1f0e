//! Public key of a certificate whose form webpki refuses, such as X.509 version 1. The fingerprint
//! identifies the certificate, so only its key matters.

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::{CertificateError, DigitallySignedStruct};

/// DER tags (X.690 §8).
const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
/// Explicit tag 0: the version, which version 1 leaves out (RFC 5280 §4.1).
const VERSION: u8 = 0xA0;

/// Verifies a signature of the handshake with the key in `certificate`.
///
/// # Errors
/// The certificate has no key of a known kind, or the signature does not match.
pub(super) fn verify(
    message: &[u8],
    certificate: &[u8],
    signed: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, rustls::Error> {
    let (algorithm, key) = public_key(certificate).ok_or(CertificateError::BadEncoding)?;
    let candidates = algorithms.mapping.iter().filter(|(scheme, _)| *scheme == signed.scheme);
    let mut candidates = candidates.flat_map(|(_, candidates)| candidates.iter());
    let is_signed = candidates.any(|candidate| {
        candidate.public_key_alg_id().as_ref() == algorithm
            && candidate.verify_signature(key, message, signed.signature()).is_ok()
    });
    if is_signed {
        return Ok(HandshakeSignatureValid::assertion());
    }
    Err(CertificateError::BadSignature.into())
}

/// Returns the contents of the algorithm identifier and of the key (RFC 5280 §4.1).
fn public_key(certificate: &[u8]) -> Option<(&[u8], &[u8])> {
    let (outer, _) = value(certificate, SEQUENCE)?;
    let (mut to_be_signed, _) = value(outer, SEQUENCE)?;
    if let Some((_, rest)) = value(to_be_signed, VERSION) {
        to_be_signed = rest;
    }
    let (_, mut rest) = value(to_be_signed, INTEGER)?;
    // Algorithm of the signature, issuer, validity, subject.
    for _ in 0..4 {
        (_, rest) = value(rest, SEQUENCE)?;
    }
    let (info, _) = value(rest, SEQUENCE)?;
    let (algorithm, rest) = value(info, SEQUENCE)?;
    let (key, _) = value(rest, BIT_STRING)?;
    // First byte: number of unused bits, which a key does not have.
    Some((algorithm, key.strip_prefix(&[0])?))
}

/// Splits one value with the tag `tag` off the front: its contents, and the bytes after it.
fn value(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7F => (usize::from(*first), rest),
        // At most four bytes of length.
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7F))?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    (*found == tag).then(|| rest.split_at_checked(length))?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stdx::unhex;

    use super::public_key;

    /// Head of a certificate of version 1 with short placeholders and an Ed25519 key.
    const VERSION_1: &str =
        "3023302102010130003000300030003014300506032b6570030b00aabbccddeeff00112233";

    #[test]
    fn the_key_of_a_version_1_certificate_is_found() {
        let der = unhex(VERSION_1).unwrap();
        let (algorithm, key) = public_key(&der).unwrap();
        assert_eq!(algorithm, [6, 3, 0x2B, 0x65, 0x70]);
        assert_eq!(key, [0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF, 0x00, 0x11, 0x22, 0x33]);
        for length in 0..der.len() {
            assert_eq!(public_key(&der[..length]), None, "{length}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = public_key(&bytes);
        }
    }
}
