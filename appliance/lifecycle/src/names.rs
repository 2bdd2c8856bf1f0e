//! The names that the box's certificate says: those of its settings, its own, and the addresses
//! that it has at the moment.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use apiserver::Pki;
use config::Config;
use platform::net::Seen;
use stdx::Clock;
use tokio::sync::Mutex;

/// How often the box's addresses are looked at.
const LOOK: Duration = Duration::from_secs(3);

/// The certificate, and what it has to say.
pub struct Names {
    pki: Arc<Pki>,
    own: String,
    config: Arc<Config>,
    clock: Arc<dyn Clock>,
    /// Held from a look until the certificate is written: of two looks the later one has the last
    /// word.
    said: Mutex<Said>,
}

/// What became of the last look.
#[derive(Default)]
struct Said {
    /// By the certificate that is shown.
    names: Vec<String>,
    /// Why it does not say what it should.
    trouble: Option<String>,
}

impl Names {
    /// Of a box that is called `own`. The certificate says nothing new yet.
    pub fn new(pki: Arc<Pki>, own: String, config: Arc<Config>, clock: Arc<dyn Clock>) -> Self {
        Self { pki, own, config, clock, said: Mutex::default() }
    }

    /// The interfaces with their addresses, which the certificate says from now on: whoever reads
    /// one of them may connect to it at once.
    pub async fn look(&self) -> Vec<Seen> {
        self.look_by(platform::net::look()).await
    }

    /// [`Names::look`] with another source of interfaces, which is read once no other look is under
    /// way.
    async fn look_by<E>(&self, source: impl Future<Output = Result<Vec<Seen>, E>>) -> Vec<Seen> {
        let mut said = self.said.lock().await;
        // Who could not look knows of no address that has gone.
        let Ok(seen) = source.await else { return Vec::new() };
        let names = names(self.config.api_names(), &self.own, &seen);
        if names != said.names {
            let (pki, now, wanted) = (Arc::clone(&self.pki), self.clock.now(), names.clone());
            let renamed = tokio::task::spawn_blocking(move || pki.rename(&wanted, now)).await;
            let trouble = match renamed {
                Ok(renamed) => renamed.err().map(|error| stdx::chain(&error)),
                Err(error) => Some(error.to_string()),
            };
            match &trouble {
                None => said.names = names,
                Some(_) if said.trouble == trouble => {}
                Some(reason) => tracing::warn!(reason, "the certificate is as it was"),
            }
            said.trouble = trouble;
        }
        seen
    }

    /// Has the certificate follow the addresses as they come and go, for ever.
    pub async fn follow(&self) {
        loop {
            self.look().await;
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Each name once, in an order that stays.
fn names(mut names: Vec<String>, own: &str, seen: &[Seen]) -> Vec<String> {
    names.extend([format!("{own}.local"), own.to_owned()]);
    let addresses = seen.iter().flat_map(|seen| &seen.addresses);
    names.extend(addresses.map(|(address, _)| address.to_string()));
    let mut known = HashSet::new();
    names.retain(|name| known.insert(name.clone()));
    names
}

#[cfg(test)]
mod tests;
