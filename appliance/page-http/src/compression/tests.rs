use std::io::Read as _;

use axum::Router;
use axum::body::Body;
use axum::http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Request, Response};
use axum::middleware::from_fn;
use axum::routing::get;
use flate2::read::GzDecoder;
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

use super::{COMPRESSED_BYTES_MIN, compress, takes_gzip};

/// Header of Chromium and Firefox over TLS.
const BROWSER: &str = "gzip, deflate, br, zstd";
const HTML: &str = "text/html; charset=utf-8";

/// Sends a request to a service that answers with `kind` and `size` bytes.
async fn ask(method: &str, accepted: &str, (kind, size): (&'static str, u64)) -> Response<Body> {
    let make = move || async move {
        let mut answer = Response::new(Body::from("a".repeat(size as usize)));
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        answer.headers_mut().insert(ETAG, HeaderValue::from_static("\"plain\""));
        answer
    };
    let router = Router::new().route("/", get(make)).layer(from_fn(compress));
    let request = Request::builder().method(method).uri("/").header(ACCEPT_ENCODING, accepted);
    router.oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
}

fn encoding(answer: &Response<Body>) -> Option<&str> {
    answer.headers().get(CONTENT_ENCODING).map(|it| it.to_str().unwrap())
}

#[tokio::test]
async fn a_page_is_compressed_for_a_browser_and_decodes_to_the_same_text() {
    let answer = ask("GET", BROWSER, (HTML, 50_000)).await;
    assert_eq!(encoding(&answer), Some("gzip"));
    assert_eq!(answer.headers()[VARY], "accept-encoding");
    assert_eq!(answer.headers().get(ETAG), None, "the tag is of other bytes");
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(body.len() < 500, "{}", body.len());
    let mut text = String::new();
    GzDecoder::new(body.as_ref()).read_to_string(&mut text).unwrap();
    assert_eq!(text, "a".repeat(50_000));
}

#[tokio::test]
async fn a_client_without_gzip_gets_the_plain_page_that_depends_on_the_request() {
    for accepted in ["", "br", "gzip;q=0", "identity"] {
        let answer = ask("GET", accepted, (HTML, 5_000)).await;
        assert_eq!((encoding(&answer), &answer.headers()[VARY]), (None, &vary()), "{accepted}");
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes().len(), 5_000);
    }
}

fn vary() -> HeaderValue {
    HeaderValue::from_static("accept-encoding")
}

#[tokio::test]
async fn small_bodies_images_and_downloads_stay_as_they_are() {
    for (kind, size) in [
        (HTML, COMPRESSED_BYTES_MIN - 1),
        ("image/png", 5_000),
        ("application/yaml", 5_000),
        ("application/octet-stream", 5_000),
        ("text/event-stream", 5_000),
    ] {
        let answer = ask("GET", BROWSER, (kind, size)).await;
        assert_eq!(encoding(&answer), None, "{kind}");
        assert!(!answer.headers().contains_key(VARY), "{kind}");
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body.len() as u64, size, "{kind}");
    }
    let answer = ask("GET", BROWSER, (HTML, COMPRESSED_BYTES_MIN)).await;
    assert_eq!(encoding(&answer), Some("gzip"));
}

#[tokio::test]
async fn the_response_to_head_has_the_headers_of_get_and_no_wrong_length() {
    let (get, head) =
        (ask("GET", BROWSER, (HTML, 5_000)).await, ask("HEAD", BROWSER, (HTML, 5_000)).await);
    for name in [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LENGTH, VARY] {
        assert_eq!(head.headers().get(&name), get.headers().get(&name), "{name}");
    }
    assert_eq!(encoding(&head), Some("gzip"));
    assert!(head.into_body().collect().await.unwrap().to_bytes().is_empty());
    let plain = ask("HEAD", "identity", (HTML, 5_000)).await;
    assert_eq!(plain.headers()[CONTENT_LENGTH], "5000");
}

#[test]
fn accepted_encodings_are_read_with_their_quality() {
    for (value, wanted) in [
        (BROWSER, true),
        ("GZIP", true),
        ("deflate, gzip;q=0.5", true),
        ("br;q=1.0, gzip; q=0.000", false),
        ("gzip;q=zero", false),
        ("*", true),
        ("*;q=0", false),
        ("*, gzip;q=0", false),
        ("gzipped", false),
        ("", false),
    ] {
        let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(value))]);
        assert_eq!(takes_gzip(&headers), wanted, "{value}");
    }
    assert!(!takes_gzip(&HeaderMap::new()));
}
