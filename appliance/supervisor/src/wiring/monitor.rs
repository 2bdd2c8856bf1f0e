//! The box's own screen.

use std::sync::Arc;
use std::time::Instant;

use super::Wiring;
use crate::faces::Faces;
use crate::firmware::Firmware;
use crate::screen;

impl Wiring {
    /// The box's own monitor.
    pub(super) fn screen(&mut self, firmware: &Firmware) {
        let trouble = std::env::var(platform::init::TROUBLE).unwrap_or_default();
        let faces = Faces {
            index: self.index.clone(),
            config: Arc::clone(&self.config),
            name: firmware.name.clone(),
            time: firmware.time.clone(),
            clock: Arc::clone(&self.clock),
            began: Instant::now(),
            trouble: trouble.lines().map(str::to_owned).collect(),
        };
        let running = screen::run(faces, self.shutdown.clone());
        self.spawn("screen", async move {
            running.await;
            Ok(())
        });
    }
}
