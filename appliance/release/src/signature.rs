//! Verification of the signature files of minisign.

use minisign_verify::{Error as Minisign, PublicKey as Verifier, Signature};

use crate::PublicKey;

/// Reason why a signature is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unverified {
    /// The signature file cannot be parsed.
    #[error("not a valid minisign signature: {0}")]
    Format(String),
    /// None of the keys made the signature.
    #[error("the signing key is not one of the trusted keys")]
    UnknownKey,
    /// A known key made the signature, but for other content or another trusted comment.
    #[error("the signature does not match this text: {0}")]
    Content(String),
}

/// Verifies that one of `keys` signed `content`. `signature` is the text of minisign's file.
///
/// # Errors
/// The reason why the signature is not accepted.
pub fn verify(keys: &[PublicKey], content: &[u8], signature: &str) -> Result<(), Unverified> {
    let signature =
        Signature::decode(signature).map_err(|error| Unverified::Format(error.to_string()))?;
    let mut judged = keys.iter().map(|key| {
        let key = Verifier::from_base64(&key.line())?;
        key.verify(content, &signature, false)
    });
    let known = judged.find(|judged| !matches!(judged, Err(Minisign::UnexpectedKeyId)));
    match known {
        Some(Ok(())) => Ok(()),
        Some(Err(error)) => Err(Unverified::Content(error.to_string())),
        None => Err(Unverified::UnknownKey),
    }
}

#[cfg(test)]
mod tests {
    use super::{Unverified, verify};
    use crate::SecretKey;

    #[test]
    fn our_signatures_are_verified_by_another_implementation() {
        let folder = tempfile::tempdir().unwrap();
        let made = |name| SecretKey::create(&folder.path().join(name)).unwrap();
        let (ours, other) = (made("ours"), made("other"));
        let keys = [other.public(), ours.public()];
        let signature = ours.signature_file(b"abc", "file:sums");
        assert_eq!(verify(&keys, b"abc", &signature), Ok(()));
        assert_eq!(verify(&keys[..1], b"abc", &signature), Err(Unverified::UnknownKey));
        let changed = verify(&keys, b"abd", &signature);
        assert!(matches!(changed, Err(Unverified::Content(_))), "{changed:?}");
        let comment = verify(&keys, b"abc", &signature.replace("file:", "fule:"));
        assert!(matches!(comment, Err(Unverified::Content(_))), "{comment:?}");
        assert!(matches!(verify(&keys, b"abc", "nonsense"), Err(Unverified::Format(_))));
    }
}
