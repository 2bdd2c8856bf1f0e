use std::io::Read as _;

use axum::http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use flate2::read::GzDecoder;
use http_body_util::BodyExt as _;

use super::{Asset, CONSOLE, KEYS, LIVE, style};
use web_pages::design::{SCRIPT, STYLE};

fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| (name.clone(), HeaderValue::try_from(*value).unwrap()))
        .collect()
}

/// Returns status, encoding, entity tag and body of the response.
async fn ask(
    asset: &Asset,
    pairs: &[(HeaderName, &str)],
) -> (StatusCode, Option<HeaderValue>, String, Vec<u8>) {
    let answer = asset.response(&headers(pairs));
    assert_eq!(answer.headers()[VARY], "accept-encoding");
    assert_eq!(answer.headers()["cache-control"], "private, no-cache");
    let tag = answer.headers()[ETAG].to_str().unwrap().to_owned();
    let encoding = answer.headers().get(CONTENT_ENCODING).cloned();
    let status = answer.status();
    (status, encoding, tag, answer.into_body().collect().await.unwrap().to_bytes().to_vec())
}

#[tokio::test]
async fn every_file_is_sent_plain_or_compressed_with_the_same_content() {
    for (asset, kind) in [
        (style("auto"), "text/css; charset=utf-8"),
        (style("dark"), "text/css; charset=utf-8"),
        (&*LIVE, "text/javascript; charset=utf-8"),
        (&*KEYS, "text/javascript; charset=utf-8"),
        (&*CONSOLE, "text/javascript; charset=utf-8"),
    ] {
        assert_eq!(asset.response(&HeaderMap::new()).headers()[CONTENT_TYPE], kind);
        let (status, encoding, tag, plain) = ask(asset, &[]).await;
        assert_eq!((status, encoding), (StatusCode::OK, None));
        let (status, encoding, other_tag, packed) =
            ask(asset, &[(ACCEPT_ENCODING, "gzip, br")]).await;
        assert_eq!((status, encoding.unwrap()), (StatusCode::OK, HeaderValue::from_static("gzip")));
        assert_ne!(tag, other_tag, "a strong tag stands for the same bytes");
        assert!(packed.len() * 4 < plain.len() * 3, "{} of {}", packed.len(), plain.len());
        let mut text = Vec::new();
        GzDecoder::new(packed.as_slice()).read_to_end(&mut text).unwrap();
        assert_eq!(text, plain);
    }
    assert_eq!(ask(&LIVE, &[]).await.3, SCRIPT.as_bytes());
    assert_eq!(ask(style("unknown"), &[]).await.3, STYLE.as_bytes());
}

#[tokio::test]
async fn a_client_that_has_the_file_in_its_encoding_gets_304() {
    let gzip = (ACCEPT_ENCODING, "gzip");
    let (.., plain_tag, _) = ask(&LIVE, &[]).await;
    let (.., tag, _) = ask(&LIVE, std::slice::from_ref(&gzip)).await;
    let listed = format!("\"other\", W/{tag}");
    for known in [tag.as_str(), "*", &listed] {
        let (status, encoding, same, body) =
            ask(&LIVE, &[gzip.clone(), (IF_NONE_MATCH, known)]).await;
        assert_eq!((status, encoding, same), (StatusCode::NOT_MODIFIED, None, tag.clone()));
        assert!(body.is_empty());
    }
    for (encoding, known) in [("gzip", "\"other\""), ("gzip", &plain_tag), ("identity", &tag)] {
        let pairs = [(ACCEPT_ENCODING, encoding), (IF_NONE_MATCH, known)];
        assert_eq!(ask(&LIVE, &pairs).await.0, StatusCode::OK, "{encoding} {known}");
    }
    let dark = ask(style("dark"), &[]).await.2;
    assert_eq!(ask(style("light"), &[(IF_NONE_MATCH, &dark)]).await.0, StatusCode::OK);
}
