//! Update bundles: one signed file that holds a kernel and a root, read as it streams in.
//!
//! [`Reader`] takes bytes and returns [`Event`]s, and opens no file and no connection. The reader
//! verifies the signature over the manifest before it uses any other byte of the bundle. Every
//! chunk is compared with its SHA-256 in the manifest before it is unpacked. Unsigned bytes
//! therefore reach neither the decompressor nor the disk. The `bundle` module of `image` writes the
//! format and describes it.

mod boot;
mod manifest;
mod reader;

pub use boot::{Slot, Verity};
pub use manifest::{Arch, Chunk, Content, Manifest, Part};
pub use reader::{Event, Reader};
pub use release::{KEY_ID_BYTES, PublicKey};
use stdx::Hint;

/// Magic bytes at the start of every bundle.
pub const MAGIC: [u8; 8] = *b"TINBOXUP";
/// Only supported format version of a bundle.
pub const FORMAT: u32 = 1;
/// Bytes before the manifest: magic, format, the manifest's length, key and signature.
pub const HEADER_BYTES: usize = 88;
/// Leading bytes of the header that the signature covers together with the manifest.
pub const HEADER_SIGNED_BYTES: usize = 24;
/// Signed prefix before the header. A signature made for another purpose is invalid for a bundle.
pub const CONTEXT: &[u8] = b"tinbox update bundle 1\n";

/// Maximum size of a manifest in bytes, enough for 7,000 chunks.
pub const MANIFEST_MAX: usize = 256 << 10;
/// Unpacked bytes of a chunk, which is compressed as one unit. Only a part's last chunk is shorter.
pub const CHUNK_BYTES: usize = 1 << 20;
/// Maximum stored size of a chunk in bytes: zstd's worst case for [`CHUNK_BYTES`] of input.
pub const STORED_MAX: usize = CHUNK_BYTES + (CHUNK_BYTES >> 7);
/// Maximum unpacked size of a part in bytes.
pub const PART_MAX: u64 = 1 << 30;
/// Maximum length of a version in bytes.
pub const VERSION_MAX: usize = 64;

/// Reason why the reader rejects a bundle.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The file does not begin with [`MAGIC`].
    #[error("the file is not a Tinbox update bundle")]
    NotABundle,
    /// The bundle has a newer format than this release can read.
    #[error("the bundle has format {0}, but this box reads only format {FORMAT}")]
    Format(u32),
    /// The signing key is not in the box's list of trusted keys.
    #[error("the bundle is signed with key {id}, which this box does not trust")]
    UnknownKey {
        /// Key ID in hexadecimal, as minisign prints it.
        id: String,
    },
    /// The signature does not match the header and the manifest.
    #[error("the bundle's signature is not valid: the bundle was changed or damaged after signing")]
    Signature,
    /// The manifest is malformed, although its signature is valid.
    #[error("the bundle's manifest is wrong at byte {at}: {why}")]
    Manifest {
        /// Byte offset in the manifest.
        at: usize,
        /// Description of the error at this offset.
        why: &'static str,
    },
    /// The SHA-256 of a chunk differs from its value in the manifest.
    #[error("chunk {chunk} of the {content} is damaged")]
    Damaged {
        /// Part that contains the chunk.
        content: Content,
        /// Index of the chunk, counted from 0.
        chunk: usize,
    },
    /// A chunk matches its SHA-256 but does not unpack to the expected size, which is an error of
    /// the signer.
    #[error("chunk {chunk} of the {content} does not unpack to {expected} bytes")]
    Unpack {
        /// Part that contains the chunk.
        content: Content,
        /// Index of the chunk, counted from 0.
        chunk: usize,
        /// Unpacked size in bytes, computed from the manifest.
        expected: usize,
    },
    /// All chunks are valid but the SHA-256 of the whole part differs, which is an error of the
    /// signer.
    #[error("the checksum of the {0} does not match the manifest")]
    Sum(Content),
    /// The stream ended before the bundle was complete.
    #[error("the bundle is truncated: at least {missing} bytes are missing")]
    Truncated {
        /// Bytes missing from the current header, manifest or chunk.
        missing: usize,
    },
    /// The stream continues after the last chunk.
    #[error("the bundle has extra bytes after its end")]
    Trailing,
}

impl Hint for Error {
    fn hint(&self) -> Option<&str> {
        match self {
            Self::Format(_) => Some("update to an intermediate release first"),
            Self::UnknownKey { .. } => {
                Some("fetch the bundle from the publisher of the box's image")
            }
            Self::Signature => Some("fetch the bundle again and compare it with SHA256SUMS"),
            Self::Damaged { .. } => Some("nothing was installed; fetch the bundle again"),
            Self::Truncated { .. } => Some("fetch the bundle again"),
            Self::NotABundle
            | Self::Manifest { .. }
            | Self::Unpack { .. }
            | Self::Sum(_)
            | Self::Trailing => None,
        }
    }
}

#[cfg(test)]
mod tests;
