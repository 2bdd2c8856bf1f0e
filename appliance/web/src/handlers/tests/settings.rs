//! Settings as a text on the pages: checks, lost updates, history, and a process without settings.

use axum::http::StatusCode;

use super::example_box::Example;
use super::machines::Browser;

#[tokio::test]
async fn a_text_is_saved_with_its_author_and_an_older_one_is_restored() {
    let browser = Browser::new();
    let page = browser.ask("GET /settings", "").await.page;
    assert!(page.contains("name = &#34;first&#34;"), "{page}");
    let saved = browser.send("/settings", "based=1&text=name+%3D+%22b%22%0D%0A&note=why").await;
    assert_eq!(saved.status, StatusCode::OK);
    assert!(saved.page.contains("The settings are saved."), "{}", saved.page);
    assert!(saved.page.contains("owner (why)"), "{}", saved.page);
    assert!(saved.page.contains("<a href=\"/settings/1\">1</a>"), "{}", saved.page);
    assert!(!saved.page.contains('\r'), "line ends of browsers are not stored");

    let old = browser.ask("GET /settings/1", "").await.page;
    assert!(old.contains("-name = &#34;first&#34;"), "{old}");
    let restored = browser.send("/settings/1/restore", "based=2").await;
    assert!(restored.page.contains("3, in use"), "{}", restored.page);
    for missing in ["GET /settings/9", "GET /settings/x"] {
        assert!(browser.ask(missing, "").await.status.is_client_error(), "{missing}");
    }
}

#[tokio::test]
async fn a_refused_text_stays_in_the_form_and_loses_no_other_change() {
    let browser = Browser::new();
    let wrong = browser.send("/settings", "based=1&text=x+%3D+1&note=mine").await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    for text in ["Nothing was saved", "line 1: the key &#60;x&#62;", "x = 1", "value=\"mine\""] {
        assert!(wrong.page.contains(text), "{text}: {}", wrong.page);
    }
    browser.send("/settings", "based=1&text=name+%3D+2").await;
    let late = browser.send("/settings", "based=1&text=name+%3D+3").await;
    assert_eq!(late.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(late.page.contains("Another person saved meanwhile."), "{}", late.page);
    assert!(late.page.contains("name = 3"), "{}", late.page);
    let stale = browser.send("/settings/1/restore", "based=1").await;
    assert_eq!(stale.status, StatusCode::UNPROCESSABLE_ENTITY);
    let foreign = browser.ask("POST /settings", "csrf=x&based=2&text=name").await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN);
    assert!(browser.ask("GET /settings", "").await.page.contains("name = 2"));
}

#[tokio::test]
async fn a_process_on_another_system_has_no_settings() {
    let browser = Browser::at(Example { is_firmware: false, ..Example::default() });
    for line in ["GET /settings", "GET /settings/1"] {
        let answer = browser.ask(line, "").await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{line}");
        assert!(answer.page.contains("change its configuration file there"), "{}", answer.page);
    }
    assert_eq!(browser.send("/settings", "based=1&text=name").await.status, StatusCode::NOT_FOUND);
}
