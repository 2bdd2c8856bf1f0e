//! Updates of the box's system by the page.

use super::*;

pub struct Browser {
    router: Router,
    cookie: String,
    /// CSRF token of the session, masked.
    pub csrf: String,
}

impl Browser {
    pub fn new() -> Self {
        let (owner, router) = site();
        owner.claim(&owner.code().unwrap().0, "long enough", OWNER).unwrap();
        let token = owner.enter("", "long enough", OWNER).unwrap().token;
        let csrf = masked(&owner.session(&token).unwrap().csrf);
        Self { router, cookie: format!("{}={token}", crate::response::COOKIE), csrf }
    }

    pub async fn send(&self, path: &str, kind: &str, body: &str) -> (StatusCode, String) {
        let headers = [("cookie", self.cookie.as_str()), ("content-type", kind)];
        let answer = ask(&self.router, &format!("POST {path}"), &headers, body).await;
        let (status, place) = (answer.status(), header(&answer, "location").to_owned());
        let text = answer.into_body().collect().await.unwrap().to_bytes();
        (status, place + &String::from_utf8_lossy(&text))
    }

    /// Returns the content of a page.
    pub async fn page(&self, path: &str) -> String {
        let headers = [("cookie", self.cookie.as_str())];
        let answer = ask(&self.router, &format!("GET {path}"), &headers, "").await;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        let text = answer.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Sends a form with a file.
    pub async fn send_multipart(
        &self,
        path: &str,
        fields: &[(&str, &str)],
    ) -> (StatusCode, String) {
        let field = |(name, text): &(&str, &str)| {
            format!("--xyz\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n")
        };
        let fields: String = fields.iter().map(field).collect();
        let kind = "multipart/form-data; boundary=xyz";
        self.send(path, kind, &format!("{fields}--xyz--\r\n")).await
    }

    /// Uploads a bundle by the form of the page.
    async fn upload(&self, csrf: &str, restart: &str, file: &str) -> (StatusCode, String) {
        let fields = [("csrf", csrf), ("restart", restart), ("file", file)];
        self.send_multipart("/box/update", &fields).await
    }
}

#[tokio::test]
async fn a_bundle_is_installed_and_a_refused_one_says_why() {
    let browser = Browser::new();
    let done = browser.upload(&browser.csrf, "idle", "signed").await;
    assert_eq!(done, (StatusCode::SEE_OTHER, "/box".to_owned()));
    for (restart, file) in [("now", "signed"), ("idle", "forged"), ("idle", "")] {
        let (status, page) = browser.upload(&browser.csrf, restart, file).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{restart} {file}");
        assert!(page.contains("The signature is not valid."), "{page}");
    }
    let (status, _) = browser.upload("f00", "idle", "signed").await;
    assert_eq!(status, StatusCode::FORBIDDEN, "a form without the token of the session");
    let (status, page) = browser.send("/box/update", "text/plain", "signed").await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{page}");
}

#[tokio::test]
async fn the_box_restarts_and_returns_by_forms() {
    let browser = Browser::new();
    let form = "application/x-www-form-urlencoded";
    let csrf = format!("csrf={}", browser.csrf);
    let done = browser.send("/box/update/rollback", form, &csrf).await;
    assert_eq!(done, (StatusCode::SEE_OTHER, "/box".to_owned()));
    let (status, page) = browser.send("/box/update/restart", form, &csrf).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(page.contains("No update waits for a restart."), "{page}");
    let (status, _) = browser.send("/box/update/erase", form, &csrf).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, _) = browser.send("/box/update/rollback", form, "csrf=f00").await;
    assert_eq!(status, StatusCode::FORBIDDEN);
}
