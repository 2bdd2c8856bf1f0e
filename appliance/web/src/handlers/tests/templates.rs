//! Templates, search, colors and images on the pages.

use api::tinkerbell::TEMPLATE;
use axum::http::StatusCode;
use objects::Objects as _;

use super::machines::Browser;
use super::{ask, header};

const TEXT: &str = "version: \"0.1\"\nname: a\nglobal_timeout: 60\ntasks:\n- name: t\n  worker: \
                    \"{{.device_1}}\"\n  actions:\n  - {name: x, image: y, timeout: 9}\n";

/// Encodes a value of a form.
fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// Returns a browser at a box with the Template `a`.
async fn browser() -> Browser {
    let browser = Browser::new();
    let form = format!("name=a&text={}", encoded(TEXT));
    let made = browser.send("/templates", &form).await;
    assert_eq!((made.status, made.location.as_str()), (StatusCode::SEE_OTHER, "/templates/a"));
    browser
}

async fn text_of(browser: &Browser, name: &str) -> String {
    let all = browser.stored.list(TEMPLATE, None).await.unwrap();
    let found = all.into_iter().find(|it| it["metadata"]["name"] == name).unwrap();
    found["spec"]["data"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_template_is_written_checked_and_rendered_on_its_page() {
    let browser = browser().await;
    let page = browser.ask("GET /templates/a", "").await.page;
    assert!(page.contains("No mistake found."), "{page}");
    let revision = page.split("name=\"revision\" value=\"").nth(1).unwrap();
    let revision = revision.split('"').next().unwrap();
    let form = |text: &str| format!("text={}&revision={revision}", encoded(text));

    let wrong = TEXT.replace("global_timeout", "timout");
    let shown = browser.send("/templates/a", &(form(&wrong) + "&preview=1&machine=nuc-01")).await;
    assert!(shown.page.contains("timout"), "{}", shown.page);
    assert_eq!(text_of(&browser, "a").await, TEXT, "a preview stores nothing");
    let shown = browser.send("/templates/a", &(form(TEXT) + "&preview=1&machine=nuc-01")).await;
    assert_eq!(shown.status, StatusCode::OK);
    assert!(shown.page.contains("52:54:00:77:00:01"), "the agent of the machine: {}", shown.page);

    let changed = TEXT.replace("60", "90").replace('\n', "\r\n");
    let saved = browser.send("/templates/a", &form(&changed)).await;
    assert!(saved.page.contains("The template is saved."), "{}", saved.page);
    assert_eq!(text_of(&browser, "a").await, TEXT.replace("60", "90"));
    // The tab with the older text must not overwrite the newer one, and keeps what was typed.
    let late = browser.send("/templates/a", &form(&TEXT.replace("60", "77"))).await;
    assert_eq!(late.status, StatusCode::CONFLICT);
    assert!(late.page.contains("Another person changed template a meanwhile."), "{}", late.page);
    assert!(late.page.contains("global_timeout: 77"), "the typed text stays");
}

#[tokio::test]
async fn a_template_is_deleted_by_its_typed_name() {
    let browser = browser().await;
    let refused = browser.send("/templates/a/delete", "name=b").await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(browser.count(TEMPLATE).await, 1);
    browser.send("/templates/a/delete", "name=a").await;
    assert_eq!(browser.count(TEMPLATE).await, 0);
    let gone = browser.ask("GET /templates/a", "").await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_library_is_one_button_away() {
    let browser = browser().await;
    let page = browser.ask("GET /templates", "").await.page;
    assert!(page.contains("Add debian"), "{page}");
    let added = browser.send("/templates/add", "name=debian").await;
    assert_eq!(added.location, "/templates/debian");
    assert!(text_of(&browser, "debian").await.contains("10.99.0.1"), "the box's address");
    let again = browser.send("/templates/add", "name=debian").await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    let wrong = browser.send("/templates", &format!("name=A/B&text={}", encoded(TEXT))).await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(wrong.page.contains("global_timeout: 60"), "the typed text stays");
}

#[tokio::test]
async fn nothing_is_written_without_the_csrf_token() {
    let browser = browser().await;
    for path in ["/templates", "/templates/add", "/templates/a", "/templates/a/delete", "/theme"] {
        let form = "csrf=0&name=a&text=x&revision=1&theme=dark&image=x";
        let answer = browser.ask(&format!("POST {path}"), form).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{path}");
    }
    assert_eq!(text_of(&browser, "a").await, TEXT);
}

#[tokio::test]
async fn a_search_opens_its_only_result() {
    let browser = browser().await;
    for (text, place) in [
        ("nuc-07", "/machines/nuc-07"),
        ("52:54:00:77:00:0B", "/machines/nuc-11"),
        ("10.99.0.52", "/machines/nuc-02"),
        ("wf-16", "/workflows/wf-16"),
    ] {
        let answer = browser.ask(&format!("GET /search?q={}", encoded(text)), "").await;
        assert_eq!(answer.location, place, "{text}");
    }
    let several = browser.ask("GET /search?q=nuc", "").await.page;
    assert!(several.contains("<h2>Machines</h2>") && several.contains("/machines/nuc-12"));
    let none = browser.ask("GET /search?q=%3Cb%3E", "").await.page;
    assert!(none.contains("Search: &#60;b&#62;") && none.contains("Nothing matches."), "{none}");
    assert!(browser.ask("GET /search?q=", "").await.page.contains("Nothing matches."));
}

#[tokio::test]
async fn the_chosen_colors_are_those_of_the_style_sheet() {
    let browser = Browser::new();
    let form = format!("csrf={}&theme=dark", browser.csrf);
    let headers = [
        ("cookie", browser.cookie.as_str()),
        ("referer", "https://box.example/machines/nuc-01?done=retry"),
    ];
    let answer = ask(&browser.router, "POST /theme", &headers, &form).await;
    assert_eq!(header(&answer, "location"), "/machines/nuc-01");
    let cookie = header(&answer, "set-cookie").to_owned();
    assert!(cookie.starts_with("__Host-theme=dark; Path=/; Secure; SameSite=Strict"), "{cookie}");
    let unknown = browser.send("/theme", "theme=blue").await;
    assert_eq!(unknown.status, StatusCode::UNPROCESSABLE_ENTITY);
    for (theme, wanted, other) in [
        ("dark", "color-scheme: dark;", "prefers-color-scheme"),
        ("light", "color-scheme: light;", "prefers-color-scheme"),
        ("auto", "prefers-color-scheme: dark", "@media not all"),
    ] {
        let cookie = format!("__Host-theme={theme}");
        let answer =
            ask(&browser.router, "GET /assets/style.css", &[("cookie", &cookie)], "").await;
        let tag = header(&answer, "etag").to_owned();
        let body = http_body_util::BodyExt::collect(answer.into_body()).await.unwrap().to_bytes();
        let style = String::from_utf8_lossy(&body);
        assert!(style.contains(wanted) && !style.contains(other), "{theme}");
        for (cookie, status) in
            [(cookie.as_str(), StatusCode::NOT_MODIFIED), ("__Host-theme=other", StatusCode::OK)]
        {
            let headers = [("cookie", cookie), ("if-none-match", tag.as_str())];
            let again = ask(&browser.router, "GET /assets/style.css", &headers, "").await;
            assert!(again.status() == status || theme == "auto", "{theme} {cookie}");
        }
    }
}

#[tokio::test]
async fn an_image_has_the_operations_that_its_state_permits() {
    let browser = Browser::new();
    let page = browser.ask("GET /images", "").await.page;
    for label in ["Unpin ubuntu-24.04.raw.zst", "Pin rocky-10.raw.zst", "Remove debian-13.raw.zst"]
    {
        assert!(page.contains(&format!("aria-label=\"{label}\"")), "{label}: {page}");
    }
    assert!(!page.contains("Remove ubuntu"), "a pinned image stays");
    let image = encoded("https://images.example.org/debian-13.raw.zst");
    let done = browser.send("/images/remove", &format!("image={image}")).await;
    assert_eq!(done.location, "/images");
    let refused = browser.send("/images/unpin", "image=none").await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    let unknown = browser.send("/images/burn", "image=x").await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
}
