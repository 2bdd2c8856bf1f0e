//! Live stream of a page: sends its changed parts as server-sent events.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::handlers::Site;
use crate::page::Page;

/// Maximum number of parallel streams. A further stream gets status 503; its page is not updated.
pub const STREAMS_MAX: usize = 32;
/// Minimum time between two messages; later changes wait for the next message.
const EVERY: Duration = Duration::from_secs(1);
/// Interval of empty messages, which show the page that the box is alive.
const ALIVE: Duration = Duration::from_secs(5);

struct Stream {
    site: Arc<Site>,
    page: Page,
    token: String,
    sent: BTreeMap<&'static str, String>,
    quiet: Duration,
    ticks: Interval,
    over: bool,
    _place: OwnedSemaphorePermit,
}

/// Starts the stream of one browser tab. The stream ends with the session of `token`.
pub fn answer(site: Arc<Site>, page: Page, token: String, place: OwnedSemaphorePermit) -> Response {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (sent, quiet) = (BTreeMap::new(), Duration::ZERO);
    let start = Stream { site, page, token, sent, quiet, ticks, over: false, _place: place };
    let events = stream::unfold(start, |mut stream| async move {
        let event = stream.next().await?;
        Some((Ok::<_, Infallible>(event), stream))
    });
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

impl Stream {
    async fn next(&mut self) -> Option<Event> {
        if self.over {
            return None;
        }
        loop {
            self.ticks.tick().await;
            let Some(who) = self.site.visitor(&self.token, false).await else {
                self.over = true;
                return Some(Event::default().event("out").data("logged out"));
            };
            let view = self.site.view().await;
            let more = self.site.more(&self.page, &view).await;
            let mut changed = BTreeMap::new();
            for part in self.page.parts(&view, &more, &who) {
                if self.sent.get(part.id) != Some(&part.html) {
                    changed.insert(part.id, part.html.clone());
                    self.sent.insert(part.id, part.html);
                }
            }
            self.quiet += EVERY;
            if changed.is_empty() && self.quiet < ALIVE {
                continue;
            }
            self.quiet = Duration::ZERO;
            let data = serde_json::to_string(&changed).unwrap_or_default();
            let id = view.revision.to_string();
            return Some(Event::default().event("parts").id(id).data(data));
        }
    }
}
