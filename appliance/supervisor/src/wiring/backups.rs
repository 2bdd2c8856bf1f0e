//! Wiring of backups, of the restart after a restore, and of second copies.

mod target;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use config::SystemKind;
use lifecycle::backups::{BackupProgress, Backups};
use lifecycle::copies;
use lifecycle::firmware::{Firmware, name};
use platform::init::CACHE;
use store::Store;

use super::Wiring;
pub(super) use target::TargetBackups;

/// Interval of checking for changed vital files: one minute.
const COPIED_EVERY: Duration = Duration::from_secs(60);

impl Wiring {
    /// Starts the backups of this box. `settings` is the path of the settings file, and `key` is
    /// the hash of the certificate's key.
    pub(super) fn backups(
        &mut self,
        state: &Path,
        settings: PathBuf,
        (store, key): (&Store, [u8; 32]),
        firmware: Option<&Firmware>,
    ) -> Arc<Backups> {
        let backups = Arc::new(Backups {
            store: store.clone(),
            state: state.to_owned(),
            is_lost: self.safe.lost.is_some(),
            kept_in: firmware.map(|_| Path::new(CACHE).join("backups")),
            settings,
            system_kind: if firmware.is_some() { SystemKind::Firmware } else { SystemKind::Guest },
            name: firmware.map_or_else(name::by_first_card, |firmware| firmware.name.clone()),
            pin: status::access::pin(&key),
            config: Arc::clone(&self.config),
            clock: Arc::clone(&self.clock),
            images: self.images.clone(),
            leases: self.leases.clone(),
            now: BackupProgress::default(),
        });
        backups.remember();
        let running = Arc::clone(&backups).run(self.shutdown.clone());
        let daily = Arc::clone(&backups).daily(self.shutdown.clone());
        self.spawn("backups", async move {
            tokio::join!(running, daily);
            Ok(())
        });
        backups
    }

    /// Starts the daily backup on another server, if it is configured.
    pub(super) fn target_backups(&mut self, backups: &Arc<Backups>) -> anyhow::Result<()> {
        let config = Arc::clone(&self.config);
        let Some(options) = config.backup.as_ref().filter(|_| self.safe.mode.is_none()) else {
            return Ok(());
        };
        let live = self.settings.as_ref().map(|settings| settings.live());
        let sender = TargetBackups::new(options, Arc::clone(backups), live)
            .context("cannot set up the backups on another server")?;
        let sender = Arc::new(sender);
        self.target_backups = Some(Arc::clone(&sender));
        let sending = sender.run(self.shutdown.clone());
        self.spawn("backups on another server", async move {
            sending.await;
            Ok(())
        });
        Ok(())
    }

    /// Starts the second copies of vital files. The files must exist.
    pub(super) fn copies(&mut self, state: &Path) {
        let copying = copy(state.to_owned());
        let copying = self.shutdown.clone().run_until_cancelled_owned(copying);
        self.spawn("second copies", async move {
            copying.await;
            Ok(())
        });
    }
}

/// Copies changed vital files to their second copies, once each [`COPIED_EVERY`].
async fn copy(state: PathBuf) {
    loop {
        let folder = state.clone();
        let copied = tokio::task::spawn_blocking(move || copies::keep(&folder)).await;
        if let Err(error) = copied {
            tracing::warn!(%error, "cannot write second copies");
        }
        tokio::time::sleep(COPIED_EVERY).await;
    }
}
