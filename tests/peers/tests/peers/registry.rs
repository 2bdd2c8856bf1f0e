//! Disk images in a stock OCI registry, pushed as ORAS does and fetched as `oci2disk` names them.

use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;
use netboot::cache::{Blob, Cache, Digest, HttpOrigin, Wanted};
use peers::{Process, built, loopback_address};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);
const PORT: u16 = 5000;

/// A registry with one disk image, and the box's cache for it.
struct Registry {
    program: PathBuf,
    host: String,
    folder: TempDir,
    _server: Process,
}

impl Registry {
    /// `realm`: it wants a token, and says so as public registries do.
    fn start(realm: bool) -> Self {
        let program = built("registry", &[]).unwrap().remove(0);
        let folder = tempfile::tempdir().unwrap();
        let address = loopback_address().unwrap();
        let host = format!("{address}:{PORT}");
        let mut arguments = vec!["serve".to_owned(), host.clone()];
        arguments.push(folder.path().join("registry").display().to_string());
        arguments.extend(realm.then(|| format!("http://{host}/token")));
        let log = folder.path().join("log");
        let mut server = Process::start(&program, &arguments, &log).unwrap();
        let answers = || TcpStream::connect((address, PORT)).is_ok();
        server.wait_until("the registry answers", PATIENCE, answers).unwrap();
        Self { program, host, folder, _server: server }
    }

    /// Pushes `bytes` as an artifact with one layer; the layer's digest.
    fn push(&self, name: &str, bytes: &[u8]) -> Digest {
        let file = self.folder.path().join("disk.raw");
        fs::write(&file, bytes).unwrap();
        let mut push = Command::new(&self.program);
        push.arg("push").arg(file).arg(format!("{}/{name}", self.host));
        let output = push.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), Digest::of(bytes).to_string());
        Digest::of(bytes)
    }

    fn wanted(&self, name: &str) -> Wanted {
        Wanted { url: format!("oci://{}/{name}", self.host), checksum: None }
    }

    fn cache_folder(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    async fn fetch(&self, name: &str) -> Result<Blob, String> {
        let origin = HttpOrigin::new(HttpConnector::new());
        let origin = origin.with_plain_registries([self.host.clone()]);
        let cache = Cache::open(self.cache_folder(), Arc::new(origin)).unwrap();
        let ended = tokio::time::timeout(PATIENCE, cache.fetch(&self.wanted(name)).ended()).await;
        ended.unwrap().map_err(|error| stdx::chain(&error))
    }

    /// What it was asked since the images were pushed: all that is no upload.
    fn asked(&self) -> Vec<String> {
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap();
        let gets = log.lines().filter(|line| line.contains("GET ") || line.contains("token for"));
        gets.map(str::to_owned).collect()
    }
}

fn image() -> Vec<u8> {
    (0..200_000_u32).flat_map(u32::to_be_bytes).collect()
}

#[tokio::test]
async fn an_image_is_fetched_as_oras_pushed_it() {
    let registry = Registry::start(false);
    let digest = registry.push("images/debian:raw", &image());
    let blob = registry.fetch("images/debian:raw").await.unwrap();
    assert_eq!((blob.digest, fs::read(&blob.path).unwrap()), (digest, image()));
    let asked = registry.asked().len();
    registry.fetch("images/debian:raw").await.unwrap();
    assert_eq!(registry.asked().len(), asked, "it is here");
    let missing = registry.fetch("images/debian:other").await.unwrap_err();
    assert!(missing.contains("its manifest: it answers 404"), "{missing}");
}

#[tokio::test]
async fn a_registry_that_wants_a_token_is_shown_one() {
    let registry = Registry::start(true);
    let digest = registry.push("images/debian:raw", &image());
    let pushed = registry.asked().len();
    let blob = registry.fetch("images/debian:raw").await.unwrap();
    assert_eq!(blob.digest, digest);
    let asked = registry.asked().split_off(pushed);
    let token = asked.iter().position(|it| it.contains("repository:images/debian:pull of tests"));
    let blob = asked.iter().position(|it| it.contains("/blobs/"));
    assert!(token.is_some() && token < blob, "{asked:?}");
}

#[tokio::test]
async fn half_an_image_is_not_fetched_again() {
    let registry = Registry::start(false);
    let digest = registry.push("images/debian:raw", &image());
    let partial = registry.cache_folder().join("partial");
    fs::create_dir_all(&partial).unwrap();
    let key = registry.wanted("images/debian:raw").key();
    fs::write(partial.join(&key), &image()[..300_000]).unwrap();
    fs::write(partial.join(format!("{key}.tag")), format!("\"{digest}\"")).unwrap();
    let blob = registry.fetch("images/debian:raw").await.unwrap();
    assert_eq!(fs::read(&blob.path).unwrap(), image());
    let asked = registry.asked();
    let ranges = asked.iter().filter(|it| it.ends_with("bytes=300000-")).count();
    assert_eq!(ranges, 1, "{asked:?}");
}

#[tokio::test]
async fn a_tag_that_moved_is_fetched_from_the_beginning() {
    let registry = Registry::start(false);
    let old = registry.push("images/debian:raw", b"an older one");
    let partial = registry.cache_folder().join("partial");
    fs::create_dir_all(&partial).unwrap();
    let key = registry.wanted("images/debian:raw").key();
    fs::write(partial.join(&key), b"an older").unwrap();
    fs::write(partial.join(format!("{key}.tag")), format!("\"{old}\"")).unwrap();
    registry.push("images/debian:raw", &image());
    let blob = registry.fetch("images/debian:raw").await.unwrap();
    assert_eq!(fs::read(&blob.path).unwrap(), image());
}

#[tokio::test]
async fn bytes_that_are_not_the_layers_are_nobodys() {
    let registry = Registry::start(false);
    let hex = registry.push("images/debian:raw", &image()).hex();
    let blobs = registry.folder.path().join("registry/docker/registry/v2/blobs/sha256");
    let mut rotten = image();
    rotten[400_000] ^= 1;
    fs::write(blobs.join(&hex[..2]).join(&hex).join("data"), rotten).unwrap();
    let refused = registry.fetch("images/debian:raw").await.unwrap_err();
    assert!(refused.contains("checksum") || refused.contains("sha256"), "{refused}");
}
