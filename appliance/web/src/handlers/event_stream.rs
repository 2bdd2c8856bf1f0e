//! Live stream of a page: sends its changed parts as server-sent events. Streams of one page share
//! its parts, so an open tab costs little more than its connection.

mod feed;

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_ENCODING, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use futures_util::stream;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::handlers::{PageResponse, Site};
use crate::response::content;
use feed::Feed;
pub use feed::Feeds;
use page_http::compression::takes_gzip;
use page_http::event_frame::{Encoder, Frame};
use rbac::{Limits, Share};
use web_pages::Page;
use web_pages::rights::Rights;

/// Maximum number of parallel streams. A further stream gets status 503; its page is not updated.
const STREAMS_MAX: usize = 32;
/// Maximum number of them for one user, so that others always have some.
const STREAMS_OF_USER_MAX: usize = 24;
/// Limits of live updates and consoles.
pub(super) const STREAMS: Limits = Limits { total: STREAMS_MAX, each: STREAMS_OF_USER_MAX };
/// Minimum time between two messages; later changes wait for the next message.
const EVERY: Duration = Duration::from_secs(1);
/// Interval of empty messages, which show the page that the box is alive.
const ALIVE: Duration = Duration::from_secs(5);
/// Message without changes, for [`ALIVE`].
static QUIET: LazyLock<Frame> = LazyLock::new(|| Frame::new("parts", None, "{}"));
/// Last message of a stream whose session has ended.
static OUT: LazyLock<Frame> = LazyLock::new(|| Frame::new("out", None, "logged out"));

struct Stream {
    site: Arc<Site>,
    page: Page,
    feed: Arc<Feed>,
    token: String,
    /// Hash of each part that was sent.
    sent: BTreeMap<&'static str, u64>,
    /// Encoded messages of this tick: at most one for each part of the page.
    pending: VecDeque<Bytes>,
    encoder: Encoder,
    quiet: Duration,
    ticks: Interval,
    over: bool,
    _place: Share,
}

/// Starts the stream of one browser tab for a request with `headers`. The stream ends with the
/// session of `token`, and follows changes of its rights.
///
/// The stream is compressed for a client that accepts gzip. It contains no CSRF token: the script
/// of the page fills in the token of the page.
pub fn answer(
    site: Arc<Site>,
    page: Page,
    (headers, token, rights): (&HeaderMap, String, Rights),
    place: Share,
) -> PageResponse {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let is_gzip = takes_gzip(headers);
    let start = Stream {
        feed: site.feeds.of(&page, rights),
        page,
        site,
        token,
        sent: BTreeMap::new(),
        pending: VecDeque::new(),
        encoder: if is_gzip { Encoder::gzip() } else { Encoder::Plain },
        quiet: Duration::ZERO,
        ticks,
        over: false,
        _place: place,
    };
    let messages = stream::unfold(start, |mut stream| async move {
        let bytes = stream.next().await?;
        Some((Ok::<_, Infallible>(bytes), stream))
    });
    let mut answer = content(StatusCode::OK, "text/event-stream", Body::from_stream(messages));
    answer.headers_mut().insert(VARY, HeaderValue::from_static("accept-encoding"));
    if is_gzip {
        answer.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    answer
}

impl Stream {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.pending.pop_front() {
                return Some(bytes);
            }
            if self.over {
                return None;
            }
            self.ticks.tick().await;
            self.collect().await;
        }
    }

    /// Encodes the messages of one tick.
    async fn collect(&mut self) {
        let Some(visitor) = self.site.visitor(&self.token, false).await else {
            self.over = true;
            self.pending.push_back(self.encoder.encode(&OUT));
            self.pending.extend(self.encoder.finish());
            return;
        };
        if visitor.rights != self.feed.rights {
            self.feed = self.site.feeds.of(&self.page, visitor.rights);
        }
        for part in self.feed.parts(&self.site).await.iter() {
            if self.sent.insert(part.id, part.hash) != Some(part.hash) {
                self.pending.push_back(self.encoder.encode(&part.frame));
            }
        }
        self.quiet += EVERY;
        if self.pending.is_empty() && self.quiet >= ALIVE {
            self.pending.push_back(self.encoder.encode(&QUIET));
        }
        if !self.pending.is_empty() {
            self.quiet = Duration::ZERO;
        }
    }
}
