//! Wiring of services that only firmware has: screen, panel, time, updates and their checks.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use agent_rpc::Pin;
use anyhow::Context as _;
use apiserver::Pki;
use box_console::{Actions, ViewSource, front_panel, monitor, serial};
use config::SystemKind;
use lifecycle::firmware::{Firmware, time};
use lifecycle::local_actions::LocalActions;
use lifecycle::names::Names;
use lifecycle::proving;
use lifecycle::settings::{OnDisk, Settings};
use lifecycle::storage;
use lifecycle::update::Updates;
use platform::heartbeat::{EVERY, Heartbeat};
use platform::init;
use platform::slots::{BootVolume, Slot};
use store::Store;

use super::machine_leds::BmcLeds;
use super::{Wiring, boot};
use crate::bmc_readings::BmcReader;
use crate::heap;
use crate::status_builder::StatusBuilder;

impl Wiring {
    /// Opens the settings on the boot volume, which the owner may change from the running box.
    pub(super) fn settings(&self, state: &Path) -> Arc<Settings> {
        let disk = OnDisk { volume: BootVolume::own(), folder: state.join("settings") };
        let clock = Arc::clone(&self.clock);
        Arc::new(Settings::open(Box::new(disk), clock, SystemKind::Firmware, &self.config))
    }

    /// Opens the updates of this box. Returns `None` on a system without slots or after an error,
    /// because a box that cannot be updated still serves.
    pub(super) fn updates(&self, state: &Path, store: &Store) -> Option<Arc<Updates>> {
        let slot = match init::slot() {
            Ok(Some(name)) if name == "a" => Slot::A,
            Ok(Some(name)) if name == "b" => Slot::B,
            Ok(_) => {
                tracing::info!("not started from a slot: updates are not possible");
                return None;
            }
            Err(error) => {
                tracing::warn!(error = %stdx::chain(&error), "cannot determine the slot");
                return None;
            }
        };
        let (runs, clock) = (self.index.runs.clone(), Arc::clone(&self.clock));
        let live = self.settings.as_ref()?.live();
        let reason = init::last_panic().or_else(init::last_restart);
        let opened = Updates::open(slot, state, (runs, live), store.clone(), clock, reason);
        let opened = opened.inspect_err(|error| {
            tracing::error!(error = format!("{error:#}"), "this box cannot be updated");
        });
        opened.ok().map(Arc::new)
    }

    fn probe(
        &self,
        pki: &Pki,
        asked_at: SocketAddr,
        store: Store,
    ) -> anyhow::Result<proving::Probe> {
        let pin =
            Pin::of(&pki.server_certificate()?).context("cannot use the box's certificate")?;
        proving::Probe::new(Arc::clone(&self.config), pin, asked_at, store)
    }

    /// Starts the checks of the running system, which mark its slot good, and the restart after an
    /// update.
    pub(super) fn proving(
        &mut self,
        pki: &Pki,
        (asked_at, store): (SocketAddr, Store),
        updates: Arc<Updates>,
    ) -> anyhow::Result<()> {
        let probe = self.probe(pki, asked_at, store)?;
        // In safe mode, services of the system on trial do not run, so that it cannot prove itself.
        let proves = self.safe.mode.is_none() || !updates.on_trial();
        let (proved, shutdown) = (Arc::clone(&updates), self.shutdown.clone());
        let clock = Arc::clone(&self.clock);
        let proving = async move {
            match proves {
                true => proving::run(probe, proved, clock, shutdown).await,
                false => shutdown.cancelled().await,
            }
        };
        let restarting = updates.run(self.shutdown.clone());
        self.spawn("updates", async move {
            tokio::join!(proving, restarting);
            Ok(())
        });
        Ok(())
    }

    /// Ends the process when the store has stopped and its disk accepts writes again, so that the
    /// process restarts. Also returns unused memory to the system.
    pub(super) fn keep(&mut self, state: &Path, store: Store) {
        let watching = storage::watch_over(store, state.to_owned());
        let watching = self.shutdown.clone().run_until_cancelled_owned(watching);
        self.spawn("the store", async move { watching.await.unwrap_or(Ok(())) });
        let trimming = heap::trim(self.shutdown.clone());
        self.spawn("memory", async move {
            trimming.await;
            Ok(())
        });
    }

    /// Sends heartbeats to process 1 while the store and the API respond, and the monitored loops
    /// run.
    pub(super) fn liveness(
        &mut self,
        pki: &Pki,
        asked_at: SocketAddr,
        store: Store,
    ) -> anyhow::Result<()> {
        let Some(heartbeat) = Heartbeat::inherited() else { return Ok(()) };
        let probe = self.probe(pki, asked_at, store.clone())?;
        let loop_signal = self.liveness.loop_signal("the API");
        let api = async move {
            loop {
                match probe.api().await {
                    Ok(()) => loop_signal.tick(),
                    Err(error) => tracing::warn!("the API does not respond: {error:#}"),
                }
                tokio::time::sleep(EVERY).await;
            }
        };
        let loop_signal = self.liveness.loop_signal("the store");
        let store = async move {
            loop {
                // An empty transaction passes through the whole writer. A store that has stopped
                // does not hang, so its error is ignored.
                let _ = store.write(|_| Ok::<_, Infallible>(())).await;
                loop_signal.tick();
                tokio::time::sleep(EVERY).await;
            }
        };
        let loops = async { tokio::join!(api, store) };
        let loops = self.shutdown.clone().run_until_cancelled_owned(loops);
        self.spawn("liveness", async move {
            loops.await;
            Ok(())
        });
        Arc::clone(&self.liveness).beat(heartbeat);
        Ok(())
    }

    /// Starts the task that updates the names in the box's certificate when its addresses change.
    pub(super) fn names(&mut self, pki: &Arc<Pki>, firmware: &Firmware) -> Arc<Names> {
        let (own, config) = (firmware.name.clone(), Arc::clone(&self.config));
        let names = Arc::new(Names::new(Arc::clone(pki), own, config, Arc::clone(&self.clock)));
        let (following, shutdown) = (Arc::clone(&names), self.shutdown.clone());
        self.spawn("names", async move {
            shutdown.run_until_cancelled(following.follow()).await;
            Ok(())
        });
        names
    }

    /// Serves NTP on every configured network.
    pub(super) async fn time(&mut self, firmware: &Firmware) {
        for network in self.config.networks.clone() {
            let (address, known) = (network.address, firmware.time.clone());
            let open = move || {
                let known = known.clone();
                async move {
                    let socket = time::listen(address).await?;
                    Ok(Box::pin(time::serve(socket, known)) as boot::ServiceFuture)
                }
            };
            self.serve_when_open("time", &network.interface, open).await;
        }
    }

    /// Returns the reader of the BMCs of machines.
    pub(super) fn bmc_reader(&self) -> BmcReader {
        let (objects, drivers) = (Arc::clone(&self.objects), Arc::clone(&self.bmc_drivers));
        BmcReader { objects, drivers }
    }

    /// Returns the executor of the actions at the box itself.
    pub(super) fn local_actions(&self) -> LocalActions {
        LocalActions {
            objects: Arc::clone(&self.objects),
            machine_leds: Arc::new(BmcLeds { index: self.index.clone(), bmcs: self.bmc_reader() }),
            clock: Arc::clone(&self.clock),
            identify_state: self.identify_state.clone(),
            audit: self.audit.clone(),
        }
    }

    /// Starts the box's monitor, small screen, buttons and LEDs.
    pub(super) fn fronts(&mut self, status_builder: &Arc<StatusBuilder>) {
        let actions: Arc<dyn Actions> = Arc::new(self.local_actions());
        let source: Arc<dyn ViewSource> = Arc::clone(status_builder) as _;
        let panel = self.config.panel.clone();
        // A small screen may use the display device of the monitor; then the panel drives it.
        if !panel.as_ref().is_some_and(|panel| panel.has(Path::new(monitor::DEVICE))) {
            let loop_signal = self.liveness.loop_signal("the screen");
            let (source, actions) = (Arc::clone(&source), Arc::clone(&actions));
            let running = monitor::run(source, actions, loop_signal, self.shutdown.clone());
            self.spawn("screen", async move {
                running.await;
                Ok(())
            });
        }
        let Some(panel) = panel else { return };
        let running = front_panel::run(source, actions, panel, self.shutdown.clone());
        self.spawn("panel", async move {
            running.await;
            Ok(())
        });
    }

    /// Starts the task that writes the status to the serial console.
    pub(super) fn serial(&mut self, status_builder: &Arc<StatusBuilder>) {
        let running = serial::run(Arc::clone(status_builder) as _, self.shutdown.clone());
        self.spawn("serial console", async move {
            running.await;
            Ok(())
        });
    }
}
