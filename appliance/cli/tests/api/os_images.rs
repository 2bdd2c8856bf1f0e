//! OS images: list, images of publishers and by URL, upload, fetch and deletion.

use std::process::Stdio;
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use http::StatusCode;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::place::{PATIENCE, Place, end};

/// Name and query of an upload, its `Content-Length` if it has one, and its content.
type Upload = (String, String, Option<u64>, Bytes);

/// Uploads and operations that arrived at the fake image cache.
#[derive(Default)]
pub struct Cache {
    uploads: Vec<Upload>,
    operations: Vec<Value>,
}

pub type SharedCache = Arc<Mutex<Cache>>;

/// Returns a fake of the box's image cache, which refuses the upload `refused` before its body.
pub fn router(cache: SharedCache) -> Router {
    let file = "/apis/tinbox.dev/v1alpha1/namespaces/default/osimages/{name}/file";
    Router::new()
        .route(file, put(upload))
        .route("/apis/tinbox.dev/v1alpha1/images", get(list).post(operate))
        .layer(DefaultBodyLimit::disable())
        .with_state(cache)
}

async fn upload(
    State(cache): State<SharedCache>,
    Path(name): Path<String>,
    request: Request<Body>,
) -> Response {
    if name == "refused" {
        let message = "the file is an ISO image\nhint: upload the image of an installed system";
        let status = json!({ "kind": "Status", "reason": "Invalid", "message": message });
        return (StatusCode::UNPROCESSABLE_ENTITY, Json(status)).into_response();
    }
    let query = request.uri().query().unwrap_or_default().to_owned();
    let length = request.headers().get("content-length");
    let length = length.map(|it| it.to_str().unwrap().parse().unwrap());
    let content = request.into_body().collect().await.unwrap().to_bytes();
    cache.lock().unwrap().uploads.push((name.clone(), query, length, content));
    let image = json!({
        "apiVersion": "tinbox.dev/v1alpha1", "kind": "OSImage", "metadata": { "name": name },
    });
    Json(image).into_response()
}

async fn list() -> Json<Value> {
    Json(json!({ "items": [{
        "origin": "https://images.example/mine.qcow2", "state": "ready", "size": 350_u64 << 20,
    }]}))
}

async fn operate(State(cache): State<SharedCache>, Json(order): Json<Value>) -> Json<Value> {
    cache.lock().unwrap().operations.push(order);
    Json(json!({ "message": "pinned, and being fetched" }))
}

#[tokio::test]
async fn images_are_added_listed_fetched_and_deleted() {
    let place = Place::start().await;
    let empty = place.run(&["os-image", "list"]).await;
    assert!(empty.err.contains("no OS images; `tinbox os-image publishers`"), "{empty:?}");
    let added = place.run(&["os-image", "add", "debian-13"]).await;
    assert!(added.err.ends_with("now: tinbox os-image fetch debian-13\n"), "{added:?}");
    assert_eq!(added.good(), "osimage/debian-13 added\n");
    let url = "https://images.example/mine.qcow2";
    let by_url = ["os-image", "add", "mine", "--distro", "debian", "--version", "13", "--url", url];
    assert_eq!(place.run(&by_url).await.good(), "osimage/mine added\n");
    let again = place.run(&by_url).await;
    assert_eq!(again.code, 4);
    let hint = "hint: choose another name, or `tinbox os-image delete mine` first\n";
    assert!(again.err.ends_with(hint), "{again:?}");

    let listed = place.run(&["osimage", "list", "--no-headers"]).await.good();
    let words: Vec<Vec<&str>> = listed.lines().map(|it| it.split_whitespace().collect()).collect();
    assert_eq!(words[0][..5], ["debian-13", "debian", "13", "not", "fetched"]);
    assert_eq!(words[1][..8], ["mine", "debian", "13", "on", "the", "box", "350", "MiB"]);
    let names = place.run(&["os-image", "list", "-q"]).await.good();
    assert_eq!(names, "osimage/debian-13\nosimage/mine\n");
    let known = place.run(&["os-image", "publishers", "--no-headers"]).await.good();
    let added: Vec<&str> = known.lines().filter(|it| it.contains(" yes")).collect();
    assert!(matches!(added[..], [one] if one.starts_with("debian-13 ")), "{known}");

    let fetched = place.run(&["os-image", "fetch", "osimage/mine"]).await.good();
    assert_eq!(fetched, "mine: pinned, and being fetched\n");
    let asked = place.run(&["os-image", "delete", "mine"]).await;
    assert_eq!(asked.code, 2, "{asked:?}");
    let dry = place.run(&["os-image", "rm", "mine", "--dry-run"]).await;
    assert!(dry.err.starts_with("would change: mine: machines can no longer be"), "{dry:?}");
    let deleted = place.run(&["os-image", "delete", "mine", "debian-13", "--yes"]).await;
    assert_eq!(deleted.good(), "osimage/mine deleted\nosimage/debian-13 deleted\n");
    let gone = place.run(&["os-image", "delete", "mine", "--yes"]).await;
    assert_eq!(gone.code, 3);
    assert!(gone.err.contains("found no OS image \"mine\" in namespace default"), "{gone:?}");
    assert!(gone.err.ends_with("hint: `tinbox os-image list` shows all names\n"), "{gone:?}");
    let operations = place.os_images.lock().unwrap().operations.clone();
    let acts: Vec<&Value> = operations.iter().map(|it| &it["act"]).collect();
    assert_eq!(acts, ["pin", "unpin", "unpin"]);
    assert_eq!(operations[1]["image"], url);
}

#[tokio::test]
async fn an_image_is_pushed_from_a_file_or_a_pipe() {
    let place = Place::start().await;
    let content = "disk ".repeat(100_000);
    place.file("debian.img", &content);
    let line = ["os-image", "push", "debian-13", "debian.img", "--distro", "Debian & co"];
    let sha256 = "5".repeat(64);
    let line = [&line[..], &["--version", "13", "--checksum", &sha256]].concat();
    let pushed = place.run(&line).await;
    assert!(pushed.err.contains("sending"), "the progress is shown: {pushed:?}");
    assert_eq!(pushed.good(), "osimage/debian-13 stored\n");

    let piped = ["os-image", "push", "debian-12", "-", "--distro", "debian", "--version", "12"];
    let mut child = place.command("tinbox", &piped).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(content.as_bytes()).await.unwrap();
    drop(stdin);
    assert_eq!(end(child).await.good(), "osimage/debian-12 stored\n");
    let file = std::fs::File::open(place.file("redirected.img", "disk")).unwrap();
    let child = place.command("tinbox", &piped).stdin(file).spawn().unwrap();
    end(child).await.good();

    let cache = place.os_images.lock().unwrap();
    let queries: Vec<(&str, &str)> =
        cache.uploads.iter().map(|it| (it.0.as_str(), it.1.as_str())).collect();
    let first = format!("distro=Debian%20%26%20co&version=13&checksum={sha256}");
    let second = "distro=debian&version=12";
    let expected = [("debian-13", first.as_str()), ("debian-12", second), ("debian-12", second)];
    assert_eq!(queries, expected);
    let lengths: Vec<Option<u64>> = cache.uploads.iter().map(|it| it.2).collect();
    assert_eq!(lengths, [Some(500_000), None, Some(4)]);
    assert!(cache.uploads[..2].iter().all(|it| it.3 == content), "the content arrives");
}

#[tokio::test]
async fn a_refused_push_ends_at_once_with_the_reason() {
    let place = Place::start().await;
    let system = ["--distro", "debian", "--version", "13"];
    let push = |name: &'static str, file: &'static str| {
        [&["os-image", "push", name, file][..], &system[..]].concat()
    };
    // The pipe stays open, and the box does not read it.
    let mut child =
        place.command("tinbox", &push("refused", "-")).stdin(Stdio::piped()).spawn().unwrap();
    let held = child.stdin.take();
    let refused = end(child).await;
    drop(held);
    assert_eq!(refused.code, 1, "{refused:?}");
    let text = "error: cannot send the file of osimages/refused: the file is an ISO image\n\
                hint: upload the image of an installed system\n";
    assert!(refused.err.ends_with(text), "{refused:?}");
    // A large file, of which only the beginning is sent.
    let large = std::fs::File::create(place.file("large.img", "")).unwrap();
    large.set_len(1 << 30).unwrap();
    let refused = tokio::time::timeout(PATIENCE, place.run(&push("refused", "large.img"))).await;
    assert!(refused.as_ref().unwrap().err.ends_with(text), "{refused:?}");

    // These are refused without a request.
    place.file("a.img", "disk");
    let no_file = place.run(&push("debian-13", "absent.img")).await;
    let text = "error: cannot read absent.img: No such file or directory (os error 2)\n";
    assert_eq!((no_file.code, no_file.err.as_str()), (2, text));
    let folder = place.run(&push("debian-13", ".")).await;
    assert!(folder.err.contains("cannot read .: is a directory"), "{folder:?}");
    let name = place.run(&push("Debian 13", "a.img")).await;
    assert!(name.code == 2 && name.err.contains("is not a valid name"), "{name:?}");
    assert!(name.err.ends_with("`tinbox os-image push --help` describes the values\n"), "{name:?}");
    let unknown = place.run(&["os-image", "add", "debian-9"]).await;
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("no publisher's image is called \"debian-9\""), "{unknown:?}");
    let hint = "debian-13, debian-12,";
    assert!(unknown.err.contains(hint) && unknown.err.contains("--url"), "{unknown:?}");
    assert!(place.os_images.lock().unwrap().uploads.is_empty());
}
