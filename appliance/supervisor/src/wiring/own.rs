//! What only a box that is firmware has: its own screen, its own time, and a slot to prove.

use std::sync::Arc;

use apiserver::Pki;

use super::Wiring;
use crate::faces::Faces;
use crate::firmware::{Firmware, time};
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

    /// The time, told to every rack.
    pub(super) fn time(&mut self, firmware: &Firmware) {
        for network in self.config.networks.clone() {
            self.spawn("time", time::tell(network.address, firmware.time.clone()));
        }
    }

    /// The box's own monitor.
    pub(super) fn screen(&mut self, faces: &Arc<Faces>) {
        let running = screen::run(Arc::clone(faces), self.shutdown.clone());
        self.spawn("screen", async move {
            running.await;
            Ok(())
        });
    }
}
