//! Tests `slurp`, which uploads a disk, against a server of the test.

use std::io::Read as _;
use std::os::unix::fs::FileExt as _;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::loops::{Loop, act, run};

/// Returns true if the request is complete, by Content-Length or by the last chunk. Searches the
/// last chunk only in the body, because a boundary in the head may end in the same way.
fn is_complete(request: &[u8]) -> bool {
    let Some(at) = request.windows(4).position(|it| it == b"\r\n\r\n") else { return false };
    let (head, body) = (String::from_utf8_lossy(&request[..at]).to_lowercase(), &request[at + 4..]);
    match head.split_once("content-length: ") {
        Some((_, rest)) => body.len() >= rest.lines().next().unwrap().parse().unwrap(),
        None => body.ends_with(b"\r\n0\r\n\r\n"),
    }
}

/// Starts a server for one request. It responds with `status` after `enough` bytes, or at the end
/// of the request. Returns its URL, and a task that returns the request's bytes.
async fn server(status: &'static str, enough: usize) -> (String, JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/image?token=s3cret", listener.local_addr().unwrap());
    let served = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (mut all, mut piece) = (Vec::new(), vec![0; 1 << 16]);
        while all.len() < enough && !is_complete(&all) {
            let count = stream.read(&mut piece).await.unwrap();
            if count == 0 {
                break;
            }
            all.extend(&piece[..count]);
        }
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
        let _ = stream.write_all(answer.as_bytes()).await;
        // The agent must not wait for a server that keeps the connection open.
        let _ = stream.read_to_end(&mut Vec::new()).await;
        all
    });
    (url, served)
}

fn settings(disk: &Loop, url: &str, more: &str) -> Vec<String> {
    let fixed = [format!("DEST_URL={url}"), "IMG_NAME=copy".to_owned(), more.to_owned()];
    fixed.into_iter().chain([disk.environment("SOURCE_DISK")]).collect()
}

/// Creates a disk of 3 MiB that begins with a text.
fn disk() -> Loop {
    let disk = Loop::new(3 << 20);
    let device = std::fs::File::options().write(true).open(&disk.path).unwrap();
    device.write_all_at(b"what is on the disk", 0).unwrap();
    device.write_all_at(b"its end", (3 << 20) - 7).unwrap();
    device.sync_all().unwrap();
    disk
}

fn split(request: &[u8]) -> (String, &[u8]) {
    let at = |bytes: &[u8]| bytes.windows(4).position(|it| it == b"\r\n\r\n").unwrap() + 4;
    let head = at(request);
    (String::from_utf8(request[..head].to_vec()).unwrap().to_lowercase(), &request[head..])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_is_uploaded_as_it_is() {
    let disk = disk();
    // A preserved disk may be read.
    imaging::preserve::set(imaging::preserve::parse(disk.path.to_str().unwrap()).unwrap());
    let (url, served) = server("200 OK", usize::MAX).await;
    let uploaded = act("slurp", &settings(&disk, &url, "COMPRESSED=false")).await;
    imaging::preserve::set(Vec::new());
    let summary = uploaded.unwrap();
    let request = served.await.unwrap();
    let (head, body) = split(&request);
    assert!(head.starts_with("post /image?token=s3cret http/1.1\r\n"), "{head}");
    assert!(head.contains("content-type: multipart/form-data; boundary=tinbox-"), "{head}");
    assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{head}");
    let (part, content) = split(body);
    assert!(part.contains("name=\"bootyimage\"; filename=\"copy.img\"\r\n"), "{part}");
    assert!(content[..3 << 20] == disk.read().0, "all of it");
    assert!(content[3 << 20..].starts_with(b"\r\n--tinbox-"));
    assert!(
        summary.contains(" to http://127.0.0.1:") && summary.contains("as copy.img: 3145728 bytes")
    );
    assert!(!summary.contains("s3cret"), "{summary}");
    let sum = run("sha256sum", &[disk.path.to_str().unwrap()]);
    assert!(summary.ends_with(sum.split(' ').next().unwrap()), "{summary} {sum}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_is_compressed_on_the_way() {
    let disk = disk();
    let (url, served) = server("201 Created", usize::MAX).await;
    let summary = act("slurp", &settings(&disk, &url, "COMPRESSED=true")).await.unwrap();
    let request = served.await.unwrap();
    let (head, body) = split(&request);
    assert!(head.contains("transfer-encoding: chunked"), "{head}");
    let content = unchunked(body);
    let (part, content) = split(&content);
    assert!(part.contains("filename=\"copy.img.gz\""), "{part}");
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(content).read_to_end(&mut bytes).unwrap();
    assert!(bytes == disk.read().0, "all of it");
    assert!(summary.contains("as copy.img.gz: ") && request.len() < 1 << 20, "{summary}");
}

fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let end = body.windows(2).position(|it| it == b"\r\n").unwrap();
        let count = std::str::from_utf8(&body[..end]).unwrap();
        let count = usize::from_str_radix(count, 16).unwrap();
        if count == 0 {
            return bytes;
        }
        bytes.extend(&body[end + 2..end + 2 + count]);
        body = &body[end + 4 + count..];
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_refuses_fails_the_action() {
    let disk = disk();
    let (url, _) = server("507 Insufficient Storage", usize::MAX).await;
    let error = act("slurp", &settings(&disk, &url, "COMPRESSED=false")).await.unwrap_err();
    assert!(error.ends_with("/image is refused: 507 Insufficient Storage"), "{error}");
    let (url, _) = server("413 Payload Too Large", 1000).await;
    let error = act("slurp", &settings(&disk, &url, "COMPRESSED=true")).await.unwrap_err();
    assert!(
        error.contains("413 Payload Too Large") || error.contains("no new data from or to"),
        "{error}"
    );
    let nobody = "http://127.0.0.1:1/image";
    let error = act("slurp", &settings(&disk, nobody, "COMPRESSED=true")).await.unwrap_err();
    assert!(error.contains("cannot connect"), "{error}");

    run("mkfs.ext4", &["-q", disk.path.to_str().unwrap()]);
    let mount = tempfile::tempdir().unwrap();
    let place = mount.path().to_str().unwrap();
    run("mount", &[disk.path.to_str().unwrap(), place]);
    let busy = act("slurp", &settings(&disk, nobody, "COMPRESSED=true")).await;
    run("umount", &[place]);
    assert!(busy.unwrap_err().contains(" is in use: "));
}
