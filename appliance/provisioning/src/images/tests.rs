//! Tests of the cache, the rewritten URLs and the list of images, without a real server.

mod os_images;
mod readers;

use std::pin::Pin as Pinned;

use api::meta::ObjectMeta;
use api::tinkerbell::{ActionStatus, State, TaskStatus, WorkflowStatus};
use artifact_cache::registry::Mirror;
use artifact_cache::{HttpOrigin, Origin, Part, Refusal, fake};
use futures_util::stream;
use image_format::Format;
use status::image;
use stdx::testing::Wait;

use super::*;

/// Server with one small file, `http://a.example/good.raw`, that refuses all other requests
/// permanently.
struct Small;

impl Origin for Small {
    fn part<'a>(
        &'a self,
        url: &'a str,
        _: u64,
        _: Option<&'a str>,
    ) -> Pinned<Box<dyn Future<Output = Result<Part, Refusal>> + Send + 'a>> {
        Box::pin(async move {
            if !url.starts_with(GOOD) {
                return Err(Refusal::Never("the server responded with 404 Not Found".to_owned()));
            }
            let body = Box::pin(stream::iter([Ok(b"image".to_vec().into())]));
            Ok(Part { first: 0, total: Some(5), tag: None, digest: None, body })
        })
    }
}

const GOOD: &str = "http://a.example/good.raw";
const BAD: &str = "http://a.example/bad.raw";

fn open(folder: &Path) -> Arc<Inner> {
    let cache = fake::cache(folder.join("cache"), Arc::new(Small)).unwrap();
    let pins = Mutex::new(Pins::open(folder).unwrap());
    let own = OwnNames::new(["10.77.0.1".to_owned()]);
    let connector = artifact_cache::connector::make(None, Arc::new(|_| Ok(()))).unwrap();
    let origin = Arc::new(HttpOrigin::new(connector));
    let mirror = Mirror::new(cache.clone(), folder, origin, []).unwrap();
    let containers = super::Containers::new(mirror);
    let destinations = Destinations::new(Vec::new());
    let mentions = Mutex::default();
    let origin = Arc::new(Small);
    let inner = Inner { cache, containers, origin, own, destinations, pins, mentions };
    let inner = Arc::new(inner);
    inner.keep_pins();
    inner
}

fn workflow(name: &str, urls: &[&str], state: State) -> Workflow {
    let action = |url: &&str| {
        let environment = [("IMG_URL".to_owned(), (*url).to_owned())].into();
        ActionStatus { environment, ..ActionStatus::default() }
    };
    let task = TaskStatus { actions: urls.iter().map(action).collect(), ..TaskStatus::default() };
    Workflow {
        metadata: ObjectMeta {
            namespace: "default".to_owned(),
            name: name.to_owned(),
            ..ObjectMeta::default()
        },
        status: WorkflowStatus { state, tasks: vec![task], ..WorkflowStatus::default() },
        ..Workflow::default()
    }
}

fn listed(inner: &Inner) -> Vec<image::Image> {
    let pins = inner.pins().list().to_vec();
    report::report(&inner.cache, &inner.mentions().clone(), &pins).items
}

/// Waits until the list of images satisfies `test`.
async fn until(inner: &Inner, test: impl Fn(&[image::Image]) -> bool) -> Vec<image::Image> {
    let wait = Wait::new("the images");
    loop {
        let items = listed(inner);
        if test(&items) {
            return items;
        }
        tokio::time::sleep(wait.pause()).await;
    }
}

fn with_cache_urls(images: &Images, url: &str) -> String {
    images
        .with_cache_urls("image2disk", vec![format!("IMG_URL={url}")], [10, 77, 0, 1].into())
        .remove(0)
}

#[tokio::test]
async fn a_workflows_file_is_fetched_at_once_and_needed_until_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let inner = open(folder.path());
    let images = Images(Some(Arc::clone(&inner)));
    images.put_workflow(&workflow("one", &[GOOD, BAD], State::Pending));
    let over = |items: &[image::Image]| {
        let states: Vec<image::ImageState> = items.iter().map(|item| item.state).collect();
        states == [image::ImageState::Failed, image::ImageState::Ready]
    };
    let items = until(&inner, over).await;
    assert!(
        items[0].needed && items[0].message.ends_with("the server responded with 404 Not Found")
    );
    let good = &items[1];
    assert_eq!((good.origin.as_str(), good.size, good.goes), (GOOD, 5, 0));
    assert_eq!((good.needed, &*good.workflows), (true, &["default/one".to_owned()][..]));
    assert!(matches!(inner.remove(GOOD), Err(ImageError::Conflict(_))));

    let wanted = RemoteFile { url: GOOD.to_owned(), checksum: None };
    let place = format!("IMG_URL=http://10.77.0.1:7080/cache/{}/good.raw", wanted.key());
    assert_eq!(with_cache_urls(&images, GOOD), place);
    assert!(with_cache_urls(&images, BAD).starts_with("IMG_URL=http://10.77.0.1:7080/cache/"));
    assert_eq!(with_cache_urls(&images, "http://10.77.0.1/a"), "IMG_URL=http://10.77.0.1/a");
    let refused = "http://224.0.0.1/a.raw";
    assert_eq!(
        with_cache_urls(&images, refused),
        format!("IMG_URL={refused}"),
        "the machine asks itself"
    );
    assert_eq!(with_cache_urls(&Images(None), GOOD), format!("IMG_URL={GOOD}"));

    images.put_workflow(&workflow("one", &[GOOD, BAD], State::Success));
    let items = until(&inner, |items| items.len() == 1).await;
    assert_eq!((items[0].needed, items[0].goes, items[0].workflows.len()), (false, 1, 1));
    images.remove_workflow(&ObjectKey::new("default", "one"));
    assert!(listed(&inner)[0].workflows.is_empty());
    inner.remove(items[0].short_name()).unwrap();
    assert!(listed(&inner).is_empty());
}

#[tokio::test]
async fn a_pin_fetches_and_outlives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let inner = open(folder.path());
    assert!(matches!(inner.pin("nonsense"), Err(ImageError::Missing(_))));
    assert_eq!(inner.pin(GOOD).unwrap(), "pinned, and being fetched");
    let is_pinned = |items: &[image::Image]| {
        let [one] = items else { return false };
        one.pinned && one.state == image::ImageState::Ready
    };
    until(&inner, is_pinned).await;
    drop(inner);

    // The whole cache volume may be lost.
    std::fs::remove_dir_all(folder.path().join("cache")).unwrap();
    let inner = open(folder.path());
    let items = until(&inner, is_pinned).await;
    assert!(matches!(inner.remove(GOOD), Err(ImageError::Conflict(_))));
    assert_eq!(inner.unpin(items[0].short_name()).unwrap(), "no longer pinned");
    assert!(matches!(inner.unpin(GOOD), Err(ImageError::Missing(_))));
    assert_eq!(listed(&inner)[0].goes, 1);
}

#[tokio::test]
async fn files_of_other_servers_can_be_reached_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let images = Images(Some(open(folder.path())));
    let error = "the server responded with 404 Not Found".to_owned();
    assert_eq!(images.reach(GOOD).await, Some(Ok(())));
    assert_eq!(images.reach(BAD).await, Some(Err(error)));
    // The box itself, and an address that only machines may use.
    for url in ["http://10.77.0.1:7080/images/a.img", "http://127.0.0.1/a.img"] {
        assert_eq!(images.reach(url).await, None, "{url}");
    }
    assert_eq!(Images(None).reach(GOOD).await, None);
}

fn upload(content: Vec<u8>) -> artifact_cache::upload::UploadBody {
    let pieces: Vec<_> = content.chunks(10_000).map(|it| Ok(it.to_vec().into())).collect();
    Box::pin(stream::iter(pieces))
}

#[tokio::test]
async fn an_uploaded_image_is_kept_and_given_to_the_machines_that_install_it() {
    let folder = tempfile::tempdir().unwrap();
    let inner = open(folder.path());
    let images = Images(Some(Arc::clone(&inner)));
    let error = images.upload("web", None, upload(b"<html>".to_vec())).await.unwrap_err();
    assert_eq!(error.to_string(), "the file is a web page or XML");
    let mut disk = vec![7; 100_000];
    disk[510..512].copy_from_slice(&[0x55, 0xaa]);
    let wrong = Some(artifact_cache::Checksum::Sha256(Digest::of(b"other")));
    assert!(images.upload("disk", wrong, upload(disk.clone())).await.is_err());
    let first = images.upload("disk", None, upload(disk.clone())).await.unwrap();
    assert_eq!(first.url, "upload://box/disk.img");
    assert_eq!((first.format, &first.sha256), (Format::Raw, &Digest::of(&disk).hex()));
    assert!(listed(&inner)[0].pinned);

    // A Workflow names the checksum of the version that it installs.
    let wanted = RemoteFile {
        url: first.url.clone(),
        checksum: Some(artifact_cache::Checksum::Sha256(Digest::of(&disk))),
    };
    let environment = [("IMG_URL", &first.url), ("IMG_SHA256", &first.sha256)];
    let environment = environment.map(|(name, value)| format!("{name}={value}")).to_vec();
    let server = Ipv4Addr::new(10, 77, 0, 1);
    let sent = images.with_cache_urls("image2disk", environment, server);
    assert_eq!(sent[0], format!("IMG_URL=http://{server}:7080/cache/{}/disk.img", wanted.key()));
    assert_eq!(inner.cache.digest(&wanted), Some(Digest::of(&disk)));

    // The next upload of this name is pinned instead.
    disk[0] = 8;
    let second = images.upload("disk", None, upload(disk.clone())).await.unwrap();
    assert_eq!(second.url, first.url);
    let pinned: Vec<Pin> = inner.pins().list().to_vec();
    assert_eq!(pinned, [Pin { digest: Some(Digest::of(&disk)), url: Some(second.url) }]);
}
