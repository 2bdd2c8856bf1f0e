//! Pairing with a management cluster by a kubeconfig that an owner pastes into a page.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use api::meta::ObjectKey;
use capi::pairing::{self, Identity, PairingError, TOKEN_LIFETIME};
use capi::remote::Kubeconfig;
use objects::Objects;
use stdx::Secret;
use tokio::sync::Mutex;
use tokio::time::timeout;
use web::PairRequest;

use super::source::sentences;

/// Namespace of the objects on the box, as that of the command line by default.
const NAMESPACE: &str = "default";
/// Maximum duration of the requests to the management cluster, about ten of them.
const TIME_MAX: Duration = Duration::from_secs(60);

/// Pairing by a kubeconfig from a page.
pub(super) struct PagePairing {
    pub objects: Arc<dyn Objects>,
    /// Certificate of the box's authority as PEM.
    pub authority: String,
    /// True on firmware, where a loopback address in a kubeconfig can only be a mistake.
    pub of_its_own: bool,
    /// Lock of the only pairing at a time.
    pub turn: Mutex<()>,
}

impl PagePairing {
    /// Pairs the box. The error is a text for people, without the secrets of the kubeconfig.
    pub async fn pair(&self, request: PairRequest) -> Result<(), String> {
        let Ok(_turn) = self.turn.try_lock() else {
            return Err("Another pairing is under way. Wait until it has ended.".to_owned());
        };
        let kubeconfig = Kubeconfig::parse(request.kubeconfig.expose())
            .map_err(|error| sentences(&PairingError::from(error)))?;
        let server = kubeconfig.server();
        if self.of_its_own && is_loopback(&server) {
            return Err(format!(
                "The kubeconfig has the server {server}, at which the box reaches only itself. \
                 Replace it in the text by an address at which the box reaches the API server."
            ));
        }
        let namespace = request.namespace.as_deref();
        let credential = match request.is_credential {
            true => request.kubeconfig.clone(),
            false => self.created(&kubeconfig, &request).await?,
        };
        let key = ObjectKey::new(NAMESPACE, &request.name);
        let filter = request.watch_filter.as_deref();
        let stored = pairing::store(&*self.objects, &key, &credential, namespace, filter).await;
        stored.map_err(|error| sentences(&error))
    }

    /// Creates the box's identity in the management cluster, and returns its kubeconfig.
    async fn created(&self, admin: &Kubeconfig, request: &PairRequest) -> Result<Secret, String> {
        let name = pairing::box_name_by_pem(&request.host, &self.authority);
        let identity = Identity::new(&name, &request.name, request.namespace.as_deref());
        let created = pairing::create_identity(admin, &identity, None, TOKEN_LIFETIME);
        match timeout(TIME_MAX, created).await {
            Ok(created) => created.map_err(|error| sentences(&error)),
            Err(_) => Err(format!(
                "{} has not answered within {} seconds. Pair again when the box reaches it.",
                admin.server(),
                TIME_MAX.as_secs()
            )),
        }
    }
}

/// Returns true for a URL with a loopback address, or with the name of one.
fn is_loopback(server: &str) -> bool {
    let rest = server.split_once("://").map_or(server, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
    };
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests;
