//! Tests downloads that are interrupted, shared or wrong, and downloads across restarts of the box.

mod abandoned;
mod hosts;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::stream;
use hyper_util::client::legacy::connect::HttpConnector;
use stdx::testing::PATIENCE;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::eviction::{BUDGET_PERCENT, Space};
use super::origin::Part;
use super::{
    Blob, Cache, Checksum, Digest, HttpOrigin, Origin, Refusal, RemoteFile, RemoveError, fake,
};
use crate::Error;

/// Behavior of an origin for one request.
#[derive(Clone, Copy)]
enum Behavior {
    /// Sends the given number of bytes, then closes the connection.
    Sends(usize),
    /// Sends one byte after each interval.
    Trickles(Duration),
    /// Sends all requested bytes.
    All,
    /// Sends the whole file from the beginning, ignoring the range.
    Whole,
    Later,
    Never,
}

type Body =
    std::pin::Pin<Box<dyn futures_util::Stream<Item = Result<bytes::Bytes, String>> + Send>>;

/// Origin with one file and a behavior for each request; the last behavior repeats.
struct ScriptedOrigin {
    file: Vec<u8>,
    does: Vec<Behavior>,
    requests: AtomicUsize,
    firsts: Mutex<Vec<u64>>,
}

impl ScriptedOrigin {
    fn new(file: &[u8], does: &[Behavior]) -> Arc<Self> {
        let (requests, firsts) = (AtomicUsize::new(0), Mutex::default());
        Arc::new(Self { file: file.to_vec(), does: does.to_vec(), requests, firsts })
    }

    fn firsts(&self) -> Vec<u64> {
        self.firsts.lock().unwrap().clone()
    }

    fn answer(&self, first: u64) -> Result<Part, Refusal> {
        let index = self.requests.fetch_add(1, SeqCst).min(self.does.len() - 1);
        self.firsts.lock().unwrap().push(first);
        let (from, length) = match self.does[index] {
            Behavior::Later => return Err(Refusal::Later("it is busy".to_owned())),
            Behavior::Never => {
                return Err(Refusal::Never("the server responded with 404 Not Found".to_owned()));
            }
            Behavior::Whole => (0, usize::MAX),
            Behavior::All | Behavior::Trickles(_) => (first, usize::MAX),
            Behavior::Sends(length) => (first, length),
        };
        let rest = &self.file[from as usize..];
        let mut chunks: Vec<Result<bytes::Bytes, String>> = rest[..length.min(rest.len())]
            .chunks(1000)
            .map(|chunk| Ok(bytes::Bytes::copy_from_slice(chunk)))
            .collect();
        if length < rest.len() {
            chunks.push(Err("the connection broke".to_owned()));
        }
        let total = Some(self.file.len() as u64);
        let tag = Some("\"one\"".to_owned());
        let mut body: Body = Box::pin(stream::iter(chunks));
        if let Behavior::Trickles(period) = self.does[index] {
            let begins = tokio::time::Instant::now() + period;
            let clock = tokio::time::interval_at(begins, period);
            let bytes = (clock, std::collections::VecDeque::from(rest.to_vec()));
            body = Box::pin(stream::unfold(bytes, |(mut clock, mut bytes)| async move {
                clock.tick().await;
                bytes.pop_front().map(|byte| (Ok(vec![byte].into()), (clock, bytes)))
            }));
        }
        Ok(Part { first: from, total, tag, digest: None, body })
    }
}

impl Origin for ScriptedOrigin {
    fn part<'a>(
        &'a self,
        _: &'a str,
        first: u64,
        _: Option<&'a str>,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<Part, Refusal>> + Send + 'a>> {
        Box::pin(async move { self.answer(first) })
    }
}

fn file() -> Vec<u8> {
    (0..10_000_u32).flat_map(u32::to_be_bytes).collect()
}

async fn get(cache: &Cache, remote: &RemoteFile) -> Result<Blob, Arc<Error>> {
    cache.fetch(remote).await.ended().await
}

fn remote(checksum: Option<Checksum>) -> RemoteFile {
    RemoteFile { url: "http://origin.example/debian.raw.zst".to_owned(), checksum }
}

fn right() -> Option<Checksum> {
    Some(Checksum::Sha256(Digest::of(&file())))
}

#[tokio::test(start_paused = true)]
async fn goes_on_where_it_broke_off() {
    let folder = tempfile::tempdir().unwrap();
    let does = [Behavior::Sends(5000), Behavior::Later, Behavior::Sends(12_000), Behavior::All];
    let origin = ScriptedOrigin::new(&file(), &does);
    let cache = fake::cache(folder.path(), origin.clone()).unwrap();
    let blob = get(&cache, &remote(right())).await.unwrap();
    assert_eq!(origin.firsts(), [0, 5000, 5000, 17_000]);
    assert_eq!(std::fs::read(&blob.path).unwrap(), file());
    assert_eq!((blob.digest, blob.size), (Digest::of(&file()), 40_000));
    let path = folder.path().join("blobs/sha256").join(Digest::of(&file()).hex());
    assert_eq!(blob.path, path);
    // The next request is served from the cache.
    get(&cache, &remote(right())).await.unwrap();
    assert_eq!(origin.firsts().len(), 4);
    assert_eq!(cache.table(|table| table.reserved), 0);
}

#[tokio::test(start_paused = true)]
async fn goes_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let dying = ScriptedOrigin::new(&file(), &[Behavior::Sends(7000), Behavior::Never]);
    let cache = fake::cache(folder.path(), dying).unwrap();
    get(&cache, &remote(None)).await.unwrap_err();
    let origin = ScriptedOrigin::new(&file(), &[Behavior::All]);
    let cache = fake::cache(folder.path(), origin.clone()).unwrap();
    let blob = get(&cache, &remote(None)).await.unwrap();
    assert_eq!(origin.firsts(), [7000]);
    assert_eq!(blob.digest, Digest::of(&file()));
    // After a restart the cache still knows the digest that the URL gave.
    let cache = fake::cache(folder.path(), origin.clone()).unwrap();
    assert_eq!(cache.get(&remote(None)).unwrap().digest, Digest::of(&file()));
    assert_eq!(cache.list()[0].origin, remote(None).url);
}

#[tokio::test(start_paused = true)]
async fn an_origin_without_ranges_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let origin = ScriptedOrigin::new(&file(), &[Behavior::Sends(9000), Behavior::Whole]);
    let cache = fake::cache(folder.path(), origin.clone()).unwrap();
    let sha512: [u8; 64] = {
        use sha2::Digest as _;
        sha2::Sha512::digest(file()).into()
    };
    let blob = get(&cache, &remote(Some(Checksum::Sha512(sha512)))).await.unwrap();
    assert_eq!(std::fs::read(&blob.path).unwrap(), file());
}

#[tokio::test(start_paused = true)]
async fn many_wait_for_one_download() {
    let folder = tempfile::tempdir().unwrap();
    let origin = ScriptedOrigin::new(&file(), &[Behavior::Sends(100), Behavior::All]);
    let cache = fake::cache(folder.path(), origin.clone()).unwrap();
    let first = cache.fetch(&remote(right())).await;
    let mut others = Vec::new();
    for _ in 0..50 {
        others.push(cache.fetch(&remote(right())).await);
    }
    let blob = first.clone().ended().await.unwrap();
    for other in others {
        assert_eq!(other.ended().await.unwrap().path, blob.path);
    }
    assert_eq!(origin.firsts().len(), 2);
    assert_eq!(first.progress().received, 40_000);
}

#[tokio::test(start_paused = true)]
async fn the_wrong_file_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let cache = fake::cache(folder.path(), ScriptedOrigin::new(b"evil", &[Behavior::All])).unwrap();
    let error = get(&cache, &remote(right())).await.unwrap_err();
    assert!(matches!(&*error, Error::Checksum { .. }), "{error}");
    assert!(cache.list().is_empty());
    let left = std::fs::read_dir(folder.path().join("partial")).unwrap().count();
    assert_eq!(left, 0);
}

#[tokio::test(start_paused = true)]
async fn gives_up_in_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let origin = ScriptedOrigin::new(&file(), &[Behavior::Later]);
    let cache = fake::cache(folder.path(), origin.clone()).unwrap();
    let error = get(&cache, &remote(right())).await.unwrap_err();
    assert!(error.to_string().ends_with(": it is busy"), "{error}");
    assert_eq!(origin.firsts().len(), 6);
    // An immediate retry returns the same error; a later one starts a new download.
    get(&cache, &remote(right())).await.unwrap_err();
    assert_eq!(origin.firsts().len(), 6);
    tokio::time::advance(Duration::from_secs(11)).await;
    get(&cache, &remote(right())).await.unwrap_err();
    assert_eq!(origin.firsts().len(), 12);
}

#[tokio::test(start_paused = true)]
async fn a_full_partition_takes_no_new_file() {
    let folder = tempfile::tempdir().unwrap();
    let full = Space { capacity: 100 << 20, used: 96 << 20 };
    let origin = ScriptedOrigin::new(&file(), &[Behavior::All]);
    let cache = Cache::open(folder.path(), origin, BUDGET_PERCENT, Arc::new(full)).unwrap();
    let error = get(&cache, &remote(right())).await.unwrap_err();
    assert!(matches!(&*error, Error::CacheFull { .. }), "{error}");
    assert_eq!(cache.space().unwrap(), full, "nothing is reserved");
}

#[tokio::test(start_paused = true)]
async fn what_is_read_or_needed_is_the_last_to_go() {
    let folder = tempfile::tempdir().unwrap();
    let cache = fake::cache(folder.path(), ScriptedOrigin::new(&file(), &[Behavior::All])).unwrap();
    let blob = get(&cache, &remote(right())).await.unwrap();
    assert!(cache.list()[0].in_use);
    drop(blob);
    assert!(!cache.list()[0].in_use);
    // Two workflows need the file, until the second one has ended.
    cache.offer([&remote(right())]);
    cache.offer([&remote(right())]);
    cache.withdraw([&remote(right())]);
    assert!(cache.list()[0].needed);
    assert_eq!(cache.remove(Digest::of(&file())), Err(RemoveError::Needed));
    cache.withdraw([&remote(right())]);
    cache.pin(BTreeSet::from([Digest::of(&file())]));
    assert!(cache.list()[0].pinned);
    assert_eq!(cache.remove(Digest::of(&file())), Err(RemoveError::Pinned));
    let error = cache.admit(u64::MAX).unwrap_err();
    assert!(error.to_string().contains(&remote(None).url), "{error}");
    assert_eq!(cache.list().len(), 1, "nothing goes when that would not help");
    cache.pin(BTreeSet::new());
    cache.remove(Digest::of(&file())).unwrap();
    assert!(cache.get(&remote(right())).is_none());
    assert_eq!(std::fs::read_dir(folder.path().join("origins")).unwrap().count(), 0);
}

/// Server on loopback that interrupts its first response and redirects the second request.
async fn serve(listener: TcpListener) -> Vec<String> {
    let mut heads = Vec::new();
    for number in 0..3 {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        heads.push(String::from_utf8(head).unwrap());
        let file = file();
        let (answer, body) = match number {
            0 => ("200 OK\r\ncontent-length: 40000\r\netag: \"v1\"", &file[..10_000]),
            1 => ("302 Found\r\nlocation: /moved\r\ncontent-length: 0", &file[..0]),
            _ => (
                "206 Partial Content\r\ncontent-length: 30000\r\netag: \"v1\"\r\n\
                 content-range: bytes 10000-39999/40000",
                &file[10_000..],
            ),
        };
        let head = format!("HTTP/1.1 {answer}\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body).await.unwrap();
    }
    heads
}

#[tokio::test]
async fn over_http_it_asks_for_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/image", listener.local_addr().unwrap());
    let server = tokio::spawn(serve(listener));
    let origin = Arc::new(HttpOrigin::new(HttpConnector::new()));
    let cache = fake::cache(folder.path(), origin).unwrap();
    let remote = RemoteFile { url, checksum: None };
    let got = tokio::time::timeout(PATIENCE, get(&cache, &remote)).await.unwrap();
    assert_eq!(std::fs::read(got.unwrap().path).unwrap(), file());
    let heads = server.await.unwrap();
    assert!(!heads[0].contains("range"), "{}", heads[0]);
    assert!(heads[2].starts_with("GET /moved HTTP/1.1\r\n"), "{}", heads[2]);
    assert!(heads[2].contains("range: bytes=10000-\r\n"), "{}", heads[2]);
    assert!(heads[2].contains("if-range: \"v1\"\r\n"), "{}", heads[2]);
}
