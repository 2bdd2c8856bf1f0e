//! Wiring of the connections to management clusters.

use std::sync::Arc;

use capi::management::{ManagementClusters, WatchOnly};

use super::Wiring;

impl Wiring {
    /// Connects to the management clusters; not in safe mode, in which no machine is changed.
    pub(super) fn management_clusters(&mut self) {
        if self.safe.mode.is_some() {
            return;
        }
        let clusters = ManagementClusters {
            objects: Arc::clone(&self.objects),
            clock: Arc::clone(&self.clock),
            work: Arc::new(WatchOnly),
        };
        let running = clusters.run(self.shutdown.clone());
        self.spawn("management clusters", async move {
            running.await;
            Ok(())
        });
    }
}
