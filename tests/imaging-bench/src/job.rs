//! What there is to do: which image, and whether its sum is to be verified.

/// How the image is packed.
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

/// One job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    pub packing: Packing,
    /// Whether SHA-256 of the image as served is verified.
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
