//! The box's own screen.

use std::sync::Arc;

use super::Wiring;
use crate::faces::Faces;
use crate::screen;

impl Wiring {
    /// The box's own monitor.
    pub(super) fn screen(&mut self, faces: &Arc<Faces>) {
        let running = screen::run(Arc::clone(faces), self.shutdown.clone());
        self.spawn("screen", async move {
            running.await;
            Ok(())
        });
    }
}
