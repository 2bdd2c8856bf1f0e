//! TPM of a machine, and the certificate of the endorsement key, which the manufacturer stores in
//! the TPM. The certificate identifies the board even after a replacement of other parts (TCG EK
//! Credential Profile for TPM 2.0, section 2.2.1.4).
//!
//! Commands (TPM 2.0 library specification, part 3): TPM2_NV_ReadPublic (31.6) and TPM2_NV_Read
//! (31.13). Both change nothing in the TPM and read no secret.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use agent_rpc::Tpm;
use sha2::{Digest as _, Sha256};

use super::read;

/// NV indices of the certificates for an RSA 2048, an ECC P-256, and an ECC P-384 key.
const CERTIFICATES: [u32; 3] = [0x01c0_0002, 0x01c0_000a, 0x01c0_0016];
/// Maximum length of a certificate in bytes; a longer certificate is ignored.
const CERTIFICATE_MAX: u16 = 8 << 10;
/// Bytes of one TPM2_NV_Read. All TPMs support 512 bytes (minimum of TPM_PT_NV_BUFFER_MAX).
const CHUNK: u16 = 512;
/// Maximum length of a response, in bytes.
const ANSWER_MAX: usize = 4 << 10;
/// Length of a command or response header in bytes: tag, size, code.
const HEADER: usize = 10;

const NO_SESSIONS: u16 = 0x8001;
const SESSIONS: u16 = 0x8002;
const NV_READ: u32 = 0x0000_014e;
const NV_READ_PUBLIC: u32 = 0x0000_0169;
/// Authorization with an empty password: TPM_RS_PW, no nonce, no attributes, no password.
const NO_PASSWORD: [u8; 9] = [0x40, 0, 0, 0x09, 0, 0, 0, 0, 0];

/// Returns the first TPM of the machine whose `/sys` and `/dev` are below `root`; `None` without a
/// TPM.
pub fn tpm(root: &Path) -> Option<Tpm> {
    let version = match read(&root.join("sys/class/tpm/tpm0/tpm_version_major"))?.as_str() {
        "1" => "1.2",
        "2" => "2.0",
        _ => "",
    };
    let endorsement = match version {
        "2.0" => certificate_of(&root.join("dev/tpmrm0")),
        _ => None,
    };
    let endorsement = endorsement.map(|bytes| stdx::hex(&Sha256::digest(bytes)));
    Some(Tpm { version: version.to_owned(), endorsement: endorsement.unwrap_or_default() })
}

fn certificate_of(node: &Path) -> Option<Vec<u8>> {
    let opened = File::options().read(true).write(true).open(node);
    let found = opened.and_then(|mut tpm| certificate(&mut tpm));
    found.unwrap_or_else(|error| {
        tracing::debug!(%error, node = %node.display(), "the TPM was not read");
        None
    })
}

/// Reads the certificate of a TPM's endorsement key, as DER. Returns `None` if the TPM has no
/// certificate.
///
/// # Errors
/// I/O with the TPM failed, or a response violates the specification.
pub fn certificate<T: Read + Write>(tpm: &mut T) -> io::Result<Option<Vec<u8>>> {
    for index in CERTIFICATES {
        let Some(size) = size_of(tpm, index)? else { continue };
        let mut bytes = Vec::with_capacity(usize::from(size));
        while bytes.len() < usize::from(size) {
            let at = u16::try_from(bytes.len()).unwrap_or(size);
            match part_of(tpm, index, at, CHUNK.min(size - at))? {
                Some(part) if !part.is_empty() => bytes.extend(part),
                _ => break,
            }
        }
        if let Some(length) = der_length(&bytes) {
            bytes.truncate(length);
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

/// Returns the length in bytes of the data at an NV index; `None` without data, or above
/// [`CERTIFICATE_MAX`].
fn size_of<T: Read + Write>(tpm: &mut T, index: u32) -> io::Result<Option<u16>> {
    let Some(answer) = ask(tpm, NO_SESSIONS, NV_READ_PUBLIC, &index.to_be_bytes())? else {
        return Ok(None);
    };
    // TPM2B_NV_PUBLIC: its size, index, algorithm, attributes, a policy of variable length, the
    // size.
    let policy = usize::from(u16_at(&answer, 12)?);
    let size = u16_at(&answer, 14 + policy)?;
    Ok(Some(size).filter(|size| (1..=CERTIFICATE_MAX).contains(size)))
}

fn part_of<T: Read + Write>(
    tpm: &mut T,
    index: u32,
    at: u16,
    count: u16,
) -> io::Result<Option<Vec<u8>>> {
    let mut parameters = [index.to_be_bytes(), index.to_be_bytes()].concat();
    parameters.extend(u32::try_from(NO_PASSWORD.len()).unwrap_or(0).to_be_bytes());
    parameters.extend(NO_PASSWORD);
    parameters.extend(count.to_be_bytes());
    parameters.extend(at.to_be_bytes());
    let Some(answer) = ask(tpm, SESSIONS, NV_READ, &parameters)? else { return Ok(None) };
    // The size of the parameters, then TPM2B_MAX_NV_BUFFER.
    let length = usize::from(u16_at(&answer, 4)?).min(usize::from(count));
    answer.get(6..6 + length).map(|part| Some(part.to_vec())).ok_or_else(short)
}

/// Sends a command. Returns the response without its header; `None` for a response code other than
/// success.
fn ask<T: Read + Write>(
    tpm: &mut T,
    tag: u16,
    command: u32,
    parameters: &[u8],
) -> io::Result<Option<Vec<u8>>> {
    let size = u32::try_from(HEADER + parameters.len()).unwrap_or(u32::MAX);
    let mut message = tag.to_be_bytes().to_vec();
    message.extend(size.to_be_bytes());
    message.extend(command.to_be_bytes());
    message.extend(parameters);
    // The device takes a command in one write and returns a response in one read.
    tpm.write_all(&message)?;
    let mut answer = vec![0; ANSWER_MAX];
    let mut count = 0;
    loop {
        count += match tpm.read(&mut answer[count..])? {
            0 => return Err(short()),
            more => more,
        };
        let size = if count >= HEADER { u32_at(&answer, 2)? } else { continue };
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if !(HEADER..=ANSWER_MAX).contains(&size) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a response without a size"));
        }
        if count >= size {
            let is_done = u32_at(&answer, 6)? == 0;
            return Ok(is_done.then(|| answer[HEADER..size].to_vec()));
        }
    }
}

/// Returns the length of the DER SEQUENCE at the start of `bytes`. An NV index may be larger than
/// its certificate.
fn der_length(bytes: &[u8]) -> Option<usize> {
    let [0x30, 0x82, high, low, ..] = bytes else { return None };
    let length = 4 + usize::from(u16::from_be_bytes([*high, *low]));
    (length <= bytes.len()).then_some(length)
}

fn u16_at(bytes: &[u8], at: usize) -> io::Result<u16> {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.map(|chunk| u16::from_be_bytes(*chunk)).ok_or_else(short)
}

fn u32_at(bytes: &[u8], at: usize) -> io::Result<u32> {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.map(|chunk| u32::from_be_bytes(*chunk)).ok_or_else(short)
}

fn short() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "a truncated response")
}

#[cfg(test)]
mod tests;
