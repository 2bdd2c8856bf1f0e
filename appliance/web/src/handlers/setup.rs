//! First setup, after the claim (FB-5): role of each NIC, time zone, hours of updates, next steps.
//! Each page can be skipped; nothing is changed without a choice.

mod forms;
pub(crate) mod pages;

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Form, State};
use axum::http::{HeaderMap, Response, StatusCode};
use axum::routing::{get, post};
use status::view::Role;

use crate::handlers::{Site, csrf};
use crate::page;
use crate::response::{html, see, text};

/// Limit of NICs on a page; others keep their settings.
pub const NICS_MAX: usize = 16;
/// The first of them.
pub const FIRST: &str = "/setup/network";

/// Settings that the first setup can read and change.
pub trait Setup: Send + Sync {
    /// All NICs with their settings; if none is set up yet, with proposed ones.
    fn nics(&self) -> Vec<NicSetup>;
    /// Sets the nics up. Blocks: it writes to disk.
    ///
    /// # Errors
    /// A sentence; nothing was changed.
    fn set_nics(&self, nics: &[NicSetup]) -> Result<(), String>;
    /// The time zone, and when updates may restart the box.
    fn times(&self) -> UpdateTimes;
    /// Sets them. Blocks: it writes to disk.
    ///
    /// # Errors
    /// A sentence; nothing was changed.
    fn set_times(&self, times: &UpdateTimes) -> Result<(), String>;
    /// The names of all time zones.
    fn zones(&self) -> Vec<&'static str>;
    /// True if a change takes effect only after a restart.
    fn needs_restart(&self) -> bool;
    /// Restarts the box and its services.
    ///
    /// # Errors
    /// A sentence for people.
    fn restart(&self) -> Result<(), String>;
}

/// A NIC and its settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NicSetup {
    /// Name of the interface: `eth1`.
    pub name: String,
    /// MAC address of the NIC.
    pub mac: String,
    /// `1 Gb/s`, `no cable`.
    pub link: String,
    /// Its address now; may be empty.
    pub address: String,
    /// The way to everywhere leads through it.
    pub default_route: bool,
    /// Machines or people that the NIC is for.
    pub role: Role,
    /// DHCP mode, as in `box.toml`: `off`, `proxy`, `reserved`, `pool`.
    pub mode: String,
    /// The box's own address on a network that is only for machines: `10.99.0.1/24`.
    pub own: String,
    /// Addresses to give away: `first-last`; may be empty.
    pub pool: String,
    /// Last four digits of the MAC, typed as confirmation (NW-4).
    pub confirm: String,
}

/// The time zone, and when updates may restart the box.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpdateTimes {
    /// `Europe/Berlin`; empty is UTC.
    pub zone: String,
    /// The first minute, `02:00`; empty for all day.
    pub from: String,
    /// The minute after the last, `05:00`; empty for all day.
    pub to: String,
    /// True if a person has to start each restart.
    pub ask: bool,
}

type PageResponse = Response<Body>;
type SiteState = State<Arc<Site>>;
type Fields = Form<HashMap<String, String>>;

/// Routes of the first setup.
pub(crate) fn routes() -> Router<Arc<Site>> {
    Router::new()
        .route("/setup", get(|| async { see(FIRST) }))
        .route(FIRST, get(show_nics).post(take_nics))
        .route("/setup/time", get(show_times).post(take_times))
        .route("/setup/done", get(show_done))
        .route("/setup/restart", post(restart))
}

/// Does some work on a thread that may wait for the disk.
async fn ask<T: Send + 'static>(
    site: &Arc<Site>,
    work: impl FnOnce(&dyn Setup) -> T + Send + 'static,
) -> Result<T, PageResponse> {
    let site = Arc::clone(site);
    let asked = tokio::task::spawn_blocking(move || site.source.setup().map(work)).await;
    match asked {
        Ok(Some(done)) => Ok(done),
        Ok(None) => {
            let why = "This box runs as a process on another system; set it up there.";
            Err(text(StatusCode::NOT_FOUND, why))
        }
        Err(_) => Err(text(StatusCode::INTERNAL_SERVER_ERROR, "The box could not do this.")),
    }
}

/// True if the form carries the CSRF token of its session.
fn own_form(site: &Site, headers: &HeaderMap, fields: &HashMap<String, String>) -> bool {
    csrf(site, headers).is_some_and(|csrf| fields.get("csrf") == Some(&csrf))
}

fn foreign() -> PageResponse {
    text(StatusCode::FORBIDDEN, "This form does not belong to your session.")
}

async fn show_nics(State(site): SiteState, headers: HeaderMap) -> PageResponse {
    match ask(&site, |setup| setup.nics()).await {
        Ok(nics) => nics_page(&site, &headers, StatusCode::OK, &nics, "").await,
        Err(answer) => answer,
    }
}

async fn nics_page(
    site: &Arc<Site>,
    headers: &HeaderMap,
    status: StatusCode,
    nics: &[NicSetup],
    error: &str,
) -> PageResponse {
    let csrf = csrf(site, headers).unwrap_or_default();
    html(status, pages::nics(&*site.view().await, nics, &csrf, error))
}

async fn take_nics(
    State(site): SiteState,
    headers: HeaderMap,
    Form(fields): Fields,
) -> PageResponse {
    if !own_form(&site, &headers, &fields) {
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
            nics_page(&site, &headers, StatusCode::UNPROCESSABLE_ENTITY, &nics, &why).await
        }
        Err(answer) => answer,
    }
}

async fn show_times(State(site): SiteState, headers: HeaderMap) -> PageResponse {
    match ask(&site, |setup| (setup.times(), setup.zones())).await {
        Ok(known) => times_page(&site, &headers, StatusCode::OK, known, "").await,
        Err(answer) => answer,
    }
}

async fn times_page(
    site: &Arc<Site>,
    headers: &HeaderMap,
    status: StatusCode,
    (times, zones): (UpdateTimes, Vec<&'static str>),
    error: &str,
) -> PageResponse {
    let csrf = csrf(site, headers).unwrap_or_default();
    html(status, pages::times(&*site.view().await, (&times, &zones), &csrf, error))
}

async fn take_times(
    State(site): SiteState,
    headers: HeaderMap,
    Form(fields): Fields,
) -> PageResponse {
    if !own_form(&site, &headers, &fields) {
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
            times_page(&site, &headers, status, (times, zones), &why).await
        }
        Err(answer) => answer,
    }
}

async fn show_done(State(site): SiteState, headers: HeaderMap) -> PageResponse {
    let known = ask(&site, |setup| (setup.nics(), setup.needs_restart())).await;
    let (nics, restart) = match known {
        Ok(known) => known,
        Err(answer) => return answer,
    };
    let csrf = csrf(&site, &headers).unwrap_or_default();
    html(StatusCode::OK, pages::done(&*site.view().await, &nics, restart, &csrf))
}

async fn restart(State(site): SiteState, headers: HeaderMap, Form(fields): Fields) -> PageResponse {
    if !own_form(&site, &headers, &fields) {
        return foreign();
    }
    let (title, why) = match ask(&site, |setup| setup.restart()).await {
        Ok(Ok(())) => {
            let why = "The box restarts. In about half a minute its page is here again; if its \
                       address changed, its own screen shows the new one.";
            ("Restarting", why.to_owned())
        }
        Ok(Err(why)) => ("Not restarting", why),
        Err(answer) => return answer,
    };
    html(StatusCode::OK, page::sentence(&*site.view().await, title, &why))
}

#[cfg(test)]
mod tests;
