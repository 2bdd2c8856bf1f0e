//! Header of an age file: one stanza for each key, and a MAC made with the file key.

use std::io::{BufRead, Read as _};

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::{FileKey, derive};
use crate::Error;

const VERSION: &str = "age-encryption.org/v1";
/// Maximum length of a header line in bytes.
const LINE_BYTES_MAX: usize = 1024;
/// Maximum length of a header in bytes.
const HEADER_BYTES_MAX: usize = 64 << 10;
/// Maximum columns of a body line. A line with fewer columns ends the body.
const COLUMNS: usize = 64;
const END: &str = "---";

/// File key, encrypted with a passphrase or for a public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stanza {
    pub kind: String,
    pub arguments: Vec<String>,
    pub body: Vec<u8>,
}

/// Parsed header, whose MAC [`Header::check`] verifies.
#[derive(Debug)]
pub struct Header {
    pub stanzas: Vec<Stanza>,
    signed: Vec<u8>,
    mac: Vec<u8>,
}

pub fn encode(stanzas: &[Stanza], key: &FileKey) -> String {
    let mut text = format!("{VERSION}\n");
    for Stanza { kind, arguments, body } in stanzas {
        text.push_str(&format!("-> {kind}"));
        for argument in arguments {
            text.push_str(&format!(" {argument}"));
        }
        text.push('\n');
        let body = STANDARD_NO_PAD.encode(body);
        let mut rest = body.as_str();
        while let Some((line, more)) = rest.split_at_checked(COLUMNS) {
            text.push_str(&format!("{line}\n"));
            rest = more;
        }
        text.push_str(&format!("{rest}\n"));
    }
    text.push_str(END);
    let mac = hmac::sign(&mac_key(key), text.as_bytes());
    text.push_str(&format!(" {}\n", STANDARD_NO_PAD.encode(mac)));
    text
}

fn mac_key(key: &FileKey) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, derive(key.as_slice(), b"", b"header").as_slice())
}

impl Header {
    /// Verifies the header's MAC with the file key.
    pub fn check(&self, key: &FileKey) -> Result<(), Error> {
        hmac::verify(&mac_key(key), &self.signed, &self.mac)
            .map_err(|_| Error::damaged("its age header was changed"))
    }
}

/// Reads the header; the nonce follows in `input`.
pub fn decode(input: &mut impl BufRead) -> Result<Header, Error> {
    let wrong = || Error::damaged("its age header is not valid");
    let mut signed = Vec::new();
    let mut stanzas = Vec::new();
    if line(input, &mut signed)? != VERSION {
        return Err(wrong());
    }
    loop {
        let before = signed.len();
        let first = line(input, &mut signed)?;
        if let Some(mac) = first.strip_prefix("--- ") {
            let mac = STANDARD_NO_PAD.decode(mac).map_err(|_| wrong())?;
            signed.truncate(before + END.len());
            return Ok(Header { stanzas, signed, mac });
        }
        let mut words = first.strip_prefix("-> ").ok_or_else(wrong)?.split(' ').map(str::to_owned);
        let kind = words.next().filter(|kind| !kind.is_empty()).ok_or_else(wrong)?;
        let arguments = words.collect();
        let mut body = String::new();
        loop {
            let part = line(input, &mut signed)?;
            if part.len() > COLUMNS {
                return Err(wrong());
            }
            body.push_str(&part);
            if part.len() < COLUMNS {
                break;
            }
        }
        let body = STANDARD_NO_PAD.decode(body).map_err(|_| wrong())?;
        stanzas.push(Stanza { kind, arguments, body });
    }
}

/// Reads a line without its line feed, and adds the complete line to the bytes that the MAC covers.
fn line(input: &mut impl BufRead, signed: &mut Vec<u8>) -> Result<String, Error> {
    let mut bytes = Vec::new();
    let mut part = input.by_ref().take(LINE_BYTES_MAX as u64);
    part.read_until(b'\n', &mut bytes).map_err(Error::read)?;
    if bytes.last() != Some(&b'\n') {
        return Err(match bytes.len() {
            LINE_BYTES_MAX => Error::damaged("its age header has a line that is too long"),
            _ => Error::Truncated,
        });
    }
    signed.extend(&bytes);
    if signed.len() > HEADER_BYTES_MAX {
        return Err(Error::damaged("its age header has too many recipients"));
    }
    bytes.pop();
    let text = String::from_utf8(bytes);
    text.map_err(|_| Error::damaged("its age header is not valid"))
}
