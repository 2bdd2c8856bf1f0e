//! Writes update bundles; `platform::bundle` reads them.
//!
//! A bundle is one file that can be read from beginning to end without seeking. All integers are
//! little-endian; no field is aligned.
//!
//! ```text
//! bytes  header
//!     8  "TINBOXUP"
//!     4  format, 1
//!     4  M, the manifest's length (at most 256 KiB)
//!     8  number of the key that signed, as minisign writes it
//!    64  Ed25519 signature of: "tinbox update bundle 1\n", the 24 bytes above, the manifest
//!
//!        manifest, M bytes
//!     1  V, the version's length (1 … 64)
//!     V  version: ASCII letters, digits, '.', '+', '-'
//!     1  processor: 1 x86_64, 2 aarch64
//!     8  seconds since 1970 of the build
//!    32  root hash of the root's dm-verity tree
//!    32  its salt
//!     8  its data blocks of 4096 bytes
//!        then twice, for the kernel and for the root (squashfs, superblock, hash tree):
//!     8  S, bytes of the part, unpacked (1 … 1 GiB)
//!    32  SHA-256 of them
//!        then for each started MiB of S, in order, a chunk:
//!     4  bytes of the chunk in this file (1 … 1 MiB + 8 KiB)
//!    32  SHA-256 of these bytes
//!
//!        the chunks of the kernel, then those of the root, one after the other: each one zstd
//!        frame that unpacks to 1 MiB, or to the rest of S for a part's last chunk
//! ```
//!
//! The signature comes first and covers the checksums of all chunks. So a reader never trusts,
//! decompresses or writes data that the signer did not write.

use platform::bundle::{
    CHUNK_BYTES, CONTEXT, Chunk, Content, FORMAT, MAGIC, Manifest, Part, Verity,
};
use release::SecretKey;
use sha2::{Digest as _, Sha256};

use crate::{Arch, Error};

/// Compression level; the parts are compressed already, so a higher one gains nothing.
const ZSTD_LEVEL: i32 = 9;

/// Contents of an update bundle.
#[derive(Debug)]
pub struct Bundle<'a> {
    /// Version of the release.
    pub version: &'a str,
    /// Processor that the programs are built for.
    pub arch: Arch,
    /// Time of the build, in seconds since 1970.
    pub built: u64,
    /// Kernel for the slot.
    pub kernel: &'a [u8],
    /// Root file system with its hash tree.
    pub root: &'a [u8],
    /// Parameters of dm-verity for the root.
    pub verity: Verity,
}

/// Returns the bytes of a bundle, signed with `key`.
///
/// # Errors
/// [`Error::Compress`].
pub fn write(bundle: &Bundle<'_>, key: &SecretKey) -> Result<Vec<u8>, Error> {
    let mut stored = Vec::new();
    let parts = vec![
        part(Content::Kernel, bundle.kernel, &mut stored)?,
        part(Content::Root, bundle.root, &mut stored)?,
    ];
    let manifest = Manifest {
        version: bundle.version.to_owned(),
        arch: bundle.arch,
        built: bundle.built,
        verity: bundle.verity.clone(),
        parts,
    };
    let manifest = manifest.encode();
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&FORMAT.to_le_bytes());
    out.extend_from_slice(&(manifest.len() as u32).to_le_bytes());
    out.extend_from_slice(&key.public().id);
    let signature = key.sign(&[CONTEXT, &out, &manifest].concat());
    out.extend_from_slice(&signature);
    out.extend_from_slice(&manifest);
    out.extend_from_slice(&stored);
    Ok(out)
}

fn part(content: Content, bytes: &[u8], stored: &mut Vec<u8>) -> Result<Part, Error> {
    let mut chunks = Vec::new();
    for chunk in bytes.chunks(CHUNK_BYTES) {
        let frame =
            zstd::bulk::compress(chunk, ZSTD_LEVEL).map_err(|source| Error::Compress { source })?;
        chunks.push(Chunk { stored: frame.len(), sum: Sha256::digest(&frame).into() });
        stored.extend_from_slice(&frame);
    }
    Ok(Part { content, size: bytes.len() as u64, sum: Sha256::digest(bytes).into(), chunks })
}

#[cfg(test)]
mod tests;
