//! What the box's faces show: one view of it, to which each part of the box tells its own.
//!
//! Whoever has something new to show is a [`Tells`] of its own, and is listed where the faces are
//! put together (`wiring::pages`).

pub mod contested;
pub mod images;
pub mod machines;
pub mod networks;
pub mod owner;
pub mod system;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use status::view::StatusView;
use stdx::Clock;
use web::owner::Owner;

/// What [`Tells::tell`] returns.
pub type Telling<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A part of the box that has something to tell.
pub trait Tells: Send + Sync + 'static {
    /// Fills what this part knows into the view, and nothing else. Parts are asked in their order,
    /// so it may read what those before it told.
    fn tell<'a>(&'a self, view: &'a mut StatusView) -> Telling<'a>;
}

/// Where a view comes from.
pub struct Faces {
    /// What the box is called.
    pub name: String,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// When this process began.
    pub began: Instant,
    /// Whose the box is.
    pub owner: Arc<Owner>,
    /// Those that tell, in their order.
    pub parts: Vec<Box<dyn Tells>>,
}

impl Faces {
    /// The box at this moment.
    pub async fn view(&self) -> StatusView {
        let mut view = StatusView {
            now: self.clock.now(),
            name: self.name.as_str().into(),
            version: env!("CARGO_PKG_VERSION").into(),
            uptime_seconds: self.began.elapsed().as_secs(),
            ..StatusView::default()
        };
        for part in &self.parts {
            part.tell(&mut view).await;
        }
        view
    }
}
