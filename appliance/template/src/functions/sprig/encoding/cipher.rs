//! Decryption with AES in CBC mode. Encryption (`encryptAES`) is refused, because its random bytes
//! make each result different.

use aes::Aes256;
use cbc::cipher::block_padding::NoPadding;
use cbc::cipher::{BlockModeDecrypt, KeyIvInit};

use super::base64_bytes;
use crate::function::Type::Text;
use crate::function::{Answer, Args, Function, exact};

/// Sprig functions that this file implements.
pub static FUNCTIONS: &[Function] = &[exact("decryptAES", &[Text, Text], decrypt)];

/// Length of the key in bytes. A longer password is truncated, a shorter one padded with zeros.
const KEY: usize = 32;
/// Length of a block and of the initialization vector, in bytes.
const BLOCK: usize = 16;

fn decrypt(args: &Args) -> Answer {
    let (password, text) = (args.text(0), args.text(1));
    if text.is_empty() {
        return args.made("");
    }
    args.heap.step(text.len() / BLOCK)?;
    let bytes =
        base64_bytes(text).map_err(|at| format!("illegal base64 data at input byte {at}"))?;
    let (iv, hidden) = bytes.split_first_chunk::<BLOCK>().ok_or("shorter than an AES block")?;
    let mut key = [0; KEY];
    let length = password.len().min(KEY);
    key[..length].copy_from_slice(&password.as_bytes()[..length]);
    let mut plain = hidden.to_vec();
    cbc::Decryptor::<Aes256>::new(&key.into(), &(*iv).into())
        .decrypt_padded::<NoPadding>(&mut plain)
        .map_err(|_| "not a whole number of AES blocks")?;
    let padding = usize::from(*plain.last().ok_or("shorter than an AES block")?);
    let length = plain.len().checked_sub(padding).ok_or("not encrypted with this password")?;
    plain.truncate(length);
    args.made(String::from_utf8(plain).map_err(|_| "the decrypted data is not UTF-8")?)
}
