use image_catalog::CatalogError;
use serde_json::{Value, json};
use status::image::Images;

use super::{CacheView, failures, offers, refused, table};

fn os_image(name: &str, distro: &str, version: &str, url: &str, checksum: &Value) -> Value {
    json!({
        "metadata": { "name": name, "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": {
            "url": url, "checksum": checksum, "format": "qcow2",
            "os": { "distro": distro, "version": version },
        },
    })
}

#[test]
fn the_list_shows_the_files_as_the_cache_has_them() {
    let sha256 = json!({ "sha256": "5".repeat(64) });
    let sums = json!({ "url": "https://images.example/SHA512SUMS" });
    let items = [
        os_image("debian-13", "debian", "13", "https://images.example/debian-13.qcow2", &sums),
        os_image("fedora-43", "fedora", "43", "https://images.example/fedora.qcow2", &json!(null)),
        os_image("flatcar", "flatcar", "stable", "https://images.example/flatcar.bz2", &sha256),
        os_image("lost", "debian", "12", "upload://box/lost.img", &sha256),
        os_image("mine", "debian", "13", "upload://box/mine.qcow2", &sha256),
        os_image("talos", "talos", "1.11.2", "https://images.example/talos.zst", &json!(null)),
    ];
    let images: Images = serde_json::from_value(json!({ "items": [
        {
            "origin": "https://images.example/debian-13.qcow2", "state": "fetching",
            "size": 400_u64 << 20, "received": 100_u64 << 20, "bytesPerSecond": 50_u64 << 20,
        },
        {
            "origin": "https://images.example/flatcar.bz2", "state": "failed",
            "message": "could not fetch it: the server responded with 404",
        },
        { "origin": "upload://box/mine.qcow2", "state": "ready", "size": 350_u64 << 20 },
    ]}))
    .unwrap();
    let now = "2026-01-03T00:05:00Z".parse().unwrap();
    let files = CacheView::Files(images.items);
    let print = |view: &CacheView| table(&items, Some(view), now).render(false);
    let others = [CacheView::Absent, CacheView::Hidden].map(|view| print(&view)).join("\n");
    let CacheView::Files(listed) = &files else { panic!("no files") };
    let why = "https://images.example/flatcar.bz2 failed: could not fetch it: the server responded \
               with 404";
    assert_eq!(failures(&items, listed), [why]);
    golden::check("os-image-list.txt", &format!("{}\n{others}", print(&files)));
}

#[test]
fn the_images_of_publishers_are_listed_with_their_state() {
    let known = [
        json!({ "name": "debian-13", "title": "Debian 13", "url": "https://a/b", "added": true }),
        json!({ "name": "talos", "title": "Talos Linux", "url": "https://a/c", "added": false }),
    ];
    golden::check("os-image-publishers.txt", &offers(&known).render(false));
}

#[test]
fn an_error_of_the_catalog_has_a_hint_for_the_command_line() {
    let taken = refused("add", "mine", CatalogError::Taken("mine".to_owned()));
    assert_eq!(taken.to_string(), "cannot add mine: an OS image is called mine");
    let hint = "choose another name, or `tinbox os-image delete mine` first";
    assert_eq!((taken.hint("tinbox").as_deref(), taken.exit_code()), (Some(hint), 4));
    let missing = refused("delete", "mine", CatalogError::Missing("mine".to_owned()));
    let hint = missing.hint("tinbox").unwrap();
    assert_eq!((hint.as_str(), missing.exit_code()), ("`tinbox os-image list` shows all names", 3));
}
