//! Compression of the pages, and the masked CSRF tokens in them.

use std::io::Read as _;

use axum::http::StatusCode;
use flate2::read::GzDecoder;
use http_body_util::BodyExt as _;

use super::{OWNER, ask, header, site};

/// Header of Chromium and Firefox over TLS.
const BROWSER: (&str, &str) = ("accept-encoding", "gzip, deflate, br, zstd");

/// Returns the token of the first form of a page.
fn form_token(page: &str) -> &str {
    let rest = page.split("name=\"csrf\" value=\"").nth(1).unwrap();
    rest.split('"').next().unwrap()
}

#[tokio::test]
async fn a_browser_gets_pages_compressed_and_each_with_another_token() {
    let (owner, router) = site();
    let token = owner.claim(&owner.code().unwrap().0, "long enough", OWNER).unwrap().token;
    let cookie = format!("{}={token}", crate::response::COOKIE);
    let mine = [("cookie", cookie.as_str()), BROWSER];
    let secret = owner.session(&token).unwrap().csrf;
    let mut tokens = Vec::new();
    for path in ["/", "/machines", "/box", "/network", "/search?q=nuc", "/search?q=nuc", "/help"] {
        let answer = ask(&router, &format!("GET {path}"), &mine, "").await;
        assert_eq!(
            (answer.status(), header(&answer, "content-encoding")),
            (StatusCode::OK, "gzip")
        );
        assert_eq!(header(&answer, "cache-control"), "no-store");
        let packed = answer.into_body().collect().await.unwrap().to_bytes();
        let mut page = String::new();
        GzDecoder::new(packed.as_ref()).read_to_string(&mut page).unwrap();
        assert!(!page.contains(&secret), "{path} has the token of the session, unmasked");
        let given = form_token(&page).to_owned();
        assert!(!tokens.contains(&given), "{path}: an attacker could guess this token by sizes");
        tokens.push(given);
    }
    for given in &tokens {
        let answer = ask(&router, "POST /theme", &mine, &format!("csrf={given}&theme=dark")).await;
        assert_eq!(answer.status(), StatusCode::SEE_OTHER, "{given}");
    }
    let answer = ask(&router, "POST /theme", &mine, &format!("csrf={secret}&theme=dark")).await;
    assert_eq!(answer.status(), StatusCode::FORBIDDEN, "only masked tokens are in forms");
}

#[tokio::test]
async fn files_are_compressed_before_the_login_and_secrets_never() {
    let (owner, router) = site();
    for path in ["/S", "/assets/style.css", "/assets/live.js"] {
        let answer = ask(&router, &format!("GET {path}"), &[BROWSER], "").await;
        assert_eq!(header(&answer, "content-encoding"), "gzip", "{path}");
        let plain = ask(&router, &format!("GET {path}"), &[], "").await;
        assert_eq!(header(&plain, "content-encoding"), "", "{path}");
        assert_eq!(header(&plain, "vary"), "accept-encoding", "{path}");
    }
    let token = owner.claim(&owner.code().unwrap().0, "long enough", OWNER).unwrap().token;
    let cookie = format!("{}={token}", crate::response::COOKIE);
    let mine = [("cookie", cookie.as_str()), BROWSER];
    for path in ["/kubeconfig", "/ca.pem", "/machines/nuc-07/console/output"] {
        let answer = ask(&router, &format!("GET {path}"), &mine, "").await;
        assert_eq!((answer.status(), header(&answer, "content-encoding")), (StatusCode::OK, ""));
    }
}

#[tokio::test]
async fn a_page_that_another_origin_requested_is_not_compressed() {
    let (owner, router) = site();
    let token = owner.claim(&owner.code().unwrap().0, "long enough", OWNER).unwrap().token;
    let cookie = format!("{}={token}", crate::response::COOKIE);
    for (cause, encoding) in
        [("cross-site", ""), ("same-site", ""), ("same-origin", "gzip"), ("none", "gzip")]
    {
        let headers = [("cookie", cookie.as_str()), BROWSER, ("sec-fetch-site", cause)];
        let answer = ask(&router, "GET /search?q=value%3D%22a", &headers, "").await;
        assert_eq!(answer.status(), StatusCode::OK, "{cause}");
        assert_eq!(header(&answer, "content-encoding"), encoding, "{cause}");
    }
}
