//! Formats of disk images, detected from the first bytes and never from the name.
//!
//! The agent that writes an image and the box that accepts an upload use the same detection.

/// Number of first bytes that are enough for [`Format::detect`].
pub const MAGIC: usize = 8;
/// Number of first bytes that are enough for [`Format::of_disk`].
pub const HEAD: usize = 36 << 10;
/// Offset of the signature of a boot sector, also of the protective MBR of a GPT (UEFI 2.10,
/// section 5.2).
const BOOT_SIGNATURE_AT: usize = 510;
const BOOT_SIGNATURE: [u8; 2] = [0x55, 0xaa];
/// Offset of the identifier in the first volume descriptor of ISO 9660 (ECMA-119, section 8.1.2).
const ISO_IDENTIFIER_AT: usize = 0x8001;
const ISO_IDENTIFIER: &[u8] = b"CD001";

/// Format of a disk image that the agent decodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Content of a disk as it is.
    Raw,
    /// Compressed with gzip (RFC 1952).
    Gzip,
    /// Compressed in the .xz format.
    Xz,
    /// Compressed with Zstandard (RFC 8878).
    Zstd,
    /// Compressed in the bzip2 format.
    Bzip2,
    /// Compressed as an LZ4 frame.
    Lz4,
    /// Format qcow2, which is not a stream: the data may be anywhere in the file.
    Qcow2,
}

impl Format {
    /// Returns the name of the format, such as `qcow2`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Gzip => "gzip",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
            Self::Bzip2 => "bzip2",
            Self::Lz4 => "lz4",
            Self::Qcow2 => "qcow2",
        }
    }

    /// Returns the extension of a file name by which stock agents recognize the compression.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Raw => "img",
            Self::Gzip => "gz",
            Self::Xz => "xz",
            Self::Zstd => "zst",
            Self::Bzip2 => "bz2",
            Self::Lz4 => "lz4",
            Self::Qcow2 => "qcow2",
        }
    }

    /// Detects the format from the first bytes of a stream.
    ///
    /// # Errors
    /// The name of a known, unsupported format. Unknown bytes are raw.
    pub fn detect(head: &[u8]) -> Result<Self, &'static str> {
        match head {
            [0x1f, 0x8b, ..] => Ok(Self::Gzip),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Ok(Self::Xz),
            // A zstd frame, or one of the sixteen skippable frames (RFC 8878 section 3.1).
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Ok(Self::Zstd),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Ok(Self::Bzip2),
            [0x04, 0x22, 0x4d, 0x18, ..] => Ok(Self::Lz4),
            [b'Q', b'F', b'I', 0xfb, ..] => Ok(Self::Qcow2),
            [b'K', b'D', b'M', b'V', ..] => Err("a vmdk image"),
            [b'v', b'h', b'd', b'x', b'f', b'i', b'l', b'e', ..] => Err("a vhdx image"),
            [b'c', b'o', b'n', b'e', b'c', b't', b'i', b'x', ..] => Err("a vhd image"),
            [b'<', b'<', b'<', b' ', ..] => Err("a vdi image"),
            [b'P', b'K', 3, 4, ..] => Err("a zip archive"),
            [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => Err("a 7z archive"),
            [b'0', b'7', b'0', b'7', b'0', b'1' | b'2' | b'7', ..] => Err("a cpio archive"),
            [b'!', b'<', b'a', b'r', b'c', b'h', b'>', ..] => Err("a Debian package or ar archive"),
            [0xed, 0xab, 0xee, 0xdb, ..] => Err("an RPM package"),
            [b'R', b'a', b'r', b'!', 0x1a, 7, ..] => Err("a RAR archive"),
            [b'M', b'S', b'W', b'I', b'M', 0, 0, 0, ..] => Err("a WIM image"),
            [0x3a, 0xff, 0x26, 0xed, ..] => Err("an Android sparse image"),
            [b'p', b'a', b'r', b't', b'c', b'l', b'o', b'n', ..] => Err("a partclone image"),
            [b'L', b'Z', b'I', b'P', 1, ..] => Err("a lzip stream"),
            [0x1f, 0x9d, ..] => Err("a compress (.Z) stream"),
            [0x89, b'L', b'Z', b'O', 0, ..] => Err("a lzop stream"),
            [b'<', ..] => Err("a web page or XML"),
            _ => Ok(Self::Raw),
        }
    }

    /// Detects the format of a file that should be the image of an installed system. `head` has the
    /// first [`HEAD`] bytes, or the whole of a shorter file.
    ///
    /// # Errors
    /// A description of a file that no machine can boot from: an unsupported format, an installer's
    /// ISO image, or a raw file without a partition table.
    pub fn of_disk(head: &[u8]) -> Result<Self, &'static str> {
        let has = |at: usize, what: &[u8]| head.get(at..).is_some_and(|it| it.starts_with(what));
        match Self::detect(head)? {
            Self::Raw if has(ISO_IDENTIFIER_AT, ISO_IDENTIFIER) => {
                Err("an ISO image, which starts an installer")
            }
            Self::Raw if !has(BOOT_SIGNATURE_AT, &BOOT_SIGNATURE) => {
                Err("no disk image: it has no partition table")
            }
            format => Ok(format),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BOOT_SIGNATURE, BOOT_SIGNATURE_AT, Format, HEAD, ISO_IDENTIFIER_AT};

    #[test]
    fn an_installer_and_other_files_are_no_disk() {
        let mut disk = vec![0; HEAD];
        assert_eq!(Format::of_disk(&disk), Err("no disk image: it has no partition table"));
        disk[BOOT_SIGNATURE_AT..][..2].copy_from_slice(&BOOT_SIGNATURE);
        assert_eq!(Format::of_disk(&disk), Ok(Format::Raw));
        // The ISO image of an installer is often bootable from a USB stick too.
        disk[ISO_IDENTIFIER_AT..][..5].copy_from_slice(b"CD001");
        assert_eq!(Format::of_disk(&disk), Err("an ISO image, which starts an installer"));
        assert_eq!(Format::of_disk(b"QFI\xfb"), Ok(Format::Qcow2));
        assert_eq!(Format::of_disk(b"PK\x03\x04"), Err("a zip archive"));
        assert_eq!(Format::of_disk(b""), Err("no disk image: it has no partition table"));
    }
}
