//! Download of a backup, and restore from one (FB-5).

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Form, State};
use axum::http::header::{ACCEPT, CONTENT_DISPOSITION, CONTENT_LENGTH};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use serde::Deserialize;
use status::backup::BackupSummary;
use stdx::Secret;
use tokio::sync::mpsc;

use crate::handlers::Caller;
use crate::handlers::access::foreign;
use crate::handlers::{PageResponse, Peer, Site, SiteState, address, asked, prove, refused};
use crate::response::{content, html, see, text};
use box_owner::AccessError;
use page_http::multipart;
use web_pages as page;

/// Maximum time to read the rest of a refused form. A browser shows the response only after it has
/// sent the whole form.
const REST: Duration = Duration::from_secs(120);
/// Maximum number of file pieces in the queue to the disk.
const PIECES: usize = 4;

#[derive(Deserialize)]
pub struct BackupForm {
    csrf: String,
    passphrase: Secret,
    again: Secret,
    #[serde(default)]
    owner: Secret,
}

/// Sends a new backup as a file.
pub async fn download(
    State(site): SiteState,
    peer: Peer,
    headers: HeaderMap,
    who: Caller,
    Form(request): Form<BackupForm>,
) -> PageResponse {
    if !who.sent(&request.csrf) {
        return foreign();
    }
    if let Err(answer) = prove(&site, (&headers, peer), &request.owner).await {
        return answer;
    }
    let made = match request.passphrase == request.again {
        true => site.source.backup(request.passphrase).await,
        false => Err("The two passphrases are not the same.".to_owned()),
    };
    let made = match made {
        Ok(made) => made,
        Err(why) => {
            return sentence_response(&site, &headers, StatusCode::UNPROCESSABLE_ENTITY, &why)
                .await;
        }
    };
    let mut answer = content(StatusCode::OK, "application/octet-stream", made.body);
    answer.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(made.size));
    let name = format!("attachment; filename=\"{}\"", made.name);
    if let Ok(name) = HeaderValue::from_str(&name) {
        answer.headers_mut().insert(CONTENT_DISPOSITION, name);
    }
    answer
}

/// Sends a sentence: as a page, or as plain text for `Accept: text/plain`.
async fn sentence_response(
    site: &Arc<Site>,
    headers: &HeaderMap,
    status: StatusCode,
    why: &str,
) -> PageResponse {
    if headers.get(ACCEPT).is_some_and(|it| it.as_bytes() == b"text/plain") {
        return text(status, why);
    }
    html(status, page::sentence(&*site.view().await, "Backup", why))
}

#[derive(Deserialize)]
pub struct StoredBackupForm {
    csrf: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    agreed: Option<String>,
    #[serde(default)]
    owner: Secret,
}

/// Restores a backup that the box made itself. It replaces users and tokens too, so it needs the
/// passphrase as their changes do.
pub async fn restore_stored(
    State(site): SiteState,
    peer: Peer,
    headers: HeaderMap,
    who: Caller,
    Form(form): Form<StoredBackupForm>,
) -> PageResponse {
    if !who.sent(&form.csrf) {
        return foreign();
    }
    if let Err(answer) = prove(&site, (&headers, peer), &form.owner).await {
        return answer;
    }
    let restored = match form.agreed {
        Some(_) => site.source.restore_kept(form.name).await,
        None => Err("Nothing was done: tick \"Replace all data on this box\".".to_owned()),
    };
    let (status, words) = match restored {
        Ok(report) => (StatusCode::OK, became(&report)),
        Err(why) => (StatusCode::UNPROCESSABLE_ENTITY, why),
    };
    sentence_response(&site, &headers, status, &words).await
}

fn became(report: &BackupSummary) -> String {
    format!(
        "This box is now {} as it was at {:.0}: {}. The box restarts; log in with the passphrase \
         that was valid at that time.",
        report.name,
        report.made,
        report.contents()
    )
}

/// Restores an uploaded backup to an unclaimed box. The form must contain the claim code.
pub async fn restore(
    State(site): SiteState,
    peer: Peer,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> PageResponse {
    let from = address(peer);
    if site.owner.claimed() {
        return see("/login");
    }
    let unread = |broken: multipart::FormError| (StatusCode::BAD_REQUEST, broken.to_string());
    let form = multipart::Form::of(&headers, body.into_data_stream());
    let mut form = match form.map_err(unread) {
        Ok(form) => form,
        Err((status, why)) => return sentence_response(&site, &headers, status, &why).await,
    };
    let fields = async {
        let code = form.field("code").await?;
        Ok((code, Secret::from(form.field("passphrase").await?)))
    };
    let (code, passphrase) = match fields.await.map_err(unread) {
        Ok(fields) => fields,
        Err((status, why)) => return sentence_response(&site, &headers, status, &why).await,
    };
    let (owner, typed) = (Arc::clone(&site.owner), code.clone());
    let proved = tokio::task::spawn_blocking(move || owner.prove(&typed, from)).await;
    if let Err(refusal) = proved.unwrap_or(Err(AccessError::Busy)) {
        let (ignored, _) = mpsc::channel(PIECES);
        let _ = tokio::time::timeout(REST, form.pass("file", ignored)).await;
        let host = asked(&uri, &headers).unwrap_or_default();
        let (view, screen) = (site.view().await, site.source.has_screen());
        return refused(&refusal, &headers, |why| page::claim(&view, screen, (&code, &host), why));
    }
    let (send, pieces) = mpsc::channel(PIECES);
    let restoring = site.source.restore(pieces, passphrase);
    let (restored, passed) = tokio::join!(restoring, form.pass("file", send));
    let (status, words) = match (restored, passed) {
        (Ok(report), _) => (StatusCode::OK, became(&report)),
        (Err(_), Err(broken)) => unread(broken),
        (Err(why), Ok(())) => (StatusCode::UNPROCESSABLE_ENTITY, why),
    };
    sentence_response(&site, &headers, status, &words).await
}
