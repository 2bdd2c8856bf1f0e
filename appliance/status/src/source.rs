//! Traits of the parts that fill the status view, and of the builder that returns it.

use std::pin::Pin;
use std::sync::Arc;

use crate::view::StatusView;

/// Return type of [`StatusSource::fill`].
pub type Filling<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Subsystem with data for the status view.
pub trait StatusSource: Send + Sync + 'static {
    /// Fills in the fields of this subsystem only. Sources run one after the other, so a source may
    /// read the fields of earlier sources.
    fn fill<'a>(&'a self, view: &'a mut StatusView) -> Filling<'a>;
}

impl<T: StatusSource> StatusSource for Arc<T> {
    fn fill<'a>(&'a self, view: &'a mut StatusView) -> Filling<'a> {
        self.as_ref().fill(view)
    }
}

/// Builder of the current status view.
pub trait ViewSource: Send + Sync + 'static {
    /// Returns the current status view.
    fn view(&self) -> Pin<Box<dyn Future<Output = StatusView> + Send + '_>>;
}
