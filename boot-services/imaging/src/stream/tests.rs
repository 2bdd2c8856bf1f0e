//! Tests of the stream against a server with deliberate faults.

mod formats;
mod redirects;
mod server;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use stdx::testing::PATIENCE;

use super::piece::PIECE;
use super::{Accept, Algorithm, Checksum, Image, Proof, Summary, Timeouts, write_image};
use crate::{Error, Meter, MeterReading};
use server::{Fault, Server};

/// Timeouts with short retry intervals, but long enough for a test on a busy machine.
const QUICK: Timeouts = Timeouts {
    stall: PATIENCE,
    silence: PATIENCE,
    first_wait: Duration::from_millis(5),
    longest_wait: Duration::from_millis(50),
};

/// Stall timeout for a server that stops sending. On a busy machine a timeout may be too early;
/// then the agent sends one more request.
const SHORT_STALL: Duration = Duration::from_millis(300);

/// Returns an image of several buffers, with long and short runs of zeros: inside a buffer, across
/// two buffers, and at the end.
fn image() -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut noise = |length: usize| -> Vec<u8> {
        (0..length)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 32) as u8
            })
            .collect()
    };
    let mut image = noise(1 << 20);
    image.extend(vec![0; 6 << 20]);
    image.extend(noise(700_000));
    image.extend(vec![0; 100_000]);
    image.extend(noise(3 << 20));
    image.extend(vec![0; 3 << 20]);
    image.extend(noise(1));
    image.extend(vec![0; 300_001]);
    image
}

fn sha256(data: &[u8]) -> [u8; 32] {
    Sha256::digest(data).into()
}

fn zstd(image: &[u8]) -> Vec<u8> {
    zstd::encode_all(image, 1).unwrap()
}

/// Compresses with the original program, to test the decoder against another implementation.
fn packed(program: &str, arguments: &[&str], image: &[u8]) -> Vec<u8> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("this test needs the program {program}: {error}"));
    let mut stdin = child.stdin.take().unwrap();
    let image = image.to_vec();
    let feeder = std::thread::spawn(move || stdin.write_all(&image).unwrap());
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    assert!(output.status.success());
    output.stdout
}

fn gzip(image: &[u8]) -> Vec<u8> {
    packed("gzip", &["-1", "-c"], image)
}

fn xz(image: &[u8]) -> Vec<u8> {
    packed("xz", &["-1", "-c"], image)
}

fn bzip2(image: &[u8]) -> Vec<u8> {
    packed("bzip2", &["-1", "-c"], image)
}

fn lz4(image: &[u8]) -> Vec<u8> {
    packed("lz4", &["-1", "-c"], image)
}

struct Run {
    result: Result<Summary, Error>,
    disk: Vec<u8>,
    meter: Arc<Meter>,
    server: Server,
}

/// Writes an image from a server with `faults` to a file that has other content.
async fn run(body: &[u8], faults: &[Fault], sha256: Option<[u8; 32]>) -> Run {
    let sum = sha256.and_then(|sum| checksum(Algorithm::Sha256, &stdx::hex(&sum)));
    run_with(body, faults, |image| image.proof = sum.map(Proof::Sum)).await
}

fn checksum(algorithm: Algorithm, hex: &str) -> Option<Checksum> {
    Checksum::parse(algorithm, hex)
}

async fn run_with(body: &[u8], faults: &[Fault], adjust: impl FnOnce(&mut Image)) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    std::fs::write(&path, vec![0xee; 16 << 20]).unwrap();
    let server = Server::start(body.to_vec(), faults).await;
    let meter = Arc::new(Meter::default());
    let mut image = to(&path, &server);
    if faults.iter().any(|fault| matches!(fault, Fault::StallAt(_))) {
        image.timeouts.stall = SHORT_STALL;
    }
    adjust(&mut image);
    let result = write_image(&image, &meter).await;
    let disk = std::fs::read(&path).unwrap();
    Run { result, disk, meter, server }
}

fn to(path: &Path, server: &Server) -> Image {
    Image {
        url: server.url().parse().unwrap(),
        proof: None,
        compressed: false,
        read_back: false,
        disk: path.to_owned(),
        accept: Accept::Files,
        timeouts: QUICK,
    }
}

fn sentence(run: &Run) -> String {
    stdx::chain(run.result.as_ref().unwrap_err())
}

#[tokio::test]
async fn every_format_arrives_bit_for_bit() {
    let image = image();
    let two_frames = [zstd(&image[..5_000_000]), zstd(&image[5_000_000..])].concat();
    let two_members = [gzip(&image[..5_000_000]), gzip(&image[5_000_000..])].concat();
    let two_blocks = [lz4(&image[..5_000_000]), lz4(&image[5_000_000..])].concat();
    let two_streams = [bzip2(&image[..5_000_000]), bzip2(&image[5_000_000..])].concat();
    let single =
        [image.clone(), zstd(&image), gzip(&image), xz(&image), bzip2(&image), lz4(&image)];
    for body in single.into_iter().chain([two_frames, two_members, two_blocks, two_streams]) {
        let run = run(&body, &[], Some(sha256(&body))).await;
        let summary = run.result.unwrap();
        assert!(run.disk == image, "format {:x?}", &body[..6]);
        assert_eq!(summary.image, image.len() as u64);
        assert_eq!(summary.fetched, body.len() as u64);
        assert_eq!(summary.verified, checksum(Algorithm::Sha256, &stdx::hex(&sha256(&body))));
        assert!(summary.holes >= 5 << 20, "{}", summary.holes);
        let MeterReading { done, total, .. } = run.meter.read();
        assert_eq!((done, total), (body.len() as u64, body.len() as u64));
    }
}

#[tokio::test]
async fn a_cut_is_resumed_where_it_happened() {
    let body = zstd(&image());
    let half = body.len() / 2;
    let run = run(&body, &[Fault::CutAt(half), Fault::CutAt(half + 7)], None).await;
    run.result.as_ref().unwrap();
    assert!(run.disk == image());
    let requests = run.server.requests();
    assert_eq!(requests.len(), 3, "{requests:?}");
    assert_eq!(requests[0].range, None);
    // Only missing bytes are requested again: no byte is sent twice except those in flight.
    assert!(requests[1].range.unwrap() <= half && requests[2].range.unwrap() <= half + 7);
    assert!(requests[1].if_range && requests[2].if_range);
    let sent = run.server.sent();
    assert!(sent * 100 <= body.len() * 105, "{sent} of {}", body.len());
}

#[tokio::test]
async fn a_server_without_ranges_is_read_again() {
    let body = zstd(&image());
    // With an entity tag the server proves the version. Without one, the checksum of the used bytes
    // is compared.
    for tag in [None, Some(Fault::NoTag)] {
        let half = body.len() / 2;
        let mut faults = vec![Fault::NoRanges, Fault::CutAt(half), Fault::CutAt(half + 7)];
        faults.extend(tag);
        let run = run(&body, &faults, None).await;
        run.result.as_ref().unwrap();
        assert!(run.disk == image());
        assert_eq!(run.server.requests().len(), 3);
    }
}

#[tokio::test]
async fn a_raw_image_is_resumed_in_the_middle_of_a_piece() {
    let body = image();
    let cuts = [1, PIECE - 1, PIECE, PIECE + 512, 3 * PIECE + 77];
    for other in [None, Some(Fault::NoTag)] {
        let faults: Vec<_> = cuts.into_iter().map(Fault::CutAt).chain(other).collect();
        let run = run(&body, &faults, None).await;
        assert_eq!(run.result.as_ref().unwrap().image, body.len() as u64);
        assert!(run.disk == body);
        assert_eq!(run.server.requests().len(), cuts.len() + 1);
    }
}

#[tokio::test]
async fn what_a_server_has_no_bytes_of_is_not_fetched() {
    let body = image();
    // The long runs of zeros, and the end.
    let holes = "1048576-7340031, 11285760-14431487, 14431489-14731489";
    for (first, last) in holes.split(", ").map(|hole| hole.split_once('-').unwrap()) {
        let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
        assert!(body[first..=last].iter().all(|byte| *byte == 0), "{first}-{last}");
    }
    let cuts = [Fault::CutAt(500_000), Fault::CutAt(8 << 20), Fault::StallAt(9 << 20)];
    for faults in [&[][..], &cuts] {
        for proof in [None, Some(sha256(&body))] {
            let faults: Vec<_> = faults.iter().copied().chain([Fault::Holes(holes)]).collect();
            let run = run(&body, &faults, proof).await;
            assert_eq!(run.result.as_ref().unwrap().image, body.len() as u64);
            assert!(run.disk == body);
            // The first response has the whole image. The bytes behind the hole are lost in the
            // socket.
            let requests: Vec<_> = run.server.requests().iter().map(|it| it.range).collect();
            assert!(requests.contains(&Some(7_340_032)), "{requests:?}");
            assert_eq!(requests.last(), Some(&Some(14_431_488)), "{requests:?}");
            assert_eq!(run.meter.read().done, body.len() as u64);
        }
    }
    // Without ranges, or without an entity tag for this version, everything is fetched.
    for fault in [Fault::NoRanges, Fault::NoTag] {
        let run = run(&body, &[fault, Fault::Holes(holes)], None).await;
        run.result.as_ref().unwrap();
        assert!(run.disk == body && run.server.requests().len() <= 2, "{fault:?}");
    }
}

#[tokio::test]
async fn a_body_in_chunks_is_resumed_and_its_end_is_told_from_a_cut() {
    let body = image();
    for proof in [None, Some(sha256(&body))] {
        let run = run(&body, &[Fault::Chunked, Fault::CutAt(2_000_000)], proof).await;
        assert_eq!(run.result.as_ref().unwrap().image, body.len() as u64);
        assert!(run.disk == body);
        assert_eq!(run.server.requests()[1].range, Some(2_000_000));
    }
}

#[tokio::test]
async fn a_server_that_never_gets_further_is_given_up() {
    let body = zstd(&image());
    let mut faults = vec![Fault::NoRanges];
    faults.extend([Fault::CutAt(body.len() / 2); 40]);
    let run = run(&body, &faults, None).await;
    assert!(sentence(&run).starts_with("no new data from or to http://"), "{}", sentence(&run));
    assert!(nothing_boots(&run.disk));
}

#[tokio::test]
async fn what_a_server_says_about_its_failure_is_passed_on() {
    let soon = |image: &mut Image| image.timeouts.silence = Duration::from_millis(300);
    let run = run_with(b"", &[Fault::Answer(502); 1000], soon).await;
    let sentence = sentence(&run);
    assert!(sentence.contains("the server answered 502 Bad Gateway: why so"), "{sentence}");
}

#[tokio::test]
async fn two_images_are_never_spliced() {
    let body = zstd(&image());
    let mut changed = image();
    changed[20] ^= 1;
    let other = zstd(&changed);
    let change = Fault::ChangeTo(Box::leak(other.clone().into_boxed_slice()));
    for more in [&[][..], &[Fault::NoRanges], &[Fault::NoTag], &[Fault::NoRanges, Fault::NoTag]] {
        let mut faults = vec![Fault::CutAt(body.len() / 2), change];
        faults.extend(more);
        let run = run(&body, &faults, None).await;
        assert_eq!(run.result.as_ref().unwrap().fetched, other.len() as u64, "begun anew");
        assert!(run.disk == changed, "{more:?}");
        assert!(run.server.requests().len() > 2, "{more:?}");
    }
}

#[tokio::test]
async fn a_silent_server_is_asked_again() {
    let body = zstd(&image());
    let run = run(&body, &[Fault::StallAt(body.len() / 3), Fault::Answer(503)], None).await;
    run.result.as_ref().unwrap();
    assert!(run.disk == image());
    // At least one request after the silence and one after the 503, and none for bytes already
    // received.
    let ranges: Vec<_> = run.server.requests().iter().map(|it| it.range).collect();
    assert!(ranges.len() >= 3 && ranges.is_sorted(), "{ranges:?}");
}

#[tokio::test]
async fn a_refusal_is_final_and_named() {
    let run = run(b"", &[Fault::Answer(404)], None).await;
    let sentence = sentence(&run);
    let ends = sentence.ends_with("is refused: 404 Not Found: why so");
    assert!(sentence.starts_with("http://") && ends, "{sentence}");
    assert_eq!(run.server.requests().len(), 1);
}

#[tokio::test]
async fn a_wrong_checksum_leaves_nothing_that_boots() {
    let body = zstd(&image());
    let run = run(&body, &[], Some([7; 32])).await;
    let expected = format!(
        "sha256 of the image is {}, expected {} ({})",
        stdx::hex(&sha256(&body)),
        "07".repeat(32),
        run.server.url()
    );
    assert_eq!(sentence(&run), expected);
    assert!(nothing_boots(&run.disk), "the image's beginning was written");
}

fn nothing_boots(disk: &[u8]) -> bool {
    disk[..disk.len().min(4 << 20)].iter().all(|byte| *byte == 0)
}

#[tokio::test]
async fn an_answer_whose_end_cannot_be_told_needs_a_checksum() {
    let body = image();
    let refused = run(&body, &[Fault::NoLength], None).await;
    assert!(sentence(&refused).contains("no Content-Length"), "{}", sentence(&refused));
    let cut = run(&body, &[Fault::NoLength, Fault::CutAt(5_000_000)], Some(sha256(&body))).await;
    assert!(sentence(&cut).starts_with("sha256 of the image is"), "{}", sentence(&cut));
    let whole = run(&body, &[Fault::NoLength], Some(sha256(&body))).await;
    assert!(whole.result.is_ok() && whole.disk == body);
}

#[tokio::test]
async fn a_dropped_future_stops_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    let body = zstd(&image());
    let server = Server::start(body.clone(), &[Fault::StallAt(body.len() / 2)]).await;
    let meter = Arc::new(Meter::default());
    let image = to(&path, &server);
    let task = tokio::spawn({
        let meter = meter.clone();
        async move { write_image(&image, &meter).await }
    });
    server::until("bytes arrive", || meter.read().done > 0).await;
    task.abort();
    server::until("the work stops", || meter.is_stopped()).await;
}
