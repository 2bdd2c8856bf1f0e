//! Jobs of the bench: the image's packing, and verification of its checksum.

/// Packing of the served image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    Raw,
    Zstd,
}

impl Packing {
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Zstd => "zstd",
        }
    }

    pub fn file(self) -> &'static str {
        match self {
            Self::Raw => "image.raw",
            Self::Zstd => "image.raw.zst",
        }
    }
}

/// One job of the bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    pub packing: Packing,
    /// True when the SHA-256 of the served image is verified.
    pub summed: bool,
}

impl Job {
    pub const ALL: [Self; 3] = [
        Self { packing: Packing::Zstd, summed: true },
        Self { packing: Packing::Raw, summed: false },
        Self { packing: Packing::Raw, summed: true },
    ];

    pub fn name(self) -> &'static str {
        match (self.packing, self.summed) {
            (Packing::Zstd, true) => "zstd+sum",
            (Packing::Zstd, false) => "zstd",
            (Packing::Raw, true) => "raw+sum",
            (Packing::Raw, false) => "raw",
        }
    }
}
