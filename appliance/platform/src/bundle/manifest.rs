//! Contents of a bundle's manifest. The bytes are decoded after the signature is verified, and
//! still checked, because a signer can make mistakes.

use std::fmt;

use super::{CHUNK_BYTES, Error, PART_MAX, STORED_MAX, VERSION_MAX, Verity};

/// Processor architecture of a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arch {
    /// 64-bit Intel and AMD processors.
    X86_64,
    /// 64-bit ARM processors (`AArch64`).
    Aarch64,
}

impl Arch {
    /// Architecture for which this program was compiled.
    pub const OWN: Self = if cfg!(target_arch = "aarch64") { Self::Aarch64 } else { Self::X86_64 };

    /// Returns the name used in file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Content of a part of a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Content {
    /// Kernel, stored on the boot volume.
    Kernel,
    /// Root file system, stored on the slot's partition: squashfs, superblock and hash tree.
    Root,
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kernel => "kernel",
            Self::Root => "root",
        })
    }
}

/// Stored chunk of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Stored size in bytes, as one zstd frame.
    pub stored: usize,
    /// SHA-256 of the stored bytes.
    pub sum: [u8; 32],
}

/// Part of a bundle: one file in chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Content of the part, kernel or root.
    pub content: Content,
    /// Unpacked size in bytes, at most [`PART_MAX`].
    pub size: u64,
    /// SHA-256 of the unpacked bytes.
    pub sum: [u8; 32],
    /// Chunks of the part in order.
    pub chunks: Vec<Chunk>,
}

impl Part {
    /// Returns the unpacked size of chunk `index` in bytes.
    pub fn chunk_size(&self, index: usize) -> usize {
        let before = (index as u64).saturating_mul(CHUNK_BYTES as u64);
        self.size.saturating_sub(before).min(CHUNK_BYTES as u64) as usize
    }
}

/// Signed description of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Version of the release, at most [`VERSION_MAX`] bytes.
    pub version: String,
    /// Processor architecture of the release.
    pub arch: Arch,
    /// Build time in seconds since 1970. A clock that shows an earlier time is wrong.
    pub built: u64,
    /// Parameters of dm-verity for the boot script of the slot.
    pub verity: Verity,
    /// Parts of the bundle: first the kernel, then the root.
    pub parts: Vec<Part>,
}

impl Manifest {
    /// Encodes the manifest to the bytes that the signature covers.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.push(self.version.len() as u8);
        out.extend_from_slice(self.version.as_bytes());
        out.push(match self.arch {
            Arch::X86_64 => 1,
            Arch::Aarch64 => 2,
        });
        out.extend_from_slice(&self.built.to_le_bytes());
        out.extend_from_slice(&self.verity.root_hash);
        out.extend_from_slice(&self.verity.salt);
        out.extend_from_slice(&self.verity.data_blocks.to_le_bytes());
        for part in &self.parts {
            out.extend_from_slice(&part.size.to_le_bytes());
            out.extend_from_slice(&part.sum);
            for chunk in &part.chunks {
                out.extend_from_slice(&(chunk.stored as u32).to_le_bytes());
                out.extend_from_slice(&chunk.sum);
            }
        }
        out
    }

    /// Decodes the result of [`Manifest::encode`].
    ///
    /// # Errors
    /// [`Error::Manifest`] with the offset of the invalid byte.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut fields = Fields { bytes, at: 0 };
        let length = usize::from(fields.byte()?);
        let version = fields.take(length)?;
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b".+-".contains(byte);
        if length == 0 || length > VERSION_MAX || !version.iter().all(plain) {
            return fields.wrong("the version is empty, too long or has invalid characters");
        }
        let version = String::from_utf8_lossy(version).into_owned();
        let arch = match fields.byte()? {
            1 => Arch::X86_64,
            2 => Arch::Aarch64,
            _ => return fields.wrong("unknown processor"),
        };
        let built = fields.long()?;
        let (root_hash, salt) = (fields.array()?, fields.array()?);
        let verity = Verity { root_hash, salt, data_blocks: fields.long()? };
        let parts = vec![fields.part(Content::Kernel)?, fields.part(Content::Root)?];
        if fields.at != bytes.len() {
            return fields.wrong("it has extra bytes after its end");
        }
        let root = parts.last().map_or(0, |part: &Part| part.size);
        if verity.data_blocks == 0 || verity.data_blocks.saturating_mul(4096) >= root {
            return fields.wrong("the root has no space for its hash tree");
        }
        Ok(Self { version, arch, built, verity, parts })
    }
}

/// Cursor in the bytes of a manifest.
struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    fn wrong<T>(&self, why: &'static str) -> Result<T, Error> {
        Err(Error::Manifest { at: self.at, why })
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let end = self.at.saturating_add(count);
        let Some(taken) = self.bytes.get(self.at..end) else {
            return self.wrong("it ends early");
        };
        self.at = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let at = self.at;
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| Error::Manifest { at, why: "it ends early" })
    }

    fn byte(&mut self) -> Result<u8, Error> {
        self.array().map(u8::from_le_bytes)
    }

    fn long(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_le_bytes)
    }

    fn part(&mut self, content: Content) -> Result<Part, Error> {
        let size = self.long()?;
        if size == 0 || size > PART_MAX {
            return self.wrong("a part is empty or too large");
        }
        let sum = self.array()?;
        // PART_MAX limits the count, and each chunk takes bytes that must exist.
        let count = size.div_ceil(CHUNK_BYTES as u64);
        let mut chunks = Vec::new();
        for _ in 0..count {
            let stored = u32::from_le_bytes(self.array()?) as usize;
            if stored == 0 || stored > STORED_MAX {
                return self.wrong("a chunk is empty or too large");
            }
            chunks.push(Chunk { stored, sum: self.array()? });
        }
        Ok(Part { content, size, sum, chunks })
    }
}
