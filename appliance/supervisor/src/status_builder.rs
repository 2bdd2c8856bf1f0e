//! Status view of the box, built from status sources of the box's parts.
//!
//! A new part implements [`StatusSource`], and is listed in `wiring::pages`.

pub mod dismissed;
pub mod networks;
pub mod ownership;
pub mod system;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use box_owner::Owner;
use status::source::{StatusSource, ViewSource};
use status::view::StatusView;
use stdx::Clock;

/// Builder of the status view.
pub struct StatusBuilder {
    /// Name of the box.
    pub name: String,
    /// Clock for the time of the view.
    pub clock: Arc<dyn Clock>,
    /// Start time of this process.
    pub began: Instant,
    /// Owner of the box, for claim and login.
    pub owner: Arc<Owner>,
    /// Sources that fill the view, in this order.
    pub parts: Vec<Box<dyn StatusSource>>,
}

impl ViewSource for StatusBuilder {
    fn view(&self) -> Pin<Box<dyn Future<Output = StatusView> + Send + '_>> {
        Box::pin(self.built())
    }
}

impl StatusBuilder {
    async fn built(&self) -> StatusView {
        let mut view = StatusView {
            now: self.clock.now(),
            name: self.name.as_str().into(),
            version: env!("CARGO_PKG_VERSION").into(),
            uptime_seconds: self.began.elapsed().as_secs(),
            ..StatusView::default()
        };
        for part in &self.parts {
            part.fill(&mut view).await;
        }
        view
    }
}
