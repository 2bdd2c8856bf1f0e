//! What a bundle says of itself, as values: read from bytes that are already believed to be the
//! signer's, and still checked, because a signer makes mistakes too.

use std::fmt;

use super::{CHUNK_BYTES, Error, PART_MAX, STORED_MAX, VERSION_MAX, Verity};

/// A kind of processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arch {
    /// 64-bit Intel and AMD.
    X86_64,
    /// 64-bit ARM.
    Aarch64,
}

impl Arch {
    /// The kind of this program's own.
    pub const OWN: Self = if cfg!(target_arch = "aarch64") { Self::Aarch64 } else { Self::X86_64 };

    /// As it is part of file names.
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

/// What a part of a bundle is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Content {
    /// For the boot volume.
    Kernel,
    /// For the slot's partition: squashfs, superblock and hash tree.
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

/// A piece of a part, as it lies in the bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Its bytes there: one zstd frame.
    pub stored: usize,
    /// Their SHA-256.
    pub sum: [u8; 32],
}

/// One of the files in a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What it is.
    pub content: Content,
    /// Its bytes, unpacked.
    pub size: u64,
    /// Their SHA-256.
    pub sum: [u8; 32],
    /// The pieces, in order.
    pub chunks: Vec<Chunk>,
}

impl Part {
    /// Bytes of chunk `index`, unpacked.
    pub fn chunk_size(&self, index: usize) -> usize {
        let before = (index as u64).saturating_mul(CHUNK_BYTES as u64);
        self.size.saturating_sub(before).min(CHUNK_BYTES as u64) as usize
    }
}

/// What a bundle holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The release.
    pub version: String,
    /// The processor it is for.
    pub arch: Arch,
    /// Seconds since 1970 at which it was built: no clock that is right is before it.
    pub built: u64,
    /// For the slot's boot script.
    pub verity: Verity,
    /// Kernel, then root.
    pub parts: Vec<Part>,
}

impl Manifest {
    /// Its bytes, as they are signed.
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

    /// Reads what [`Manifest::encode`] wrote.
    ///
    /// # Errors
    /// [`Error::Manifest`] names the byte.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut fields = Fields { bytes, at: 0 };
        let length = usize::from(fields.byte()?);
        let version = fields.take(length)?;
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b".+-".contains(byte);
        if length == 0 || length > VERSION_MAX || !version.iter().all(plain) {
            return fields.wrong("the version is empty, too long or has odd characters");
        }
        let version = String::from_utf8_lossy(version).into_owned();
        let arch = match fields.byte()? {
            1 => Arch::X86_64,
            2 => Arch::Aarch64,
            _ => return fields.wrong("no such processor"),
        };
        let built = fields.long()?;
        let (root_hash, salt) = (fields.array()?, fields.array()?);
        let verity = Verity { root_hash, salt, data_blocks: fields.long()? };
        let parts = vec![fields.part(Content::Kernel)?, fields.part(Content::Root)?];
        if fields.at != bytes.len() {
            return fields.wrong("something follows its end");
        }
        let root = parts.last().map_or(0, |part: &Part| part.size);
        if verity.data_blocks == 0 || verity.data_blocks.saturating_mul(4096) >= root {
            return fields.wrong("the root has no room for its hash tree");
        }
        Ok(Self { version, arch, built, verity, parts })
    }
}

/// A place in a manifest.
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
        // Bounded by PART_MAX, and each takes bytes that must be there.
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
