//! Download and restore of backups.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt as _;

use super::machines::Browser;
use super::*;

fn restoring(code: &str, passphrase: &str) -> String {
    let field = |name: &str, text: &str| {
        format!("--xyz\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n")
    };
    let fields = [("code", code), ("passphrase", passphrase), ("file", "a backup")];
    fields.map(|(name, text)| field(name, text)).concat() + "--xyz--\r\n"
}

#[tokio::test]
async fn a_box_without_an_owner_takes_a_backup_from_who_knows_its_code() {
    let (owner, router) = site();
    let (code, left) = owner.code().unwrap();
    let form = [
        ("content-type", "multipart/form-data; boundary=xyz"),
        ("accept", "text/plain"),
        ("origin", "https://10.0.0.9:443"),
    ];
    let post = async |code: &str, passphrase: &str| {
        let body = restoring(code, passphrase);
        let answer = ask(&router, "POST /S/restore", &form, &body).await;
        let status = answer.status();
        let text = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8_lossy(&text).into_owned())
    };
    let other = if code == "000000" { "000001" } else { "000000" };
    let (status, message) = post(other, "its own").await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{message}");
    assert_eq!(owner.code().unwrap().1, left - 1, "a guess at the code counts as one");
    let (status, message) = post(&code, "another").await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(message, "Wrong passphrase for this backup.\n");
    let (status, message) = post(&code, "its own").await;
    assert_eq!(status, StatusCode::OK, "{message}");
    assert!(
        message.starts_with("This box is now b as it was at 1970-01-01T00:00:00Z: "),
        "{message}"
    );

    let plain = [("content-type", "application/octet-stream")];
    let answer = ask(&router, "POST /S/restore", &plain, "a backup").await;
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
    owner.claim(&code, "long enough", OWNER).unwrap();
    let answer = ask(&router, "POST /S/restore", &form, &restoring(&code, "its own")).await;
    assert_eq!(header(&answer, "location"), "/login", "it has an owner");
}

#[tokio::test]
async fn a_refused_backup_is_read_to_its_end_so_that_a_browser_shows_why() {
    let (owner, router) = site();
    let other = if owner.code().unwrap().0 == "000000" { "000001" } else { "000000" };
    let whole = restoring(other, "its own").into_bytes();
    let pieces: Vec<Vec<u8>> = whole.chunks(16).map(<[u8]>::to_vec).collect();
    let read = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&read);
    let pieces = futures_util::stream::iter(pieces).map(move |piece| {
        counted.fetch_add(piece.len(), Ordering::Relaxed);
        Ok::<_, Infallible>(piece)
    });
    let request = Request::post("/S/restore").header("host", "10.0.0.9:443");
    let request = request.header("content-type", "multipart/form-data; boundary=xyz");
    let request = request.body(Body::from_stream(pieces)).unwrap();
    let answer = router.oneshot(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    assert!(read.load(Ordering::Relaxed) + 16 > whole.len(), "{read:?} of {}", whole.len());
}

#[tokio::test]
async fn the_owner_takes_a_backup_away() {
    let (owner, router) = site();
    let token = owner.claim(&owner.code().unwrap().0, "long enough", OWNER).unwrap().token;
    let (cookie, csrf) = (
        format!("{}={token}", crate::response::COOKIE),
        masked(&owner.session(&token).unwrap().csrf),
    );
    let mine = [("cookie", cookie.as_str())];
    let page = ask(&router, "GET /box", &mine, "").await.into_body();
    let page = page.collect().await.unwrap().to_bytes();
    let page = String::from_utf8_lossy(&page);
    assert!(page.contains("action=\"/backup\""), "the form is there: {page}");
    let post = async |csrf: &str, again: &str, headers: &[(&str, &str)]| {
        let form = format!("csrf={csrf}&passphrase=correct+horse&again={again}");
        ask(&router, "POST /backup", headers, &form).await
    };
    let answer = post(&csrf, "correct+horse", &mine).await;
    assert_eq!(header(&answer, "content-length"), "22");
    assert_eq!(header(&answer, "content-disposition"), "attachment; filename=\"box.boxbak\"");
    let file = answer.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(file, "sealed with 13 letters");
    let answer = post(&csrf, "another", &mine).await;
    assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(post("guess", "correct+horse", &mine).await.status(), StatusCode::FORBIDDEN);
    assert_eq!(header(&post(&csrf, "correct+horse", &[]).await, "location"), "/login");
}

#[tokio::test]
async fn the_owner_restores_a_backup_that_the_box_kept() {
    let (owner, router) = site();
    let token = owner.claim(&owner.code().unwrap().0, "long enough", OWNER).unwrap().token;
    let (cookie, csrf) = (
        format!("{}={token}", crate::response::COOKIE),
        masked(&owner.session(&token).unwrap().csrf),
    );
    let mine = [("cookie", cookie.as_str()), ("accept", "text/plain")];
    let post = async |csrf: &str, name: &str, agreed: &str, headers: &[(&str, &str)]| {
        let form = format!("csrf={csrf}&name={name}{agreed}");
        ask(&router, "POST /backup/kept", headers, &form).await
    };
    let (name, yes) = ("2026-11-25T02-30-00Z.boxbak", "&agreed=yes");
    assert_eq!(post("guess", name, yes, &mine).await.status(), StatusCode::FORBIDDEN);
    assert_eq!(header(&post(&csrf, name, yes, &[]).await, "location"), "/login");
    let answer = post(&csrf, name, "", &mine).await;
    assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY, "nobody agreed");
    let answer = post(&csrf, "../x", yes, &mine).await;
    assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let answer = post(&csrf, name, yes, &mine).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let message = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(message.starts_with(b"This box is now b as it was at"), "{message:?}");
}

#[tokio::test]
async fn a_backup_is_sent_to_the_configured_server_only() {
    let with = Browser::new().send("/backup/send", "").await;
    assert_eq!(with.status, StatusCode::OK);
    assert!(with.page.contains("A backup is sent now."), "{}", with.page);
    let without = Browser::at(Example { is_firmware: false, ..Example::default() });
    let refused = without.send("/backup/send", "").await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert!(refused.page.contains("No other server is configured."), "{}", refused.page);
    let foreign = without.ask("POST /backup/send", "csrf=x").await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN);
}
