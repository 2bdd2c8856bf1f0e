//! Base 64, base 32 and digests. Invalid encoded text is not an error: the result contains Go's
//! message with the position.

pub mod cipher;

use base64::Engine;
use sha2::Digest;

use crate::function::Type::Text;
use crate::function::{Answer, Args, Function, exact};
use crate::value::may_make;

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
/// The modulus of Adler-32 (RFC 1950).
const ADLER_MODULUS: u32 = 65_521;

/// Sprig functions that this file implements.
pub static FUNCTIONS: &[Function] = &[
    exact("b64enc", &[Text], |args| {
        may_make(args.text(0).len() / 3 * 4 + 4)?;
        args.made(base64::engine::general_purpose::STANDARD.encode(args.text(0)))
    }),
    exact("b64dec", &[Text], |args| decoded(args, "base64", base64_bytes(args.text(0)))),
    exact("b32enc", &[Text], |args| {
        may_make(args.text(0).len() / 5 * 8 + 8)?;
        args.made(base32(args.text(0).as_bytes()))
    }),
    exact("b32dec", &[Text], |args| decoded(args, "base32", base32_bytes(args.text(0)))),
    exact("sha1sum", &[Text], |args| args.made(stdx::hex(&sha1::Sha1::digest(args.text(0))))),
    exact("sha256sum", &[Text], |args| args.made(stdx::hex(&sha2::Sha256::digest(args.text(0))))),
    exact("sha512sum", &[Text], |args| args.made(stdx::hex(&sha2::Sha512::digest(args.text(0))))),
    exact("adler32sum", &[Text], |args| {
        let (a, b) = args.text(0).bytes().fold((1, 0), |(a, b), byte| {
            let a = (a + u32::from(byte)) % ADLER_MODULUS;
            (a, (b + a) % ADLER_MODULUS)
        });
        args.made((b << 16 | a).to_string())
    }),
];

fn decoded(args: &Args, name: &str, bytes: Result<Vec<u8>, usize>) -> Answer {
    match bytes {
        Ok(bytes) => args.made(
            String::from_utf8(bytes).map_err(|_| "the decoded data is not UTF-8".to_owned())?,
        ),
        Err(at) => args.made(format!("illegal {name} data at input byte {at}")),
    }
}

fn base64_digit(byte: u8) -> Option<u32> {
    Some(u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

/// Decodes base 64; the error is the position of the invalid byte, as Go reports it.
pub(super) fn base64_bytes(text: &str) -> Result<Vec<u8>, usize> {
    let all = text.as_bytes();
    let skip = |mut at: usize| {
        while matches!(all.get(at), Some(b'\r' | b'\n')) {
            at += 1;
        }
        at
    };
    let mut out = Vec::new();
    let (mut digits, mut count, mut at) = (0_u32, 0, 0);
    loop {
        at = skip(at);
        let Some(byte) = all.get(at) else {
            return if count == 0 { Ok(out) } else { Err(at - count) };
        };
        at += 1;
        if let Some(digit) = base64_digit(*byte) {
            digits = digits << 6 | digit;
            count += 1;
            if count == 4 {
                out.extend_from_slice(&digits.to_be_bytes()[1..]);
                (digits, count) = (0, 0);
            }
            continue;
        }
        if *byte != b'=' || count < 2 {
            return Err(at - 1);
        }
        if count == 2 {
            at = skip(at);
            match all.get(at) {
                None => return Err(all.len()),
                Some(b'=') => at += 1,
                Some(_) => return Err(at - 1),
            }
        }
        at = skip(at);
        if at < all.len() {
            return Err(at);
        }
        let bytes = (digits << (6 * (4 - count))).to_be_bytes();
        out.extend_from_slice(&bytes[1..count]);
        return Ok(out);
    }
}

fn base32(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.chunks(5) {
        let mut word = [0; 8];
        word[3..3 + chunk.len()].copy_from_slice(chunk);
        let word = u64::from_be_bytes(word);
        let digits = (chunk.len() * 8).div_ceil(5);
        for at in 0..8 {
            let digit = usize::try_from(word >> (35 - 5 * at) & 31).unwrap_or(0);
            out.push(if at < digits { char::from(BASE32[digit]) } else { '=' });
        }
    }
    out
}

/// Decodes base 32; the error is the position of the invalid byte, without line breaks.
fn base32_bytes(text: &str) -> Result<Vec<u8>, usize> {
    let all: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    let mut out = Vec::new();
    let mut at = 0;
    while at < all.len() {
        let (mut word, mut count, mut is_last) = (0_u64, 0, false);
        while count < 8 {
            let Some(byte) = all.get(at) else { return Err(all.len() - count) };
            at += 1;
            let left = all.len() - at;
            if *byte == b'=' && count >= 2 && left < 8 {
                if left + count < 7 {
                    return Err(all.len());
                }
                if let Some(wrong) = (0..7 - count).find(|k| left > *k && all[at + k] != b'=') {
                    return Err(at + wrong - 1);
                }
                if matches!(count, 3 | 6) {
                    return Err(at - 1);
                }
                is_last = true;
                break;
            }
            let digit = BASE32.iter().position(|digit| digit == byte).ok_or(at - 1)?;
            word = word << 5 | digit as u64;
            count += 1;
        }
        let bytes = (word << (5 * (8 - count))).to_be_bytes();
        out.extend_from_slice(&bytes[3..3 + count * 5 / 8]);
        if is_last {
            break;
        }
    }
    Ok(out)
}
