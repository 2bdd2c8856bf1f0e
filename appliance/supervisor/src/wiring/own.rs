//! What only a box that is firmware has: its own screen, its own time, a slot to prove, and
//! updates.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use apiserver::{Gate, Pki};
use platform::slots::Slot;

use super::Wiring;
use crate::faces::Faces;
use crate::firmware::{Firmware, time};
use crate::proving;
use crate::update::Updates;
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

    /// The updates of this box, where it runs from a slot. A box that cannot be updated still
    /// serves.
    pub(super) fn updates(&self, state: &Path) -> Option<Arc<Updates>> {
        let slot = match platform::init::slot() {
            Ok(Some(name)) if name == "a" => Slot::A,
            Ok(Some(name)) if name == "b" => Slot::B,
            Ok(_) => {
                tracing::info!("started from no slot: there is nothing to update");
                return None;
            }
            Err(error) => {
                tracing::warn!(error = %stdx::chain(&error), "which slot is this?");
                return None;
            }
        };
        let (runs, clock) = (self.index.runs.clone(), Arc::clone(&self.clock));
        let opened = Updates::open(slot, state, runs, clock, None).inspect_err(|error| {
            tracing::error!(error = format!("{error:#}"), "this box cannot be updated");
        });
        opened.ok().map(Arc::new)
    }

    /// Marks the slot good once the system works, and restarts the box when it has a new one.
    pub(super) fn proving(&mut self, pki: &Pki, updates: Arc<Updates>) -> anyhow::Result<()> {
        let probe = proving::Probe::new(Arc::clone(&self.config), pki.ca_pem())?;
        let proving = proving::run(probe, Arc::clone(&updates), self.shutdown.clone());
        let restarting = updates.run(self.shutdown.clone());
        self.spawn("updates", async move {
            tokio::join!(proving, restarting);
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
