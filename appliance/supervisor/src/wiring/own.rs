//! What only a box that is firmware has: its own screen, its own time, and a slot to prove.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use apiserver::{Gate, Pki};

use super::Wiring;
use crate::faces::Faces;
use crate::firmware::{Firmware, time};
use crate::proving;
use crate::{screen, serial};

impl Wiring {
    /// The API's way in. Strangers at a box of its own, whose faces these are, are told how to
    /// become its owner.
    pub(super) fn gate(&self, state: &Path, faces: Option<&Arc<Faces>>) -> anyhow::Result<Gate> {
        let gate = Gate::open(state, &self.config.api_url())
            .context("cannot read the API's tokens and keys")?;
        let Some(faces) = faces else { return Ok(gate) };
        let owner = Arc::clone(&faces.owner);
        Ok(gate.unclaimed_until(move || owner.claimed()))
    }

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

    /// What it says on its serial console.
    pub(super) fn serial(&mut self, faces: &Arc<Faces>) {
        let running = serial::run(Arc::clone(faces), self.shutdown.clone());
        self.spawn("serial console", async move {
            running.await;
            Ok(())
        });
    }
}
