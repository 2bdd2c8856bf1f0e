//! What the box's faces show: one view of it, to which each part of the box tells its own.
//!
//! A part with something new to show is a [`StatusSource`] of its own, and is listed where the
//! faces are put together (`wiring::pages`).

pub mod networks;
pub mod system;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use status::source::{StatusSource, ViewSource};
use status::view::StatusView;
use stdx::Clock;
use web::owner::Owner;

/// Where a view comes from.
pub struct StatusBuilder {
    /// What the box is called.
    pub name: String,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// When this process began.
    pub began: Instant,
    /// Whose the box is.
    pub owner: Arc<Owner>,
    /// Its sources, in their order.
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
