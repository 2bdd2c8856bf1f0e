//! Disk images in a stock OCI registry, pushed as ORAS does and fetched as `oci2disk` names them.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use artifact_cache::registry::Credentials;
use artifact_cache::{Blob, Digest, HttpOrigin, RemoteFile, fake};
use hyper_util::client::legacy::connect::HttpConnector;
use peers::{Process, built, loopback_address};
use stdx::testing::PATIENCE;
use tempfile::TempDir;

const PORT: u16 = 5000;
/// Port that a name may omit. Stock clients do not accept a port within a path.
const PLAIN_PORT: u16 = 80;

/// A stock registry, and the box's cache for it.
pub struct Registry {
    pub program: PathBuf,
    /// Host and port, as in the names of images.
    pub host: String,
    pub folder: TempDir,
    server: Process,
}

impl Registry {
    /// Starts a registry. With `realm` the registry requires a token, and names its token server as
    /// public registries do.
    fn start(realm: bool) -> Self {
        Self::start_at(PORT, realm)
    }

    /// Starts a registry whose name has no port.
    pub fn without_port() -> Self {
        Self::start_at(PLAIN_PORT, false)
    }

    fn start_at(port: u16, realm: bool) -> Self {
        let program = built("registry", &[]).unwrap().remove(0);
        let folder = tempfile::tempdir().unwrap();
        let host = format!("{}:{port}", loopback_address().unwrap());
        let server = serve(&program, &host, &folder, realm, "");
        let host = host.trim_end_matches(":80").to_owned();
        Self { program, host, folder, server }
    }

    /// Restarts the registry so that it requires one user's credentials.
    fn close(&mut self, realm: bool) {
        self.server.kill();
        let Credentials { username, password } = user("s3cret");
        let user = format!("{username}:{}", password.expose());
        self.server = serve(&self.program, &self.host, &self.folder, realm, &user);
    }

    /// Pushes a container image with busybox that runs as `user`; returns the digest of its index.
    pub fn push_image(&self, name: &str, user: &str) -> String {
        let busybox =
            ["/usr/bin/busybox", "/bin/busybox"].into_iter().find(|it| Path::new(it).exists());
        let busybox = busybox.expect("this test needs busybox (package busybox-static)");
        self.run(&["image", busybox, &format!("{}/{name}", self.host), user]).unwrap()
    }

    /// Stops the registry: later requests get no answer.
    pub fn stop(&mut self) {
        self.server.kill();
    }

    /// Output of the program, or its error output when it fails.
    pub fn run(&self, arguments: &[&str]) -> Result<String, String> {
        let output = Command::new(&self.program).args(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    /// Pushes `bytes` as an artifact with one layer; returns the layer's digest.
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

    fn wanted(&self, name: &str) -> RemoteFile {
        RemoteFile { url: format!("oci://{}/{name}", self.host), checksum: None }
    }

    pub fn cache_folder(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    async fn fetch(&self, name: &str) -> Result<Blob, String> {
        self.fetch_as(name, None).await
    }

    async fn fetch_as(&self, name: &str, who: Option<Credentials>) -> Result<Blob, String> {
        let origin = HttpOrigin::new(HttpConnector::new());
        let known = who.map(|who| (self.host.clone(), who));
        let origin = origin.with_credentials(known.into_iter().collect());
        let origin = origin.with_plain_registries([self.host.clone()]);
        let cache = fake::cache(self.cache_folder(), Arc::new(origin)).unwrap();
        let ended =
            tokio::time::timeout(PATIENCE, cache.fetch(&self.wanted(name)).await.ended()).await;
        ended.unwrap().map_err(|error| stdx::chain(&error))
    }

    /// Log lines of all reads and issued tokens so far; uploads are left out.
    pub fn asked(&self) -> Vec<String> {
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap();
        let gets = log.lines().filter(|line| line.contains("GET ") || line.contains("token for"));
        gets.map(str::to_owned).collect()
    }
}

fn serve(program: &Path, host: &str, folder: &TempDir, realm: bool, user: &str) -> Process {
    let registry = folder.path().join("registry").display().to_string();
    let realm = if realm { format!("http://{host}/token") } else { String::new() };
    let arguments = ["serve", host, &registry, &realm, user].map(str::to_owned);
    let mut server = Process::start(program, &arguments, &folder.path().join("log")).unwrap();
    let answers = || TcpStream::connect(host).is_ok();
    server.wait_until("the registry answers", PATIENCE, answers).unwrap();
    server
}

fn user(password: &str) -> Credentials {
    Credentials { username: "tinbox".to_owned(), password: password.to_owned().into() }
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
    assert!(missing.contains("its manifest: the server responded with 404"), "{missing}");
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
async fn a_registry_for_one_user_is_shown_who_the_box_is() {
    for realm in [false, true] {
        let mut registry = Registry::start(false);
        let digest = registry.push("images/debian:raw", &image());
        registry.close(realm);
        let refused = registry.fetch("images/debian:raw").await.unwrap_err();
        assert!(refused.contains("see images.credentials"), "{refused}");
        let wrong = user("guessed");
        let refused = registry.fetch_as("images/debian:raw", Some(wrong)).await.unwrap_err();
        assert!(refused.contains("401") && !refused.contains("guessed"), "{refused}");
        let right = user("s3cret");
        let blob = registry.fetch_as("images/debian:raw", Some(right)).await.unwrap();
        assert_eq!((blob.digest, fs::read(&blob.path).unwrap()), (digest, image()));
        let log = fs::read_to_string(registry.folder.path().join("log")).unwrap();
        assert!(!log.contains("s3cret"), "{log}");
    }
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
