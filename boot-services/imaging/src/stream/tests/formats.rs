//! Tests of complete and damaged images of each format, by the original programs, and of checksums.

use super::server::Fault;
use super::{Command, zstd};
use super::{bzip2, checksum, gzip, image, lz4, nothing_boots, packed, run, run_with};
use super::{sentence, sha256, xz};
use crate::disks::disk::Disk;
use crate::stream::piece::PIECE;
use crate::stream::write::readback::{Sums, compare};
use crate::stream::write::target::BUFFER;
use crate::stream::{Accept, Algorithm, Proof, write_image};

type Packer = fn(&[u8]) -> Vec<u8>;

const PACKERS: [(&str, Packer); 5] =
    [("zstd", zstd), ("gzip", gzip), ("xz", xz), ("bzip2", bzip2), ("lz4", lz4)];

/// Returns an image of noise, zeros and noise, in whole sectors as qcow2 requires.
fn small() -> Vec<u8> {
    let image = image();
    [&image[..1 << 20], &vec![0; 1 << 20], &image[..500 * 512]].concat()
}

#[tokio::test]
async fn truncated_and_corrupted_streams_are_errors() {
    let image = small();
    for (format, pack) in PACKERS {
        let body = pack(&image);
        // Cuts: the end, most of the end, and all except the beginning of a block.
        for left in [body.len() - 9, body.len() - 4, body.len() / 2] {
            let cut = run(&body[..left], &[], None).await;
            let text = sentence(&cut);
            let begins = format!("cannot decode the {format} image http://127.0.0.1:");
            assert!(text.starts_with(&begins), "{format} cut to {left}: {text}");
        }
        let mut body = body;
        let middle = body.len() / 2;
        body[middle] ^= 0x55;
        // The zstd program states a checksum only when it makes the frame itself.
        if format != "zstd" {
            let corrupt = run(&body, &[], None).await;
            let text = sentence(&corrupt);
            assert!(text.starts_with(&format!("cannot decode the {format} image")), "{text}");
        }
    }
}

#[tokio::test]
async fn an_lz4_cut_between_two_blocks_is_no_end() {
    // Blocks of 64 KiB that do not depend on each other (-BI), so that the place of the cut is easy
    // to find.
    let image = vec![7; 300_000];
    let body = packed("lz4", &["-c", "-B4", "-BI"], &image);
    let mut at = 7;
    for _ in 0..2 {
        let length = u32::from_le_bytes(body[at..at + 4].try_into().unwrap()) & 0x7fff_ffff;
        at += 4 + length as usize;
        let cut = run(&body[..at], &[], None).await;
        assert!(sentence(&cut).starts_with("cannot decode the lz4 image"), "{}", sentence(&cut));
    }
    assert!(run(&body, &[], None).await.disk == image);
}

/// Padding of zeros after and between members, also across pieces, must not change the image.
#[tokio::test]
async fn zeros_behind_and_between_members_are_padding() {
    let image = small();
    let (first, second) = image.split_at(image.len() / 2);
    for (format, pack) in PACKERS {
        for padding in [0, 4, 512, 2048, 3 * PIECE] {
            let zeros = vec![0; padding];
            let body = [&pack(first)[..], &zeros, &pack(second), &zeros].concat();
            let run = run(&body, &[], None).await;
            let summary = run.result.unwrap_or_else(|error| panic!("{format}: {error:?}"));
            assert!(run.disk == image, "{format} with {padding} zeros");
            assert_eq!(summary.fetched, body.len() as u64, "{format}");
        }
    }
}

#[tokio::test]
async fn other_bytes_behind_a_member_are_refused_with_words() {
    let image = small();
    for (format, pack) in PACKERS {
        for other in [&b"signed by the builder"[..], b"P", b"\0\0\0\0PADDING!PADDING!", b"<html>"] {
            let run = run(&[&pack(&image)[..], other].concat(), &[], None).await;
            let text = stdx::chain(run.result.as_ref().unwrap_err());
            let words = format!("the bytes after its {format} data are neither");
            assert!(text.contains(&words), "{format}: {text}");
            assert!(nothing_boots(&run.disk), "{format}");
        }
    }
}

#[tokio::test]
async fn what_is_no_disk_image_is_refused_by_name_and_touches_nothing() {
    let within = gzip(b"QFI\xfb\0\0\0\x03.................");
    for (body, words) in [
        (&b"<html><body>It works!</body></html>"[..], "is a web page"),
        (b"KDMV............................", "is a vmdk image"),
        (b"070701..........................", "is a cpio archive"),
        (b"!<arch>\ndebian-binary   ........", "is a Debian package or ar archive"),
        (&gzip(b"\xed\xab\xee\xdb........"), "is an RPM package within gzip"),
        (&within, "is qcow2 within gzip"),
        (&zstd(&xz(b"abc")), "is xz within zstd"),
        (b"", "cannot decode the empty image"),
    ] {
        let run = run(body, &[], None).await;
        assert!(sentence(&run).contains(words), "{}", sentence(&run));
        assert!(run.disk.iter().all(|byte| *byte == 0xee) || run.disk.is_empty());
    }
}

#[tokio::test]
async fn every_kind_of_sum_is_verified() {
    let body = zstd(&image());
    for (algorithm, program) in [
        (Algorithm::Md5, "md5sum"),
        (Algorithm::Sha256, "sha256sum"),
        (Algorithm::Sha512, "sha512sum"),
    ] {
        let sums = String::from_utf8(packed(program, &[], &body)).unwrap();
        let hex = sums.split(' ').next().unwrap().to_owned();
        let proof = |hex: &str| checksum(algorithm, hex).map(Proof::Sum);
        let right = run_with(&body, &[], |image| image.proof = proof(&hex)).await;
        assert_eq!(right.result.unwrap().verified, checksum(algorithm, &hex));
        let other = format!("{}{}", &hex[2..], &hex[..2]);
        let wrong = run_with(&body, &[], |image| image.proof = proof(&other)).await;
        let begins = format!("{} of the image is {hex}, expected {other}", algorithm.name());
        assert!(sentence(&wrong).starts_with(&begins), "{}", sentence(&wrong));
        assert!(nothing_boots(&wrong.disk));
    }
}

#[tokio::test]
async fn sums_are_looked_up() {
    let body = zstd(&image());
    let server = super::Server::start(body.clone(), &[]).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    let mut image = super::to(&path, &server);
    let sum = stdx::hex(&sha256(&body));
    let sums = server.sums(&format!("{}  other\n{sum}  disk\n", "0".repeat(64)));
    image.proof = Some(Proof::Sums(sums.parse().unwrap()));
    let summary = write_image(&image, &super::Arc::default()).await.unwrap();
    assert_eq!(summary.verified, checksum(Algorithm::Sha256, &sum));
    server.sums(&format!("{sum}  another\n"));
    let error = write_image(&image, &super::Arc::default()).await.unwrap_err();
    assert_eq!(error.to_string(), format!("{sums} has no md5, sha256 or sha512 sum for \"disk\""));
    server.sums(&format!("{sum}  a/disk\n{}  b/disk\n", "0".repeat(64)));
    let error = write_image(&image, &super::Arc::default()).await.unwrap_err().to_string();
    let words = "different checksums for \"disk\": the lines of \"a/disk\" and \"b/disk\"";
    assert!(error.contains(words), "{error}");
}

#[tokio::test]
async fn what_was_written_is_read_back() {
    let body = zstd(&image());
    let written = run_with(&body, &[], |image| image.read_back = true).await;
    assert!(written.result.is_ok() && written.disk == image());
}

#[test]
fn a_disk_that_forgets_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    let disk = Disk::open(&path, Accept::Files).unwrap();
    let mut sums = Sums::default();
    let (first, second) = (vec![1; BUFFER], vec![2; 1000]);
    // The parts end at any place.
    for part in [&first[..1000], &first[1000..], &second] {
        sums.add(part);
    }
    let sums = sums.finish();
    assert_eq!(sums.len(), 2);
    let length = BUFFER as u64 + 1000;
    let compare = || {
        let meter = super::Meter::default();
        compare(&disk, &sums, length, "http://box/a", &meter).map_err(|error| error.to_string())
    };
    std::fs::write(&path, [first.clone(), second].concat()).unwrap();
    assert_eq!(compare(), Ok(()));
    std::fs::write(&path, [first, vec![2; 999]].concat()).unwrap();
    let expected = format!(
        "{} returned other data than was written at offset 4.0 MiB (image http://box/a)",
        path.display()
    );
    assert_eq!(compare(), Err(expected));
}

#[tokio::test]
async fn a_truncated_raw_image_is_told_by_its_partition_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image");
    std::fs::File::create(&path).unwrap().set_len(12 << 20).unwrap();
    let status = Command::new("sgdisk").args(["-n", "1:2048:0"]).arg(&path).output();
    assert!(status.expect("this test needs sgdisk (package gdisk)").status.success());
    let body = std::fs::read(&path).unwrap();
    assert!(run(&body, &[], None).await.disk == body);
    let cut = run(&body[..9 << 20], &[], None).await;
    let text = sentence(&cut);
    assert!(text.contains("is truncated: it has 9437184 bytes"), "{text}");
    assert!(text.ends_with("for a disk of 12582912 bytes"), "{text}");
    assert!(nothing_boots(&cut.disk));
}

/// Converts an image to qcow2 by `qemu-img` with `options`.
fn qcow2(image: &[u8], options: &[&str]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let (raw, out) = (folder.path().join("raw"), folder.path().join("out"));
    std::fs::write(&raw, image).unwrap();
    let output = Command::new("qemu-img")
        .args(["convert", "-f", "raw", "-O", "qcow2"])
        .args(options)
        .args([&raw, &out])
        .output()
        .expect("this test needs qemu-img (package qemu-utils)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read(&out).unwrap()
}

#[tokio::test]
async fn every_kind_of_qcow2_arrives_bit_for_bit() {
    let image = small();
    for options in [
        &["-o", "compat=0.10"][..],
        &[],
        &["-c"],
        &["-c", "-o", "compat=0.10,cluster_size=4k"],
        &["-c", "-o", "compression_type=zstd"],
        &["-o", "cluster_size=512"],
        &["-o", "cluster_size=2M"],
        &["-o", "preallocation=metadata", "-S", "0"],
        &["-o", "lazy_refcounts=on,refcount_bits=1"],
    ] {
        let body = qcow2(&image, options);
        let run = run_with(&body, &[], |image| image.read_back = true).await;
        let summary = run.result.unwrap_or_else(|error| panic!("{options:?}: {error:?}"));
        assert!(run.disk == image, "{options:?}");
        assert_eq!((summary.image, summary.fetched), (image.len() as u64, body.len() as u64));
        let crate::MeterReading { done, total, .. } = run.meter.read();
        assert_eq!((done, total), (summary.image, summary.image));
    }
}

#[tokio::test]
async fn a_qcow2_is_resumed_verified_and_never_spliced() {
    let image = small();
    let body = qcow2(&image, &[]);
    let faults = [Fault::CutAt(body.len() / 2), Fault::Answer(503), Fault::StallAt(1_000_000)];
    let resumed = run(&body, &faults, Some(sha256(&body))).await;
    let sum = checksum(Algorithm::Sha256, &stdx::hex(&sha256(&body)));
    assert_eq!(resumed.result.unwrap().verified, sum);
    assert!(resumed.disk == image);
    assert!(resumed.server.requests().iter().all(|seen| seen.path == "/images/disk"));

    let wrong = run(&body, &[], Some([7; 32])).await;
    assert!(sentence(&wrong).starts_with("sha256 of the image is"), "{}", sentence(&wrong));
    assert!(wrong.disk.is_empty(), "it was verified before anything was written");

    let mut other = image.clone();
    other[20] ^= 1;
    let change = Fault::ChangeTo(Box::leak(qcow2(&other, &[]).into_boxed_slice()));
    let changed = run(&body, &[Fault::CutAt(body.len() / 2), change], None).await;
    assert!(changed.result.is_ok() && changed.disk == other);
}

#[tokio::test]
async fn what_a_qcow2_lacks_is_said() {
    let image = small();
    let body = qcow2(&image, &[]);
    let no_ranges = run(&body, &[Fault::NoRanges], None).await;
    assert!(sentence(&no_ranges).contains("does not support Range"), "{}", sentence(&no_ranges));
    let no_tag = run(&body, &[Fault::NoTag], None).await;
    assert!(sentence(&no_tag).contains("no ETag or Last-Modified"), "{}", sentence(&no_tag));
    let cut = run(&body[..body.len() - 70_000], &[], None).await;
    assert!(sentence(&cut).contains("it is truncated"), "{}", sentence(&cut));

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("top");
    std::fs::write(folder.path().join("base.img"), &image).unwrap();
    let made = Command::new("qemu-img")
        .args(["create", "-f", "qcow2", "-F", "raw", "-b", "base.img"])
        .arg(&path)
        .output()
        .unwrap();
    assert!(made.status.success());
    let backed = run(&std::fs::read(&path).unwrap(), &[], None).await;
    let text = sentence(&backed);
    assert!(text.contains("it needs the backing file \"base.img\""), "{text}");
    assert!(backed.disk.is_empty(), "nothing was written");
}
