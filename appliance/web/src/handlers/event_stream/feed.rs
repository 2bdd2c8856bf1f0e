//! Parts of a page, rendered once for all its streams.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use crate::handlers::{FRESH, Site};
use page_http::event_frame::Frame;
use web_pages::Page;
use web_pages::design;
use web_pages::rights::{Rights, Visitor};

/// Open pages with their parts: at most one for each open stream.
#[derive(Default)]
pub struct Feeds(Mutex<Vec<Weak<Feed>>>);

impl Feeds {
    /// Returns the feed of a page for visitors with these rights. It exists as long as a stream
    /// uses it.
    pub fn of(&self, page: &Page, rights: Rights) -> Arc<Feed> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|it| it.strong_count() > 0);
        let mut open = all.iter().filter_map(Weak::upgrade);
        if let Some(feed) = open.find(|it| it.page == *page && it.rights == rights) {
            return feed;
        }
        let page = page.clone();
        let feed = Arc::new(Feed { page, rights, latest: tokio::sync::Mutex::default() });
        all.push(Arc::downgrade(&feed));
        feed
    }
}

/// Page with the parts that its streams send.
pub struct Feed {
    page: Page,
    /// Rights of the visitors, who share the parts: others see other buttons.
    pub rights: Rights,
    /// Parts and the time at which they were rendered.
    latest: tokio::sync::Mutex<Option<(Instant, Arc<[SharedPart]>)>>,
}

/// Part of a page, encoded for the streams.
#[derive(Clone)]
pub struct SharedPart {
    /// Id of the HTML element.
    pub id: &'static str,
    /// Hash of the content.
    pub hash: u64,
    /// Event with the content.
    pub frame: Arc<Frame>,
}

impl Feed {
    /// Returns the parts of the page, at most [`FRESH`] old. A part that did not change keeps its
    /// event.
    pub async fn parts(&self, site: &Site) -> Arc<[SharedPart]> {
        let mut latest = self.latest.lock().await;
        if let Some((at, parts)) = latest.as_ref()
            && at.elapsed() < FRESH
        {
            return Arc::clone(parts);
        }
        let view = site.view().await;
        let more = site.more(&self.page, &view).await;
        let before = latest.take().map(|(_, parts)| parts);
        let rendered =
            self.page.parts(&view, &more, &Visitor::shared(self.rights)).into_iter().map(|part| {
                let hash = design::hash(&part.html);
                let mut known = before.iter().flat_map(|parts| parts.iter());
                if let Some(same) = known.find(|it| it.id == part.id && it.hash == hash) {
                    return same.clone();
                }
                let data = serde_json::json!({ part.id: part.html }).to_string();
                let frame = Arc::new(Frame::new("parts", Some(view.revision), &data));
                SharedPart { id: part.id, hash, frame }
            });
        let parts: Arc<[SharedPart]> = rendered.collect();
        *latest = Some((Instant::now(), Arc::clone(&parts)));
        parts
    }

    /// Lets the next call of [`Self::parts`] render the page again.
    #[cfg(test)]
    pub async fn expire(&self) {
        if let Some((at, _)) = self.latest.lock().await.as_mut() {
            *at -= FRESH;
        }
    }
}
