//! Parts of the box that fill the status view, and the builder that interfaces request it from.

use std::pin::Pin;
use std::sync::Arc;

use crate::view::StatusView;

/// Return type of [`StatusSource::fill`].
pub type Filling<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Part of the box with data for the status view.
pub trait StatusSource: Send + Sync + 'static {
    /// Fills in what this part knows, and nothing else. Sources run in their order, so a source may
    /// read what earlier ones filled in.
    fn fill<'a>(&'a self, view: &'a mut StatusView) -> Filling<'a>;
}

impl<T: StatusSource> StatusSource for Arc<T> {
    fn fill<'a>(&'a self, view: &'a mut StatusView) -> Filling<'a> {
        self.as_ref().fill(view)
    }
}

/// Builds the status view of this moment.
pub trait ViewSource: Send + Sync + 'static {
    /// Returns the state of the box at this moment.
    fn view(&self) -> Pin<Box<dyn Future<Output = StatusView> + Send + '_>>;
}
