//! OS images: upload, images by URL and of publishers, deletion.

use super::updates::Browser;
use super::*;

const FORM: &str = "application/x-www-form-urlencoded";

/// Uploads a file by the form of the page.
async fn upload(browser: &Browser, csrf: &str, name: &str, file: &str) -> (StatusCode, String) {
    let fields = [
        ("csrf", csrf),
        ("name", name),
        ("distro", "debian"),
        ("version", "13"),
        ("checksum", ""),
        ("file", file),
    ];
    browser.send_multipart("/os-images/upload", &fields).await
}

#[tokio::test]
async fn an_image_is_uploaded_listed_and_deleted() {
    let browser = Browser::new();
    let csrf = browser.csrf.clone();
    assert!(browser.page("/os-images").await.contains("No OS images yet."));
    let (status, page) = upload(&browser, &csrf, "Debian 13", "disk").await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(page.contains("is not a valid name") && page.contains("value=\"13\""), "{page}");
    let (status, page) = upload(&browser, &csrf, "debian-13", "<html>").await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(page.contains("The file is a web page or XML."), "{page}");
    let (status, _) = upload(&browser, "f00", "debian-13", "disk").await;
    assert_eq!(status, StatusCode::FORBIDDEN, "a form without the token of the session");
    let done = upload(&browser, &csrf, "debian-13", "disk").await;
    assert_eq!(done, (StatusCode::SEE_OTHER, "/os-images".to_owned()));
    let page = browser.page("/os-images").await;
    assert!(page.contains("<strong>debian-13</strong>") && page.contains("uploaded"), "{page}");

    let form = format!("csrf={csrf}&name=debian-13");
    let done = browser.send("/os-images/delete", FORM, &form).await;
    assert_eq!(done, (StatusCode::SEE_OTHER, "/os-images".to_owned()));
    let (status, page) = browser.send("/os-images/delete", FORM, &form).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(page.contains("No OS image is called debian-13."), "{page}");
}

#[tokio::test]
async fn images_of_publishers_and_by_url_are_added_and_fetched() {
    let browser = Browser::new();
    let csrf = browser.csrf.clone();
    let known = format!("csrf={csrf}&name=fedora-43");
    let there = (StatusCode::SEE_OTHER, "/os-images".to_owned());
    assert_eq!(browser.send("/os-images/known", FORM, &known).await, there);
    let page = browser.page("/os-images").await;
    assert!(page.contains("Fedora-Cloud-Base") && !page.contains("Add Fedora"), "{page}");
    assert_eq!(browser.send("/os-images/fetch", FORM, &known).await, there);
    let by_url =
        |url: &str| format!("csrf={csrf}&name=mine&distro=debian&version=13&checksum=&url={url}");
    let (status, page) = browser.send("/os-images", FORM, &by_url("ftp://a/b")).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(page.contains("is not a URL: expected http:// or https://"), "{page}");
    assert_eq!(browser.send("/os-images", FORM, &by_url("https://a/b.qcow2")).await, there);
    let (status, page) = browser.send("/os-images", FORM, &by_url("https://a/c.qcow2")).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(page.contains("An OS image is called mine."), "{page}");
    for path in ["/os-images/known", "/os-images/fetch", "/os-images/delete", "/os-images"] {
        let form = by_url("https://a/d.qcow2").replace(&csrf, "f00");
        let (status, _) = browser.send(path, FORM, &form).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}");
    }
    let (status, _) = browser.send("/os-images/erase", FORM, &known).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}
