//! The screens after the claim (FB-5): what each network card is for, the time zone and when
//! updates may restart the box, and what to do next. Each can be left out; nothing is chosen for
//! somebody who does not say so.

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

use crate::answer::{html, see, text};
use crate::page;
use crate::site::{Site, csrf};

/// Cards that a page asks about; more are left as they are.
pub const CARDS_MAX: usize = 16;
/// The first of them.
pub const FIRST: &str = "/setup/network";

/// What the box can be told by these screens.
pub trait Setup: Send + Sync {
    /// Every network card, as it is set up, or as it is proposed while nobody set up any.
    fn cards(&self) -> Vec<Card>;
    /// Sets the cards up. Blocks: it writes to disk.
    ///
    /// # Errors
    /// A sentence; nothing was changed.
    fn set_cards(&self, cards: &[Card]) -> Result<(), String>;
    /// The time zone, and when updates may restart the box.
    fn times(&self) -> Times;
    /// Sets them. Blocks: it writes to disk.
    ///
    /// # Errors
    /// A sentence; nothing was changed.
    fn set_times(&self, times: &Times) -> Result<(), String>;
    /// The names of all time zones.
    fn zones(&self) -> Vec<&'static str>;
    /// Whether something that was set takes a restart of the box.
    fn needs_restart(&self) -> bool;
    /// Restarts it.
    ///
    /// # Errors
    /// A sentence.
    fn restart(&self) -> Result<(), String>;
}

/// A network card.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Card {
    /// `eth1`.
    pub name: String,
    /// Its hardware address.
    pub mac: String,
    /// `1 Gb/s`, `no cable`.
    pub link: String,
    /// Its address now; may be empty.
    pub address: String,
    /// The way to everywhere leads through it.
    pub default_route: bool,
    /// Whom it is for.
    pub role: Role,
    /// Whom DHCP answers there, as `box.toml` has it: `off`, `proxy`, `reserved`, `pool`.
    pub mode: String,
    /// The box's own address on a network that is only for machines: `10.99.0.1/24`.
    pub own: String,
    /// Addresses to give away: `first-last`; may be empty.
    pub pool: String,
    /// The last four digits of its hardware address, by whom they were typed (NW-4).
    pub confirm: String,
}

/// The time zone, and when updates may restart the box.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Times {
    /// `Europe/Berlin`; empty is UTC.
    pub zone: String,
    /// The first minute, `02:00`; empty for all day.
    pub from: String,
    /// The minute after the last, `05:00`; empty for all day.
    pub to: String,
    /// Somebody is asked before every restart.
    pub ask: bool,
}

type Answer = Response<Body>;
type Here = State<Arc<Site>>;
type Fields = Form<HashMap<String, String>>;

/// The screens' paths.
pub(crate) fn routes() -> Router<Arc<Site>> {
    Router::new()
        .route("/setup", get(|| async { see(FIRST) }))
        .route(FIRST, get(show_cards).post(take_cards))
        .route("/setup/time", get(show_times).post(take_times))
        .route("/setup/done", get(show_done))
        .route("/setup/restart", post(restart))
}

/// Does some work on a thread that may wait for the disk.
async fn ask<T: Send + 'static>(
    site: &Arc<Site>,
    work: impl FnOnce(&dyn Setup) -> T + Send + 'static,
) -> Result<T, Answer> {
    let site = Arc::clone(site);
    let asked = tokio::task::spawn_blocking(move || site.source.setup().map(work)).await;
    match asked {
        Ok(Some(done)) => Ok(done),
        Ok(None) => {
            let why = "This box is a program on somebody else's system, which is set up there.";
            Err(text(StatusCode::NOT_FOUND, why))
        }
        Err(_) => Err(text(StatusCode::INTERNAL_SERVER_ERROR, "The box could not do this.")),
    }
}

/// Whether a form is of the session that sends it.
fn own_form(site: &Site, headers: &HeaderMap, fields: &HashMap<String, String>) -> bool {
    csrf(site, headers).is_some_and(|csrf| fields.get("csrf") == Some(&csrf))
}

fn foreign() -> Answer {
    text(StatusCode::FORBIDDEN, "This form is not of your session.")
}

async fn show_cards(State(site): Here, headers: HeaderMap) -> Answer {
    match ask(&site, |setup| setup.cards()).await {
        Ok(cards) => cards_page(&site, &headers, StatusCode::OK, &cards, "").await,
        Err(answer) => answer,
    }
}

async fn cards_page(
    site: &Arc<Site>,
    headers: &HeaderMap,
    status: StatusCode,
    cards: &[Card],
    error: &str,
) -> Answer {
    let csrf = csrf(site, headers).unwrap_or_default();
    html(status, pages::cards(&*site.view().await, cards, &csrf, error))
}

async fn take_cards(State(site): Here, headers: HeaderMap, Form(fields): Fields) -> Answer {
    if !own_form(&site, &headers, &fields) {
        return foreign();
    }
    let done = ask(&site, move |setup| {
        let now = setup.cards();
        match forms::cards(&now, &fields) {
            Ok(cards) => setup.set_cards(&cards).map_err(|why| (cards, why)),
            Err(why) => Err((now, why)),
        }
    });
    match done.await {
        Ok(Ok(())) => see("/setup/time"),
        Ok(Err((cards, why))) => {
            cards_page(&site, &headers, StatusCode::UNPROCESSABLE_ENTITY, &cards, &why).await
        }
        Err(answer) => answer,
    }
}

async fn show_times(State(site): Here, headers: HeaderMap) -> Answer {
    match ask(&site, |setup| (setup.times(), setup.zones())).await {
        Ok(known) => times_page(&site, &headers, StatusCode::OK, known, "").await,
        Err(answer) => answer,
    }
}

async fn times_page(
    site: &Arc<Site>,
    headers: &HeaderMap,
    status: StatusCode,
    (times, zones): (Times, Vec<&'static str>),
    error: &str,
) -> Answer {
    let csrf = csrf(site, headers).unwrap_or_default();
    html(status, pages::times(&*site.view().await, (&times, &zones), &csrf, error))
}

async fn take_times(State(site): Here, headers: HeaderMap, Form(fields): Fields) -> Answer {
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

async fn show_done(State(site): Here, headers: HeaderMap) -> Answer {
    let known = ask(&site, |setup| (setup.cards(), setup.needs_restart())).await;
    let (cards, restart) = match known {
        Ok(known) => known,
        Err(answer) => return answer,
    };
    let csrf = csrf(&site, &headers).unwrap_or_default();
    html(StatusCode::OK, pages::done(&*site.view().await, &cards, restart, &csrf))
}

async fn restart(State(site): Here, headers: HeaderMap, Form(fields): Fields) -> Answer {
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
