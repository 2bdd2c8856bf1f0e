//! Public SSH keys as a person pastes them: the lines of `id_ed25519.pub` and `authorized_keys`
//! (sshd(8)), without options in front.
//!
//! Never: a private key, or a check against a server.
//!
//! Enter at [`lines`].

use ssh_key::PublicKey;
use thiserror::Error;

/// Maximum number of keys in a text.
pub const KEYS_MAX: usize = 32;
/// Maximum length of a text with keys, in bytes.
pub const TEXT_BYTES_MAX: usize = 64 << 10;

/// Reason why a text is refused, as a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeyError {
    /// The text has a private key, which must not leave its computer.
    #[error("This is a private key: paste the public key, the file that ends in .pub.")]
    Private,
    /// The text has too many keys.
    #[error("There are {0} keys; the limit is {KEYS_MAX}.")]
    TooMany(usize),
    /// The text is too long.
    #[error("The keys have {0} bytes; the limit is {TEXT_BYTES_MAX}.")]
    TooLong(usize),
    /// A line is not a public key, or is cut off. Has the number of the line, from 1 on.
    #[error("Line {0} is not a public key: expected ssh-ed25519 AAAA… and a name.")]
    Line(usize),
}

/// Returns the keys of a text with one key a line, without empty lines and comments (`#`).
///
/// # Errors
/// All reasons why the text is refused, in the order of its lines.
pub fn lines(text: &str) -> Result<Vec<String>, Vec<KeyError>> {
    if text.contains("PRIVATE KEY") {
        return Err(vec![KeyError::Private]);
    }
    if text.len() > TEXT_BYTES_MAX {
        return Err(vec![KeyError::TooLong(text.len())]);
    }
    let numbered = text.lines().map(str::trim).zip(1..);
    let keys: Vec<(&str, usize)> =
        numbered.filter(|(line, _)| !line.is_empty() && !line.starts_with('#')).collect();
    let mut mistakes = Vec::new();
    if keys.len() > KEYS_MAX {
        mistakes.push(KeyError::TooMany(keys.len()));
    }
    let wrong = keys.iter().filter(|(line, _)| !is_key(line));
    mistakes.extend(wrong.map(|(_, number)| KeyError::Line(*number)));
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    Ok(keys.into_iter().map(|(line, _)| line.to_owned()).collect())
}

fn is_key(line: &str) -> bool {
    !line.contains(char::is_control) && PublicKey::from_openssh(line).is_ok()
}

#[cfg(test)]
mod tests {
    use super::{KEYS_MAX, KeyError, TEXT_BYTES_MAX, lines};

    const ED25519: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGk0X1w7K6s3yT1p8h2v5Jc9bq0eRkUuZ4mWnDfLxTgA me";
    /// From `ssh-keygen -t ecdsa`.
    const ECDSA: &str = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABB\
        BCmsWO8C7dJ2Jv99N56Bz6JEzc6JuZs39eztGgtrvM2EPnLnYrYwKXh4CibhmyIz17FBcFe7SC5Gxpsb1S46dRg= e";

    #[test]
    fn keys_are_taken_as_ssh_keygen_writes_them() {
        let text = format!("# laptop\r\n {ED25519} \r\n\r\n{ECDSA}");
        assert_eq!(lines(&text), Ok(vec![ED25519.to_owned(), ECDSA.to_owned()]));
        assert_eq!(lines(""), Ok(Vec::new()));
    }

    #[test]
    fn each_wrong_line_is_named() {
        let cut = &ED25519[..40];
        let options = format!("command=\"true\" {ED25519}");
        let control = format!("{ED25519}\u{7}");
        let text = format!("{ED25519}\n{cut}\n\nssh-rsa AAAA me\n{options}\n{control}\nhello");
        let expected = [2, 4, 5, 6, 7].map(KeyError::Line).to_vec();
        assert_eq!(lines(&text), Err(expected));
        let private = "-----BEGIN OPENSSH PRIVATE KEY-----";
        assert_eq!(lines(private), Err(vec![KeyError::Private]));
        let many = format!("{ED25519}\n").repeat(KEYS_MAX + 1);
        assert_eq!(lines(&many), Err(vec![KeyError::TooMany(KEYS_MAX + 1)]));
        let long = "#".repeat(TEXT_BYTES_MAX + 1);
        assert_eq!(lines(&long), Err(vec![KeyError::TooLong(TEXT_BYTES_MAX + 1)]));
    }
}
