//! What only a box that is firmware has: its own screen, and a slot to prove.

use std::sync::Arc;
use std::time::Instant;

use apiserver::Pki;

use super::Wiring;
use crate::faces::Faces;
use crate::proving;
use crate::screen;

impl Wiring {
    /// Marks the slot good once the system works.
    pub(super) fn proving(&mut self, pki: &Pki) -> anyhow::Result<()> {
        let probe = proving::Probe::new(Arc::clone(&self.config), pki.ca_pem())?;
        let running = proving::run(probe, self.shutdown.clone());
        self.spawn("proving", async move {
            running.await;
            Ok(())
        });
        Ok(())
    }

    /// The box's own monitor.
    pub(super) fn screen(&mut self) {
        let trouble = std::env::var(platform::init::TROUBLE).unwrap_or_default();
        let faces = Faces {
            index: self.index.clone(),
            config: Arc::clone(&self.config),
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
