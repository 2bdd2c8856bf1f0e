//! Tests of redirects to the image, and of endless redirects.

use super::server::Server;
use super::{Arc, image, to, write_image, zstd};

#[tokio::test]
async fn redirects_are_followed_to_the_image_and_not_without_end() {
    let server = Server::start(zstd(&image()), &[]).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    let written = async |location: &str| {
        let mut image = to(&path, &server);
        image.url = server.redirect(location).parse().unwrap();
        write_image(&image, &Arc::default()).await.map_err(|error| error.to_string())
    };
    for location in [
        "/images/disk?from=http://mirror.example/disk",
        "images/disk",
        "./b/../images/disk",
        "/to?/to?/images/disk",
    ] {
        std::fs::write(&path, [0xee; 1000]).unwrap();
        written(location).await.unwrap();
        assert!(std::fs::read(&path).unwrap() == image(), "{location}");
    }
    for (location, words) in [
        ("", "/to: it has more than 10 redirects"),
        ("ftp://box/disk", "cannot fetch ftp://box/disk: it does not begin with http://"),
        ("http://me:s3cret@box/disk", "cannot fetch http://box/disk: a user name in it"),
        ("http://", "/to: it redirects to an invalid URL"),
    ] {
        let error = written(location).await.unwrap_err();
        assert!(error.contains(words) && !error.contains("s3cret"), "{location}: {error}");
    }
}
