//! Status source for the image cache.

use std::sync::Arc;
use std::time::{Duration, Instant};

use status::image;
use status::source::{Filling, StatusSource};
use status::view::StatusView;
use tokio::sync::Mutex;

use crate::images::Images;

/// Minimum time between two reads of the cache folders.
const EVERY: Duration = Duration::from_secs(2);

/// Status source that reads the cache when a view is requested, at most every two seconds.
pub struct ImageSource {
    images: Images,
    kept: Mutex<Option<(Instant, Arc<image::Images>)>>,
}

impl ImageSource {
    /// Creates a source for the images of the box.
    pub fn new(images: Images) -> Self {
        Self { images, kept: Mutex::default() }
    }

    async fn read(&self) -> Arc<image::Images> {
        let mut kept = self.kept.lock().await;
        if let Some((at, images)) = kept.as_ref()
            && at.elapsed() < EVERY
        {
            return Arc::clone(images);
        }
        let images = self.images.clone();
        let read = tokio::task::spawn_blocking(move || images.report()).await;
        let read = Arc::new(read.unwrap_or_default());
        *kept = Some((Instant::now(), Arc::clone(&read)));
        read
    }
}

impl StatusSource for ImageSource {
    fn fill<'a>(&'a self, view: &'a mut StatusView) -> Filling<'a> {
        Box::pin(async move {
            view.images = image::Images::clone(&*self.read().await);
            view.explain_images();
        })
    }
}
