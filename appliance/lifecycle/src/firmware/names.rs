//! Names in the box's certificate: configured names, its own name, and its current addresses.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use apiserver::Pki;
use config::Config;
use platform::net::InterfaceState;
use stdx::Clock;
use tokio::sync::Mutex;

/// Interval of reading the box's addresses.
const LOOK: Duration = Duration::from_secs(3);

/// Certificate of the box, and the sources of its names.
pub struct Names {
    pki: Arc<Pki>,
    own: String,
    config: Arc<Config>,
    clock: Arc<dyn Clock>,
    /// State after the last reading. Locked from a reading until its certificate is written.
    state: Mutex<CertificateState>,
}

/// Certificate state after a reading of the addresses.
#[derive(Default)]
struct CertificateState {
    /// Names in the served certificate.
    names: Vec<String>,
    /// Reason why the certificate could not be replaced; `None` after success.
    trouble: Option<String>,
}

impl Names {
    /// Creates the names of a box that is called `own`. The certificate does not change yet.
    pub fn new(pki: Arc<Pki>, own: String, config: Arc<Config>, clock: Arc<dyn Clock>) -> Self {
        Self { pki, own, config, clock, state: Mutex::default() }
    }

    /// Reads the interfaces, and puts their addresses into the certificate. A client may connect to
    /// any returned address at once. Returns an empty list on an error.
    pub async fn look(&self) -> Vec<InterfaceState> {
        self.look_by(platform::net::look()).await
    }

    /// Reads from `source` instead of the kernel, otherwise as [`Names::look`].
    async fn look_by<E>(
        &self,
        source: impl Future<Output = Result<Vec<InterfaceState>, E>>,
    ) -> Vec<InterfaceState> {
        let mut state = self.state.lock().await;
        // A failed reading does not show that an address is gone.
        let Ok(seen) = source.await else { return Vec::new() };
        let names = names(self.config.api_names(), &self.own, &seen);
        if names != state.names {
            let (pki, now, wanted) = (Arc::clone(&self.pki), self.clock.now(), names.clone());
            let renamed = tokio::task::spawn_blocking(move || pki.rename(&wanted, now)).await;
            let trouble = match renamed {
                Ok(renamed) => renamed.err().map(|error| stdx::chain(&error)),
                Err(error) => Some(error.to_string()),
            };
            match &trouble {
                None => state.names = names,
                Some(_) if state.trouble == trouble => {}
                Some(reason) => tracing::warn!(reason, "cannot renew the certificate"),
            }
            state.trouble = trouble;
        }
        seen
    }

    /// Updates the certificate whenever addresses change. Never returns.
    pub async fn follow(&self) {
        loop {
            self.look().await;
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Returns each name once, in a stable order.
fn names(mut names: Vec<String>, own: &str, seen: &[InterfaceState]) -> Vec<String> {
    names.extend([format!("{own}.local"), own.to_owned()]);
    names = capi::with_gitlab_names(names);
    names.extend(seen.iter().flat_map(|it| &it.addresses).map(|(it, _)| it.to_string()));
    let mut known = HashSet::new();
    names.retain(|name| known.insert(name.clone()));
    names
}

#[cfg(test)]
mod tests;
