//! Tests of the format against files and keys that age itself made, and against this crate.

use std::io::{Cursor, Read as _, Write as _};

use super::stream::PIECE;
use super::{Decryptor, Encryptor, Identity, Recipient, Unlock};
use crate::Error;

/// Key that `age-keygen` prints as an example in the specification.
const SECRET: &str = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";
const PUBLIC: &str = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj";

/// Key in the manual of age.
const OTHERS: &str = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p";

fn sealed(plain: &[u8], passphrase: &str) -> Vec<u8> {
    let mut out = Encryptor::with_passphrase(Vec::new(), passphrase, 4).unwrap();
    out.write_all(plain).unwrap();
    out.finish().unwrap()
}

fn opened(bytes: &[u8], unlock: &Unlock<'_>) -> Result<Vec<u8>, Error> {
    let mut plain = Vec::new();
    let mut input = Decryptor::open(Cursor::new(bytes), unlock)?;
    input.read_to_end(&mut plain).map_err(Error::read)?;
    Ok(plain)
}

#[test]
fn every_length_around_a_piece_comes_back() {
    for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 2 * PIECE + 7] {
        let plain: Vec<u8> = (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let file = sealed(&plain, "correct horse");
        let back = opened(&file, &Unlock::Passphrase("correct horse")).unwrap();
        assert!(back == plain, "{length}");
    }
}

#[test]
fn keys_are_those_of_the_stock_tool() {
    let identity = Identity::parse(SECRET).unwrap();
    assert_eq!(identity.recipient().unwrap().text(), PUBLIC);
    let recipient = Recipient::parse(PUBLIC).unwrap();
    let others = Recipient::parse(OTHERS).unwrap();
    let mut out = Encryptor::with_recipients(Vec::new(), &[others, recipient]).unwrap();
    out.write_all(b"for two").unwrap();
    let file = out.finish().unwrap();
    assert_eq!(opened(&file, &Unlock::Identity(&identity)).unwrap(), b"for two");
    assert!(matches!(
        opened(&file, &Unlock::Passphrase("correct horse")),
        Err(Error::Damaged { .. })
    ));
    assert!(!format!("{identity:?}").contains("GFPYY"));
}

#[test]
fn what_is_no_key_is_said_without_repeating_a_secret() {
    for text in ["", "age1", "age1qqqq", &PUBLIC.replace('z', "y"), &PUBLIC.to_uppercase()] {
        assert!(matches!(Recipient::parse(text), Err(Error::Recipient { .. })), "{text}");
    }
    let message = Recipient::parse(SECRET).unwrap_err().to_string();
    assert!(!message.contains("GFPYY"), "{message}");
    let damaged = SECRET.replace("GFPQ", "GFPP");
    for text in ["AGE-SECRET-KEY-1", &damaged, &SECRET.to_lowercase()] {
        let message = Identity::parse(text).unwrap_err().to_string();
        assert!(!message.contains("GFPYY"), "{message}");
    }
}

#[test]
fn another_passphrase_opens_nothing() {
    let file = sealed(b"secret", "correct horse");
    let other = opened(&file, &Unlock::Passphrase("correct horsf"));
    assert!(matches!(other, Err(Error::WrongPassphrase)), "{other:?}");
}

#[test]
fn no_byte_can_be_changed_or_cut_off() {
    let plain = vec![5; PIECE + 100];
    let file = sealed(&plain, "correct horse");
    let unlock = Unlock::Passphrase("correct horse");
    let head = file.len() - PIECE - 200;
    // All of the front, and the pieces here and there.
    for at in (0..head).chain((head..file.len()).step_by(997)).chain([file.len() - 1]) {
        let mut changed = file.clone();
        changed[at] ^= 1;
        assert!(opened(&changed, &unlock).is_err(), "byte {at} was changed");
        assert!(opened(&file[..at], &unlock).is_err(), "cut at {at}");
    }
    let longer = [&file[..], b"x"].concat();
    assert!(opened(&longer, &unlock).is_err());
}

#[test]
fn pieces_cannot_be_left_out() {
    let file = sealed(&vec![5; 3 * PIECE], "correct horse");
    let begin = file.len() - 3 * (PIECE + 16);
    let without = [&file[..begin + PIECE + 16], &file[begin + 2 * (PIECE + 16)..]].concat();
    assert!(opened(&without, &Unlock::Passphrase("correct horse")).is_err());
    let cut = &file[..begin + 2 * (PIECE + 16)];
    let cut = opened(cut, &Unlock::Passphrase("correct horse"));
    assert!(matches!(cut, Err(Error::Truncated)), "{cut:?}");
}

#[test]
fn a_work_factor_that_needs_too_much_memory_is_refused_before_it_is_taken() {
    let file = sealed(b"secret", "correct horse");
    let text = String::from_utf8_lossy(&file[..80]).into_owned();
    let from = text.find(" 4\n").unwrap();
    for (written, costly) in [(" 22\n", true), (" 04\n", false), (" +4\n", false), (" 0\n", false)]
    {
        let changed = [&file[..from], written.as_bytes(), &file[from + 3..]].concat();
        let error = opened(&changed, &Unlock::Passphrase("correct horse")).unwrap_err();
        assert_eq!(matches!(error, Error::TooCostly { found: 22, .. }), costly, "{error:?}");
    }
}
