//! First setup, after the claim (FB-5): role of each NIC, time zone, hours of updates, next steps.
//! Each page can be skipped; a skipped page changes no setting.

mod forms;
pub mod settings;

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Form, State};
use axum::http::{Response, StatusCode};
use axum::routing::{get, post};

use crate::handlers::Caller;
use crate::handlers::Site;
use crate::handlers::access::foreign;
use crate::response::{html, see, text};
use web_pages as page;
use web_pages::rights::Visitor;
use web_pages::setup as pages;
pub use web_pages::setup::{NICS_MAX, NicSetup, UpdateTimes};

/// Path of the first setup page.
pub const FIRST: &str = "/setup/network";

/// Settings that the first setup can read and change.
pub trait Setup: Send + Sync {
    /// Returns all NICs with their settings; with proposed settings if no NIC is set up yet.
    fn nics(&self) -> Vec<NicSetup>;
    /// Saves the settings of the NICs. Blocks: it writes to disk.
    ///
    /// # Errors
    /// The settings are not valid or cannot be written; nothing changed. Error: a sentence for
    /// people.
    fn set_nics(&self, nics: &[NicSetup]) -> Result<(), String>;
    /// Time zone, and the hours in which updates may restart the box.
    fn times(&self) -> UpdateTimes;
    /// Saves the time zone and the hours. Blocks: it writes to disk.
    ///
    /// # Errors
    /// The settings are not valid or cannot be written; nothing changed. Error: a sentence for
    /// people.
    fn set_times(&self, times: &UpdateTimes) -> Result<(), String>;
    /// Returns the names of all time zones.
    fn zones(&self) -> Vec<&'static str>;
    /// Returns true if a saved change takes effect only after a restart.
    fn needs_restart(&self) -> bool;
    /// Restarts the box and its services.
    ///
    /// # Errors
    /// The box cannot restart. The error is a sentence for people.
    fn restart(&self) -> Result<(), String>;
}

type PageResponse = Response<Body>;
type SiteState = State<Arc<Site>>;
type Fields = Form<HashMap<String, String>>;

/// Returns the routes of the first setup.
pub(crate) fn routes() -> Router<Arc<Site>> {
    Router::new()
        .route("/setup", get(|| async { see(FIRST) }))
        .route(FIRST, get(show_nics).post(take_nics))
        .route("/setup/time", get(show_times).post(take_times))
        .route("/setup/done", get(show_done))
        .route("/setup/restart", post(restart))
}

/// Runs `work` on a thread that may block. Fails with a response if the box has no first setup.
async fn ask<T: Send + 'static>(
    site: &Arc<Site>,
    work: impl FnOnce(&dyn Setup) -> T + Send + 'static,
) -> Result<T, PageResponse> {
    let site = Arc::clone(site);
    let asked = tokio::task::spawn_blocking(move || site.source.setup().map(work)).await;
    match asked {
        Ok(Some(done)) => Ok(done),
        Ok(None) => {
            let why = "This Tinbox runs as a program on a host system: change the settings there.";
            Err(text(StatusCode::NOT_FOUND, why))
        }
        Err(_) => Err(text(
            StatusCode::INTERNAL_SERVER_ERROR,
            "The request failed unexpectedly. Try again.",
        )),
    }
}

/// Returns true if the form contains the CSRF token of its session.
fn own_form(who: &Visitor, fields: &HashMap<String, String>) -> bool {
    fields.get("csrf").is_some_and(|given| who.sent(given))
}

async fn show_nics(State(site): SiteState, who: Caller) -> PageResponse {
    match ask(&site, |setup| setup.nics()).await {
        Ok(nics) => nics_page(&site, &who, StatusCode::OK, &nics, "").await,
        Err(answer) => answer,
    }
}

async fn nics_page(
    site: &Arc<Site>,
    who: &Visitor,
    status: StatusCode,
    nics: &[NicSetup],
    error: &str,
) -> PageResponse {
    html(status, pages::nics(&*site.view().await, nics, &who.csrf, error))
}

async fn take_nics(State(site): SiteState, who: Caller, Form(fields): Fields) -> PageResponse {
    if !own_form(&who, &fields) {
        return foreign();
    }
    let done = ask(&site, move |setup| {
        let now = setup.nics();
        match forms::nics(&now, &fields) {
            Ok(nics) => setup.set_nics(&nics).map_err(|why| (nics, why)),
            Err(why) => Err((now, why)),
        }
    });
    match done.await {
        Ok(Ok(())) => see("/setup/time"),
        Ok(Err((nics, why))) => {
            nics_page(&site, &who, StatusCode::UNPROCESSABLE_ENTITY, &nics, &why).await
        }
        Err(answer) => answer,
    }
}

async fn show_times(State(site): SiteState, who: Caller) -> PageResponse {
    match ask(&site, |setup| (setup.times(), setup.zones())).await {
        Ok(known) => times_page(&site, &who, StatusCode::OK, known, "").await,
        Err(answer) => answer,
    }
}

async fn times_page(
    site: &Arc<Site>,
    who: &Visitor,
    status: StatusCode,
    (times, zones): (UpdateTimes, Vec<&'static str>),
    error: &str,
) -> PageResponse {
    html(status, pages::times(&*site.view().await, (&times, &zones), &who.csrf, error))
}

async fn take_times(State(site): SiteState, who: Caller, Form(fields): Fields) -> PageResponse {
    if !own_form(&who, &fields) {
        return foreign();
    }
    let done = ask(&site, move |setup| match forms::times(&fields) {
        Ok(times) => (setup.set_times(&times), times, setup.zones()),
        Err(why) => (Err(why), setup.times(), setup.zones()),
    });
    match done.await {
        Ok((Ok(()), ..)) => see("/setup/done"),
        Ok((Err(why), times, zones)) => {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            times_page(&site, &who, status, (times, zones), &why).await
        }
        Err(answer) => answer,
    }
}

async fn show_done(State(site): SiteState, who: Caller) -> PageResponse {
    let known = ask(&site, |setup| (setup.nics(), setup.needs_restart())).await;
    let (nics, restart) = match known {
        Ok(known) => known,
        Err(answer) => return answer,
    };
    html(StatusCode::OK, pages::done(&*site.view().await, &nics, restart, &who.csrf))
}

async fn restart(State(site): SiteState, who: Caller, Form(fields): Fields) -> PageResponse {
    if !own_form(&who, &fields) {
        return foreign();
    }
    let (title, why) = match ask(&site, |setup| setup.restart()).await {
        Ok(Ok(())) => {
            let why = "The box restarts, which takes about half a minute. If the address of the \
                       box has changed, the box's screen shows the new address.";
            ("Restarting", why.to_owned())
        }
        Ok(Err(why)) => ("Not restarting", why),
        Err(answer) => return answer,
    };
    html(StatusCode::OK, page::sentence(&*site.view().await, title, &why))
}

#[cfg(test)]
mod tests;
