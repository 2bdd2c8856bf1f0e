//! DHCPv6 service of one network, which waits for an IPv6 address while DHCPv4 runs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use config::HTTP_PORT;
use dhcp::ServeMode;
use stdx::Backoff;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::board::Board;
use super::nic;
use crate::index::Index;

/// Name of the service in messages.
const SERVICE: &str = "DHCPv6";
/// First and maximum wait before the service is started again after an error.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// Time without an error after which the service counts as started.
const OPENED: Duration = Duration::from_secs(1);

/// DHCPv6 service that runs while DHCP may serve addresses ([`ServeMode::Open`]).
pub(super) struct V6 {
    pub interface: String,
    pub loaders: BTreeMap<u16, String>,
    pub index: Index,
    pub board: Board,
    pub directory: Arc<dyn dhcp::v6::Directory>,
    pub observer: Arc<dyn dhcp::v6::Observer>,
    pub serve_mode: watch::Receiver<ServeMode>,
}

impl V6 {
    /// Runs until the sender of the serve mode is dropped. An error is shown on the board, and the
    /// service is started again.
    pub async fn run(mut self) {
        let mut waits = Backoff::new(RETRY.0, RETRY.1);
        loop {
            if self.serve_mode.wait_for(|serve_mode| *serve_mode == ServeMode::Open).await.is_err()
            {
                return;
            }
            let served = match self.config() {
                Ok(config) => self.serve(config, &mut waits).await,
                Err(why) => Err(why),
            };
            if let Err(why) = served {
                self.board.wait(&self.interface, SERVICE, why);
                tokio::time::sleep(waits.next_wait()).await;
            }
        }
    }

    fn config(&self) -> Result<dhcp::v6::Config, String> {
        let server = nic::ipv6(&self.interface).map_err(|error| error.to_string())?;
        self.index.set_prefix(&self.interface, server);
        Ok(dhcp::v6::Config {
            interface: self.interface.clone(),
            server,
            http_port: HTTP_PORT,
            binaries: self.loaders.clone(),
        })
    }

    /// Serves until the serve mode is not `Open`, or the service fails.
    async fn serve(&mut self, config: dhcp::v6::Config, waits: &mut Backoff) -> Result<(), String> {
        let serving = CancellationToken::new();
        let _closed = serving.clone().drop_guard();
        let (directory, observer) = (Arc::clone(&self.directory), Arc::clone(&self.observer));
        let mut service = std::pin::pin!(dhcp::v6::run(config, directory, observer, serving));
        let mut serves = false;
        loop {
            tokio::select! {
                ended = &mut service => return ended.map_err(|error| stdx::chain(&error)),
                _ = self.serve_mode.wait_for(|mode| *mode != ServeMode::Open) => return Ok(()),
                () = tokio::time::sleep(OPENED), if !serves => {
                    self.board.arrived(&self.interface, SERVICE);
                    waits.reset();
                    serves = true;
                }
            }
        }
    }
}
