//! UUID and label from a superblock, as `libblkid` reads them: ext2 to ext4, XFS, Btrfs, FAT, swap
//! and LUKS.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Bytes from a device's start that contain any supported superblock. Btrfs is last, at 64 KiB.
const HEAD: usize = 0x1_0000 + 4096;

/// UUID and label of a filesystem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Superblock {
    /// UUID; for FAT, the volume serial number such as `1234-5678`.
    pub uuid: String,
    /// Label; empty without one.
    pub label: String,
}

/// Reads the superblock on a device. Returns `None` if the content is unknown or not readable.
pub fn read(device: &Path) -> Option<Superblock> {
    let file = File::open(device).ok()?;
    let mut head = vec![0; HEAD];
    let mut filled = 0;
    while filled < HEAD {
        match file.read_at(&mut head[filled..], filled as u64) {
            Ok(0) | Err(_) => break,
            Ok(count) => filled += count,
        }
    }
    parse(&head[..filled])
}

/// Parses a superblock in the first bytes of a device; `None` if unknown.
pub fn parse(head: &[u8]) -> Option<Superblock> {
    let at = |offset: usize, length: usize| head.get(offset..offset + length);
    let is = |offset: usize, magic: &[u8]| at(offset, magic.len()) == Some(magic);
    let named = |uuid: usize, label: usize, length: usize| {
        let uuid = dashed(at(uuid, 16)?);
        Some(Superblock { uuid, label: text(at(label, length)?) })
    };
    if is(1024 + 56, b"\x53\xef") {
        named(1024 + 104, 1024 + 120, 16)
    } else if is(0, b"XFSB") {
        named(32, 108, 12)
    } else if is(0x1_0040, b"_BHRfS_M") {
        named(0x1_0020, 0x1_012b, 256)
    } else if is(4086, b"SWAPSPACE2") {
        named(1036, 1052, 16)
    } else if is(0, b"LUKS\xba\xbe") {
        let label = if is(6, b"\0\x02") { text(at(24, 48)?) } else { String::new() };
        Some(Superblock { uuid: text(at(168, 40)?), label })
    } else if is(510, b"\x55\xaa") && (is(82, b"FAT32   ") || is(54, b"FAT1")) {
        let number = if is(82, b"FAT32   ") { 67 } else { 39 };
        let bytes = at(number, 4)?;
        let uuid = format!("{:02X}{:02X}-{:02X}{:02X}", bytes[3], bytes[2], bytes[1], bytes[0]);
        let label = text(at(number + 4, 11)?);
        let label = if label == "NO NAME" { String::new() } else { label };
        Some(Superblock { uuid, label })
    } else {
        None
    }
}

fn dashed(bytes: &[u8]) -> String {
    let mut uuid = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            uuid.push('-');
        }
        uuid += &format!("{byte:02x}");
    }
    uuid
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{HEAD, Superblock, parse};

    fn head(pieces: &[(usize, &[u8])]) -> Vec<u8> {
        let mut head = vec![0; HEAD];
        for (at, bytes) in pieces {
            head[*at..at + bytes.len()].copy_from_slice(bytes);
        }
        head
    }

    #[test]
    fn each_file_system_says_its_names() {
        let uuid: Vec<u8> = (1..17).collect();
        let long = "01020304-0506-0708-090a-0b0c0d0e0f10";
        let ext4 = head(&[(1080, b"\x53\xef"), (1128, &uuid), (1144, b"root")]);
        let xfs = head(&[(0, b"XFSB"), (32, &uuid), (108, b"data")]);
        let btrfs = head(&[(0x1_0040, b"_BHRfS_M"), (0x1_0020, &uuid), (0x1_012b, b"pool")]);
        let swap = head(&[(4086, b"SWAPSPACE2"), (1036, &uuid), (1052, b"swap")]);
        let luks = head(&[(0, b"LUKS\xba\xbe\0\x02"), (168, long.as_bytes()), (24, b"secret")]);
        for (head, label) in
            [(ext4, "root"), (xfs, "data"), (btrfs, "pool"), (swap, "swap"), (luks, "secret")]
        {
            let expected = Superblock { uuid: long.to_owned(), label: label.to_owned() };
            assert_eq!(parse(&head), Some(expected), "{label}");
        }
        let fat32 =
            [(510, &b"\x55\xaa"[..]), (82, b"FAT32   "), (67, b"\x78\x56\x34\x12EFI        ")];
        let fat16 =
            [(510, &b"\x55\xaa"[..]), (54, b"FAT16   "), (39, b"\x78\x56\x34\x12NO NAME    ")];
        for (pieces, label) in [(fat32, "EFI"), (fat16, "")] {
            let expected = Superblock { uuid: "1234-5678".to_owned(), label: label.to_owned() };
            assert_eq!(parse(&head(&pieces)), Some(expected));
        }
    }

    #[test]
    fn other_content_has_no_names() {
        for bytes in [&b""[..], b"XFSB", &[0; HEAD], &[0xff; HEAD]] {
            assert_eq!(parse(bytes), None);
        }
    }
}
