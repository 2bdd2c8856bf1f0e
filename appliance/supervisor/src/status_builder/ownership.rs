//! Owner of the box, and the claim by which a person becomes the owner.

use std::path::PathBuf;
use std::sync::Arc;

use box_owner::Owner;
use box_owner::claim::TRIES_MAX;
use config::Config;
use lifecycle::SECRET_KEYS;
use status::source::{Filling, StatusSource};
use status::view::{Claim, StatusView};

/// Status source of the owner, the claim code and the number of secret keys.
pub struct OwnerSource {
    /// Owner of the box.
    pub owner: Arc<Owner>,
    /// Configuration, for the address of the web pages.
    pub config: Arc<Config>,
    /// SHA-256 of the public key in the box's server certificate: the certificate pin.
    pub key: [u8; 32],
    /// State folder, which contains the keys.
    pub state: PathBuf,
}

impl StatusSource for OwnerSource {
    fn fill<'a>(&'a self, view: &'a mut StatusView) -> Filling<'a> {
        view.pin = status::access::pin(&self.key).into();
        view.system.certificate_sha256 = stdx::hex(&self.key).into();
        let accounts = if self.owner.claimed() { self.owner.users().len() } else { 0 };
        view.system.accounts = u32::try_from(accounts).unwrap_or(u32::MAX);
        let keys = SECRET_KEYS.iter().filter(|name| self.state.join(name).is_file());
        view.system.keys = u32::try_from(keys.count()).unwrap_or(u32::MAX);
        view.claim = self.claim(view);
        Box::pin(std::future::ready(()))
    }
}

impl OwnerSource {
    fn claim(&self, view: &StatusView) -> Option<Claim> {
        let (code, tries_left) = self.owner.code()?;
        let url = match &self.config.web {
            Some(web) => Some(format!("https://{}", web.listen)),
            None => view.address().map(|(_, address)| match address.contains(':') {
                true => format!("https://[{address}]"),
                false => format!("https://{address}"),
            }),
        };
        let urls = url.into_iter().map(Into::into).collect();
        Some(Claim { urls, code: code.into(), tries_left, tries_max: TRIES_MAX })
    }
}
