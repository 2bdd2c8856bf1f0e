//! A tar archive with names, links and whiteouts that lead anywhere. Outside the folder of the
//! unpacked files, nothing may be created, changed, linked or removed.

#![no_main]

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use fuzz::Input;
use libfuzzer_sys::fuzz_target;
use unpack::{unpack, unpack_layer};

const KINDS: [u8; 8] = *b"05521L0g";
/// Parts of the names in the archive.
const PARTS: [&str; 16] = [
    "a",
    "b",
    "..",
    ".",
    "",
    "secret",
    "out",
    "/",
    "inside",
    "../out",
    "../../out",
    "etc",
    ".wh.a",
    ".wh..wh..opq",
    ".wh.secret",
    ".wh...",
];

fn name(input: &mut Input<'_>) -> String {
    let count = usize::from(input.byte() % 5);
    let parts = (0..count).map(|_| PARTS[usize::from(input.byte()) % PARTS.len()]);
    parts.collect::<Vec<_>>().join("/")
}

/// Appends one header with a correct checksum, and the contents of the entry.
fn entry(input: &mut Input<'_>, out: &mut Vec<u8>) {
    let kind = KINDS[usize::from(input.byte()) % KINDS.len()];
    let (name, target) = (name(input), name(input));
    let contents = vec![7; usize::from(input.byte() % 32)];
    let mut header = [0_u8; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..107].copy_from_slice(b"0000755");
    header[108..115].copy_from_slice(b"0000000");
    header[116..123].copy_from_slice(b"0000000");
    header[124..135].copy_from_slice(format!("{:011o}", contents.len()).as_bytes());
    header[136..147].copy_from_slice(b"00000000000");
    header[148..156].copy_from_slice(b"        ");
    header[156] = kind;
    header[157..157 + target.len()].copy_from_slice(target.as_bytes());
    header[257..265].copy_from_slice(b"ustar  \0");
    if input.byte() % 16 == 0 {
        // One header in 16 has a random byte; its checksum is correct anyway.
        header[usize::from(input.byte())] ^= input.byte();
    }
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    out.extend_from_slice(&header);
    out.extend_from_slice(&contents);
    out.resize(out.len().next_multiple_of(512), 0);
}

fn links(path: &Path) -> u64 {
    path.metadata().map_or(0, |metadata| metadata.nlink())
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let mut archive = Vec::new();
    if input.byte() % 8 == 0 {
        archive.extend_from_slice(input.0);
    } else {
        while !input.0.is_empty() && archive.len() < 16 << 10 {
            entry(&mut input, &mut archive);
        }
    }
    archive.resize(archive.len() + 1024, 0);
    let place = Path::new("/dev/shm");
    let folder = if place.is_dir() { tempfile::tempdir_in(place) } else { tempfile::tempdir() };
    let folder = folder.expect("a folder for the test");
    let (out, inside) = (folder.path().join("out"), folder.path().join("inside"));
    std::fs::create_dir_all(&out).expect("a folder beside");
    std::fs::create_dir_all(&inside).expect("a folder to unpack in");
    let secret = out.join("secret");
    std::fs::write(&secret, "secret").expect("a file beside");
    let root = File::open(&inside).expect("the folder to unpack in");
    let _ = unpack(&mut archive.as_slice(), &root);
    // Then the same archive as a layer of a container image: whiteouts must not remove files
    // outside.
    let _ = unpack_layer(&mut archive.as_slice(), &root);
    assert_eq!(std::fs::read_to_string(&secret).expect("the file beside"), "secret");
    assert_eq!(links(&secret), 1, "a link to a file beside was made");
    let beside = std::fs::read_dir(&out).expect("the folder beside").count();
    let above = std::fs::read_dir(folder.path()).expect("the folder above").count();
    assert_eq!((beside, above), (1, 2), "something was made outside");
});
