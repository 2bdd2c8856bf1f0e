//! Tests of uploads over the API, with a real cache, store and roles.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use api::os_image::OS_IMAGE;
use apiserver::{AdminAccess, AuthConfig, Authenticator, Authorizer, Pki, User};
use artifact_cache::Digest;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Request, StatusCode};
use futures_util::{StreamExt as _, stream};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use resources::{Engine, ListOptions, WriteOptions, builtin, roles};
use serde_json::{Value, json};
use stdx::SystemClock;
use stdx::testing::{PATIENCE, wait_for};
use store::{Options, Store};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tower::ServiceExt as _;

use image_uploads::{OsImageUploads, router};

use super::{listed, open};
use crate::images::{Images, Inner};
use crate::objects::EngineObjects;
use crate::objects::recorder::recorder;

const QUERY: &str = "?distro=debian&version=13";

struct UploadBox {
    folder: TempDir,
    engine: Engine,
    inner: Arc<Inner>,
    router: Router,
}

impl UploadBox {
    async fn start() -> Self {
        let tokens = Authenticator::default();
        let user = |name: &str, group: &str| User::known(name, [group.to_owned()]);
        let tokens = ["tinbox:operator", "tinbox:viewer", "files", "files-and-images"]
            .into_iter()
            .fold(tokens, |tokens, group| tokens.with_user(group, user(group, group)));
        Self::with(|_| tokens.into()).await
    }

    async fn with(auth: impl FnOnce(&Path) -> AuthConfig) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("objects.redb"), Options::default()).unwrap();
        let engine = Engine::new(store, builtin::registry().unwrap(), Arc::new(SystemClock));
        engine.ensure_permanent().await.unwrap();
        roles::ensure(&engine).await.unwrap();
        let files = json!({
            "apiGroups": ["tinbox.dev"], "resources": ["osimages/file"], "verbs": ["update"],
        });
        let images = json!({
            "apiGroups": ["tinbox.dev"], "resources": ["osimages"], "verbs": ["create", "update"],
        });
        grant(&engine, "files", json!([files])).await;
        grant(&engine, "files-and-images", json!([files, images])).await;
        let inner = open(folder.path());
        let config = auth(folder.path());
        let uploads = uploads(&engine, Images(Some(Arc::clone(&inner))));
        let routes = router(uploads, Authorizer::new(engine.clone()));
        let router = apiserver::router(engine.clone(), config, routes);
        Self { folder, engine, inner, router }
    }

    async fn put(&self, user: &str, path: &str, body: Body) -> (StatusCode, Value) {
        put(&self.router, user, path, body).await
    }

    /// Uploads the image `debian-13`.
    async fn upload(&self, query: &str, body: Body) -> (StatusCode, Value) {
        self.put("tinbox:operator", &path("default", "debian-13", query), body).await
    }

    async fn os_images(&self) -> Vec<Value> {
        let kind = crate::objects::id(OS_IMAGE);
        self.engine.list(&kind, None, ListOptions::default()).await.unwrap().items
    }

    /// Checks that nothing of an upload is kept: no OSImage, file, pin or part of a file.
    async fn assert_empty(&self) {
        assert!(self.os_images().await.is_empty());
        assert!(listed(&self.inner).is_empty() && self.inner.pins().list().is_empty());
        let mut folders = vec![self.folder.path().join("cache")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
                let metadata = entry.metadata().unwrap();
                if metadata.is_dir() {
                    folders.push(entry.path());
                } else {
                    assert!(metadata.len() < 1000, "{:?} has {metadata:?}", entry.path());
                }
            }
        }
    }
}

fn uploads(engine: &Engine, images: Images) -> OsImageUploads {
    let objects = EngineObjects { engine: engine.clone(), recorder: recorder().0 };
    OsImageUploads::new(Arc::new(images), Arc::new(objects))
}

/// Grants `rules` to the group `name`.
async fn grant(engine: &Engine, name: &str, rules: Value) {
    const RBAC: &str = "rbac.authorization.k8s.io";
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": name }, "rules": rules,
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": { "name": name },
        "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": name },
        "subjects": [{ "apiGroup": RBAC, "kind": "Group", "name": name }],
    });
    for (plural, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let id = format!("{RBAC}/{plural}");
        engine.create(&id, "", object, WriteOptions::default()).await.unwrap();
    }
}

fn path(namespace: &str, name: &str, query: &str) -> String {
    format!("/apis/tinbox.dev/v1alpha1/namespaces/{namespace}/osimages/{name}/file{query}")
}

async fn put(router: &Router, user: &str, path: &str, body: Body) -> (StatusCode, Value) {
    let request = Request::put(path).header("authorization", format!("Bearer {user}"));
    answer(router, request.body(body).unwrap()).await
}

async fn answer(router: &Router, request: Request<Body>) -> (StatusCode, Value) {
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap())
}

/// Returns the content of a disk with a boot sector, different for each `fill`.
fn disk(fill: u8) -> Vec<u8> {
    let mut disk = vec![fill; 300_000];
    disk[510..512].copy_from_slice(&[0x55, 0xaa]);
    disk
}

/// Returns a body that counts the pieces which were read from it.
fn counted(content: Vec<u8>, read: &Arc<AtomicUsize>) -> Body {
    let read = Arc::clone(read);
    let pieces: Vec<Bytes> = content.chunks(10_000).map(Bytes::copy_from_slice).collect();
    Body::from_stream(stream::iter(pieces).map(move |piece| {
        read.fetch_add(1, Ordering::Relaxed);
        Ok::<_, std::io::Error>(piece)
    }))
}

#[tokio::test]
async fn an_upload_makes_an_os_image_and_a_repeated_upload_changes_nothing() {
    let here = UploadBox::start().await;
    let digest = Digest::of(&disk(7)).hex();
    let (status, made) = here.upload(QUERY, disk(7).into()).await;
    assert_eq!(status, StatusCode::OK, "{made}");
    assert_eq!(
        (&made["kind"], &made["metadata"]["name"]),
        (&json!("OSImage"), &json!("debian-13"))
    );
    let spec = json!({
        "url": "upload://box/debian-13.img", "checksum": { "sha256": digest }, "format": "raw",
        "os": { "distro": "debian", "version": "13" },
    });
    assert_eq!(made["spec"], spec);
    assert_eq!(here.os_images().await.len(), 1);
    assert!(listed(&here.inner)[0].pinned);
    // The cache has the file already, but the client sends it: the box reads it to its end.
    for query in [QUERY.to_owned(), format!("{QUERY}&checksum=sha256:{digest}")] {
        let read = Arc::new(AtomicUsize::new(0));
        let (status, again) = here.upload(&query, counted(disk(7), &read)).await;
        assert_eq!((status, &again), (StatusCode::OK, &made));
        assert_eq!(read.load(Ordering::Relaxed), 30);
        assert_eq!((listed(&here.inner).len(), here.inner.pins().list().len()), (1, 1));
    }
    // Another file of this name replaces the first one.
    let user = "files-and-images";
    let (status, other) =
        here.put(user, &path("default", "debian-13", QUERY), disk(8).into()).await;
    assert_eq!(status, StatusCode::OK, "{other}");
    assert_eq!(other["spec"]["checksum"]["sha256"], json!(Digest::of(&disk(8)).hex()));
    assert_eq!((here.os_images().await.len(), here.inner.pins().list().len()), (1, 1));
}

#[tokio::test]
async fn an_upload_is_refused_before_its_body_is_read() {
    let here = UploadBox::start().await;
    let taken = json!({
        "apiVersion": OS_IMAGE.api_version(), "kind": OS_IMAGE.kind,
        "metadata": { "name": "taken" },
        "spec": { "url": "https://a/b.qcow2", "os": { "distro": "debian", "version": "13" } },
    });
    let kind = crate::objects::id(OS_IMAGE);
    here.engine.create(&kind, "default", taken, WriteOptions::default()).await.unwrap();
    let operator = "tinbox:operator";
    for (user, path, status, reason, message) in [
        ("tinbox:viewer", path("default", "a", QUERY), 403, "Forbidden", "osimages/file"),
        ("files", path("default", "a", QUERY), 403, "Forbidden", "cannot create resource"),
        ("unknown-token", path("default", "a", QUERY), 401, "Unauthorized", "Unauthorized"),
        (operator, path("lab", "a", QUERY), 422, "Invalid", "belongs to the namespace"),
        (operator, path("default", "A%20b", QUERY), 422, "Invalid", "not a valid name"),
        (operator, path("default", "a", "?distro=debian"), 422, "Invalid", "Type a version"),
        (operator, path("default", "a", ""), 422, "Invalid", "Type a distribution"),
        (operator, path("default", "a", "?distro=a&distro=b"), 400, "BadRequest", "duplicate"),
        (operator, path("default", "taken", QUERY), 409, "AlreadyExists", "is called taken"),
        (
            operator,
            path("default", "a", &format!("{QUERY}&checksum=123")),
            422,
            "Invalid",
            "not a valid checksum",
        ),
    ] {
        let read = Arc::new(AtomicUsize::new(0));
        let (code, answer) = here.put(user, &path, counted(disk(7), &read)).await;
        assert_eq!((code.as_u16(), &answer["reason"]), (status, &json!(reason)), "{answer}");
        assert_eq!(answer["kind"], "Status");
        assert!(answer["message"].as_str().unwrap().contains(message), "{path}: {answer}");
        assert_eq!(read.load(Ordering::Relaxed), 0, "{path}: the body was read");
    }
    let large = Request::put(path("default", "a", QUERY))
        .header("authorization", format!("Bearer {operator}"))
        .header("content-length", (64_u64 << 30) + 1);
    let (code, refused) = answer(&here.router, large.body(Body::empty()).unwrap()).await;
    assert_eq!(code, StatusCode::PAYLOAD_TOO_LARGE, "{refused}");
    let none = router(uploads(&here.engine, Images(None)), Authorizer::new(here.engine.clone()));
    let tokens = Authenticator::default().with("admin", "admin");
    let none = apiserver::router(here.engine.clone(), tokens, none);
    let (code, refused) = put(&none, "admin", &path("default", "a", QUERY), Body::empty()).await;
    assert_eq!(code, StatusCode::NOT_FOUND, "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("add [images]"), "{refused}");
    assert_eq!((here.os_images().await.len(), listed(&here.inner).len()), (1, 0));
}

#[tokio::test]
async fn nothing_is_kept_of_a_file_that_is_damaged_or_not_an_image() {
    let here = UploadBox::start().await;
    let digest = Digest::of(b"another").hex();
    let (status, refused) =
        here.upload(&format!("{QUERY}&checksum={digest}"), disk(7).into()).await;
    assert_eq!((status.as_u16(), &refused["reason"]), (422, &json!("Invalid")));
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("not the expected checksum\nhint: compare"), "{message}");
    here.assert_empty().await;
    let (status, refused) = here.upload(QUERY, "<html>not an image</html>".into()).await;
    assert_eq!((status.as_u16(), &refused["reason"]), (422, &json!("Invalid")));
    let message = refused["message"].as_str().unwrap();
    assert!(message.starts_with("the file is a web page or XML\nhint: upload"), "{message}");
    here.assert_empty().await;
}

#[tokio::test]
async fn nothing_is_kept_of_a_file_that_is_cut_off() {
    let here = UploadBox::start().await;
    let digest = Digest::of(&disk(7)).hex();
    // Cut within the head that shows the format, then after it.
    for (length, query) in [
        (20_000, QUERY.to_owned()),
        (280_000, QUERY.to_owned()),
        (280_000, format!("{QUERY}&checksum={digest}")),
    ] {
        let whole = disk(7);
        let pieces = whole[..length].chunks(10_000).map(|it| Ok(Bytes::copy_from_slice(it)));
        let cut = Err(std::io::Error::other("connection reset"));
        let body = Body::from_stream(stream::iter(pieces.chain([cut]).collect::<Vec<_>>()));
        let (status, refused) = here.upload(&query, body).await;
        assert_eq!((status.as_u16(), &refused["reason"]), (400, &json!("BadRequest")), "{length}");
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains("interrupted") && message.contains("repeat"), "{message}");
        here.assert_empty().await;
    }
    let (status, made) = here.upload(QUERY, disk(7).into()).await;
    assert_eq!(status, StatusCode::OK, "{made}");
}

#[tokio::test]
async fn a_file_without_an_os_image_loses_its_pin() {
    let here = UploadBox::start().await;
    let image = image_catalog::ImageForm {
        name: "debian-13".to_owned(),
        distro: "debian".to_owned(),
        version: "13".to_owned(),
        ..image_catalog::ImageForm::default()
    };
    let uploads = uploads(&here.engine, Images(Some(Arc::clone(&here.inner))));
    // The name is taken while the file arrives.
    let engine = here.engine.clone();
    let taking = async move {
        let taken = json!({
            "apiVersion": OS_IMAGE.api_version(), "kind": OS_IMAGE.kind,
            "metadata": { "name": "debian-13" },
            "spec": { "url": "https://a/b.qcow2", "os": { "distro": "debian", "version": "13" } },
        });
        let kind = crate::objects::id(OS_IMAGE);
        engine.create(&kind, "default", taken, WriteOptions::default()).await.unwrap();
        Ok(Bytes::from(disk(7)))
    };
    let stored = uploads.store(image.check(true).unwrap(), Box::pin(stream::once(taking))).await;
    assert_eq!(stored.unwrap_err().to_string(), "an OS image is called debian-13");
    assert!(here.inner.pins().list().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn curl_uploads_a_file_and_the_audit_log_names_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let mut pki = None;
    let here = UploadBox::with(|state| {
        let made = Pki::ensure(state, &["127.0.0.1".to_owned()], Timestamp::now()).unwrap();
        AdminAccess::ensure(state, &made, &url).unwrap();
        std::fs::write(state.join("box.pem"), made.ca_pem()).unwrap();
        pki = Some(made);
        AuthConfig::open(state, &url).unwrap()
    })
    .await;
    let tls = pki.unwrap().server_config().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let stopped = async { drop(stopped.await) };
    let serving = apiserver::serve(listener, tls, here.router.clone(), stopped);
    let serving = tokio::spawn(serving);

    let state = here.folder.path();
    std::fs::write(state.join("debian.img"), disk(7)).unwrap();
    let kubeconfig = std::fs::read_to_string(state.join("admin.kubeconfig")).unwrap();
    let (_, token) = kubeconfig.split_once("token:").unwrap();
    let token = token.split_whitespace().next().unwrap().trim_matches('"');
    let curl = |file: &str, query: &str, version: &str| {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--fail-with-body", "--cacert", "box.pem"])
            .args(["--header", &format!("Authorization: Bearer {token}")])
            .args(["--upload-file", file, version])
            .arg(format!("{url}{}", path("default", "debian-13", query)))
            .current_dir(state);
        let ended = tokio::task::spawn_blocking(move || curl.output().unwrap());
        tokio::time::timeout(PATIENCE, ended)
    };
    let ended = curl("debian.img", QUERY, "--http2").await.unwrap().unwrap();
    let printed = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.status.success(), "{printed} {}", String::from_utf8_lossy(&ended.stderr));
    let made: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(made["spec"]["checksum"]["sha256"], json!(Digest::of(&disk(7)).hex()));
    // A refusal reaches curl whatever is left to send.
    let large = std::fs::File::create(state.join("large.img")).unwrap();
    large.set_len(64 << 20).unwrap();
    let files = [("debian.img", "--http2"), ("large.img", "--http2"), ("large.img", "--http1.1")];
    for (file, version) in files {
        let ended = curl(file, "?distro=debian", version).await.unwrap().unwrap();
        assert!(!ended.status.success());
        let (printed, error) =
            (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
        assert!(printed.contains("Type a version of 1 to 63 characters."), "{printed} {error}");
    }
    stop.send(()).unwrap();
    tokio::time::timeout(PATIENCE, serving).await.unwrap().unwrap().unwrap();

    // A thread writes the log.
    let written = wait_for("four records of the audit log", || {
        let text = std::fs::read_to_string(state.join("audit/audit.log")).unwrap();
        let records = text.lines().filter_map(|it| serde_json::from_str::<Value>(it).ok());
        let uploads: Vec<_> = records.filter(|it| it["resource"] == "osimages/file").collect();
        (uploads.len() == 4).then_some(uploads)
    });
    let record = |it: &Value| (it["verb"].clone(), it["name"].clone(), it["code"].clone());
    let expected = |code: u16| (json!("update"), json!("debian-13"), json!(code));
    assert_eq!(written.iter().map(record).collect::<Vec<_>>(), [200, 422, 422, 422].map(expected));
}
