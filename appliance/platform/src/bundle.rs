//! Update bundles: one signed file that holds a kernel and a root, read as it streams in.
//!
//! [`Reader`] takes bytes and gives [`Event`]s; it opens no file and no connection. Nothing in a
//! bundle is believed before the signature over its manifest is, and every chunk is held against
//! its sum in the manifest before it is unpacked: bytes of a stranger reach neither the
//! decompressor nor the disk. The format is drawn in `image`'s `bundle` module, which writes it.

mod boot;
mod manifest;
mod reader;

pub use boot::{Slot, Verity};
pub use manifest::{Arch, Chunk, Content, Manifest, Part};
pub use reader::{Event, Reader};
pub use release::{KEY_ID_BYTES, PublicKey};

/// What every bundle begins with.
pub const MAGIC: [u8; 8] = *b"TINBOXUP";
/// The one format there is.
pub const FORMAT: u32 = 1;
/// Bytes before the manifest: magic, format, the manifest's length, key and signature.
pub const HEADER_BYTES: usize = 88;
/// Of these, the ones that are signed together with the manifest.
pub const HEADER_SIGNED_BYTES: usize = 24;
/// Signed before the header, so that a signature for another purpose is none for this one.
pub const CONTEXT: &[u8] = b"tinbox update bundle 1\n";

/// Most bytes of a manifest: enough for 7,000 chunks.
pub const MANIFEST_MAX: usize = 256 << 10;
/// Bytes of a part that are compressed together; only a part's last chunk is shorter.
pub const CHUNK_BYTES: usize = 1 << 20;
/// Most bytes that a chunk takes in the bundle: zstd's worst case for [`CHUNK_BYTES`].
pub const STORED_MAX: usize = CHUNK_BYTES + (CHUNK_BYTES >> 7);
/// Most bytes of a part, unpacked.
pub const PART_MAX: u64 = 1 << 30;
/// Longest version, in bytes.
pub const VERSION_MAX: usize = 64;

/// Why a bundle is not taken.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The file is something else.
    #[error("this is no update bundle of Tinbox")]
    NotABundle,
    /// Made for a later box.
    #[error(
        "the bundle has format {0}, and this box knows only format {FORMAT}\n\
         hint: update to a release in between first"
    )]
    Format(u32),
    /// Nobody whose key the box has signed it.
    #[error(
        "the bundle is signed with key {id}, which this box does not trust\n\
         hint: take the bundle from the place where the box's image came from"
    )]
    UnknownKey {
        /// As minisign prints it.
        id: String,
    },
    /// The signature is not over these bytes.
    #[error(
        "the bundle's signature is wrong: it was changed or damaged on its way\n\
         hint: fetch it again and compare it with SHA256SUMS"
    )]
    Signature,
    /// The signer's program and this one disagree.
    #[error("the bundle's manifest is wrong at byte {at}: {why}")]
    Manifest {
        /// The place in the manifest.
        at: usize,
        /// What is wrong there.
        why: &'static str,
    },
    /// A chunk has not the sum that the manifest says.
    #[error(
        "chunk {chunk} of the {content} is damaged\n\
         hint: nothing of it was used; fetch the bundle again"
    )]
    Damaged {
        /// The part.
        content: Content,
        /// Counted from 0.
        chunk: usize,
    },
    /// A chunk with the right sum does not unpack to its size: the signer's mistake.
    #[error("chunk {chunk} of the {content} does not unpack to {expected} bytes")]
    Unpack {
        /// The part.
        content: Content,
        /// Counted from 0.
        chunk: usize,
        /// What the manifest says.
        expected: usize,
    },
    /// All chunks are right and the whole is not: the signer's mistake.
    #[error("the {0} has not the sum that the manifest says")]
    Sum(Content),
    /// The stream ended early.
    #[error("the bundle ends early: {missing} more bytes were due at least\nhint: fetch it again")]
    Truncated {
        /// Of the piece being read.
        missing: usize,
    },
    /// The stream goes on after the last chunk.
    #[error("something follows the bundle's end")]
    Trailing,
}

#[cfg(test)]
mod tests;
