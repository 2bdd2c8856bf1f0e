//! Where everything that must survive lies.

use std::path::Path;

use anyhow::Context as _;
use store::{SealingKey, Store};

/// Kinds whose values lie sealed on disk: BMC passwords, tokens, and user data with its join
/// secrets.
pub const SEALED: [&str; 5] = [
    "/secrets",
    "bootstrap.cluster.x-k8s.io/kubeadmconfigs",
    "tinkerbell.org/hardware",
    "tinkerbell.org/templates",
    "tinkerbell.org/workflows",
];

/// The store of `STATE/objects.redb`, sealed with the key in `STATE/sealing.key`.
pub fn open(state: &Path) -> anyhow::Result<Store> {
    let key = SealingKey::load_or_create(&state.join("sealing.key"))
        .context("cannot read the key that seals secrets")?;
    let options = store::Options {
        sealing_key: Some(key),
        sealed: SEALED.map(str::to_owned).to_vec(),
        ..store::Options::default()
    };
    Store::open(&state.join("objects.redb"), options).context("cannot open the store")
}
