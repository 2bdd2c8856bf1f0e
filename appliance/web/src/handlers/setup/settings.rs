//! Settings of the box as a text, with their history: `box.toml`.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Form, Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use serde::Deserialize;
use status::settings::{Revision, SettingsReport};

use crate::handlers::access::foreign;
use crate::handlers::audit::about;
use crate::handlers::{Caller, PageResponse, Site, SiteState};
use crate::response::html;
use web_pages::rights::Visitor;
use web_pages::sentence;
use web_pages::setup::settings::{RevisionPage, SettingsPage, revision, settings};

/// Maximum size of a form in bytes: a text at its limit of 64 KiB, in URL encoding.
const FORM_BYTES_MAX: usize = 3 * (64 << 10) + (4 << 10);
/// Reason why a process on another system has no settings on the page.
const NO_SETTINGS: &str = "This Tinbox runs as a program on a host system: change its \
                           configuration file there, then restart tinboxd.";

/// Returns the routes of this module.
pub(crate) fn routes() -> Router<Arc<Site>> {
    Router::new()
        .route("/settings", get(show).post(save))
        .route("/settings/{revision}", get(show_revision))
        .route("/settings/{revision}/restore", post(restore))
        .route_layer(DefaultBodyLimit::max(FORM_BYTES_MAX))
}

/// Change of the settings that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingsRefusal {
    /// The text has mistakes, each with its line.
    Mistakes(Vec<String>),
    /// Another reason, as a sentence for people.
    Why(String),
}

/// Text of the settings of the box. All methods block: they read and write the disk.
pub trait SettingsText: Send + Sync {
    /// Returns the text without its secrets.
    ///
    /// # Errors
    /// The text cannot be read. The error is a sentence for people.
    fn report(&self) -> Result<SettingsReport, String>;
    /// Returns the revisions, oldest first.
    ///
    /// # Errors
    /// They cannot be read. The error is a sentence for people.
    fn history(&self) -> Result<Vec<Revision>, String>;
    /// Returns the difference from a revision to the current text, without secrets.
    ///
    /// # Errors
    /// The revision does not exist. The error is a sentence for people.
    fn diff(&self, revision: u32) -> Result<String, String>;
    /// Replaces the text, based on the text with the checksum `based`. Hidden secrets stay.
    ///
    /// # Errors
    /// The text has mistakes, or another person changed it. Nothing is changed.
    fn replace(&self, based: &str, by: (&str, &str), text: &str) -> Result<(), SettingsRefusal>;
    /// Restores a revision, based on the text with the checksum `based`.
    ///
    /// # Errors
    /// As [`Self::replace`].
    fn restore(&self, based: &str, actor: &str, revision: u32) -> Result<(), SettingsRefusal>;
}

/// Runs `work` on a thread that may block. Fails with a page if the box has no settings.
async fn ask<T: Send + 'static>(
    site: &Arc<Site>,
    work: impl FnOnce(&dyn SettingsText) -> T + Send + 'static,
) -> Result<T, PageResponse> {
    let own = Arc::clone(site);
    let asked = tokio::task::spawn_blocking(move || own.source.settings().map(work)).await;
    let (status, why) = match asked {
        Ok(Some(done)) => return Ok(done),
        Ok(None) => (StatusCode::NOT_FOUND, NO_SETTINGS),
        Err(_) => {
            (StatusCode::INTERNAL_SERVER_ERROR, "The request failed unexpectedly. Try again.")
        }
    };
    Err(html(status, sentence(&*site.view().await, "Settings", why)))
}

/// Text that was sent, with the result.
#[derive(Default)]
struct Sent {
    /// Typed text and note; `None` to show the text of the box.
    typed: Option<(String, String)>,
    refusal: Option<SettingsRefusal>,
    saved: bool,
}

async fn page(site: &Arc<Site>, who: &Visitor, sent: Sent) -> PageResponse {
    let read = ask(site, |settings| Ok::<_, String>((settings.report()?, settings.history()?)));
    let (report, mut history) = match read.await {
        Ok(Ok(read)) => read,
        Ok(Err(why)) => {
            let view = site.view().await;
            return html(StatusCode::INTERNAL_SERVER_ERROR, sentence(&view, "Settings", &why));
        }
        Err(answer) => return answer,
    };
    history.reverse();
    let (mistakes, error) = match sent.refusal {
        Some(SettingsRefusal::Mistakes(mistakes)) => (mistakes, String::new()),
        Some(SettingsRefusal::Why(why)) => (Vec::new(), why),
        None => (Vec::new(), String::new()),
    };
    let is_refused = !mistakes.is_empty() || !error.is_empty();
    let status = if is_refused { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    let (text, note) = sent.typed.unwrap_or_else(|| (report.text.clone(), String::new()));
    let shown = SettingsPage {
        report: &report,
        history: &history,
        text: &text,
        note: &note,
        mistakes: &mistakes,
        error: &error,
        saved: sent.saved,
    };
    html(status, settings(&*site.view().await, who, &shown))
}

async fn show(State(site): SiteState, who: Caller) -> PageResponse {
    page(&site, &who, Sent::default()).await
}

#[derive(Deserialize)]
struct TextForm {
    csrf: String,
    /// Checksum of the text that the person changed.
    #[serde(default)]
    based: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    note: String,
}

async fn save(State(site): SiteState, who: Caller, Form(form): Form<TextForm>) -> PageResponse {
    if !who.sent(&form.csrf) {
        return foreign();
    }
    let TextForm { based, text, note, .. } = form;
    // Browsers send line ends as CR LF.
    let text = text.replace("\r\n", "\n");
    let (actor, typed) = (who.user.name.clone(), (text.clone(), note.clone()));
    let work = move |settings: &dyn SettingsText| settings.replace(&based, (&actor, &note), &text);
    match ask(&site, work).await {
        Ok(Ok(())) => page(&site, &who, Sent { saved: true, ..Sent::default() }).await,
        Ok(Err(refusal)) => {
            let (typed, refusal) = (Some(typed), Some(refusal));
            page(&site, &who, Sent { typed, refusal, saved: false }).await
        }
        Err(answer) => answer,
    }
}

async fn show_revision(
    State(site): SiteState,
    Path(number): Path<u32>,
    who: Caller,
) -> PageResponse {
    let work = move |settings: &dyn SettingsText| {
        let (report, diff) = (settings.report()?, settings.diff(number)?);
        Ok::<_, String>((report.sum, diff))
    };
    match ask(&site, work).await {
        Ok(Ok((sum, diff))) => {
            let shown = RevisionPage { number, based: &sum, diff: &diff };
            html(StatusCode::OK, revision(&*site.view().await, &who, &shown))
        }
        Ok(Err(why)) => {
            html(StatusCode::NOT_FOUND, sentence(&*site.view().await, "Settings", &why))
        }
        Err(answer) => answer,
    }
}

async fn restore(
    State(site): SiteState,
    Path(number): Path<u32>,
    who: Caller,
    Form(form): Form<TextForm>,
) -> PageResponse {
    if !who.sent(&form.csrf) {
        return foreign();
    }
    let (actor, based) = (who.user.name.clone(), form.based);
    let work = move |settings: &dyn SettingsText| settings.restore(&based, &actor, number);
    let answer = match ask(&site, work).await {
        Ok(Ok(())) => page(&site, &who, Sent { saved: true, ..Sent::default() }).await,
        Ok(Err(refusal)) => {
            page(&site, &who, Sent { refusal: Some(refusal), ..Sent::default() }).await
        }
        Err(answer) => answer,
    };
    about(answer, &format!("revision {number}"))
}
