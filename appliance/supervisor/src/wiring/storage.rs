//! Where everything that must survive lies.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use status::view::{Fault, StatusView, Trouble};
use store::{Returned, SealingKey, Store};

use crate::faces::{Telling, Tells};

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
    Store::open(&file(state), options).context("cannot open the store")
}

/// The store's file in the folder `state`.
pub fn file(state: &Path) -> PathBuf {
    state.join("objects.redb")
}

/// What a later release stored and this one cannot read, kept beside the store (UP-6).
pub(super) struct SetAside(Vec<Fault>);

impl SetAside {
    /// As it lies in the folder `state`.
    pub(super) fn find(state: &Path) -> Self {
        let found = store::returned(&file(state)).unwrap_or_else(|error| {
            tracing::warn!(error = %stdx::chain(&error), "is anything set aside?");
            Vec::new()
        });
        Self(found.iter().map(fault).collect())
    }
}

impl Tells for SetAside {
    fn tell<'a>(&'a self, view: &'a mut StatusView) -> Telling<'a> {
        view.faults.extend(self.0.iter().cloned());
        Box::pin(std::future::ready(()))
    }
}

fn fault(aside: &Returned) -> Fault {
    let name = aside.file.file_name().unwrap_or_default().to_string_lossy();
    let up_to = match aside.revision {
        Some(revision) => format!("up to revision {revision}"),
        None => "since then".to_owned(),
    };
    let trouble = Trouble {
        what: "The store from before the update is back".into(),
        why: format!("this release cannot read what the later one stored {up_to}").into(),
        now: format!("What was changed since the update lies in {name}; update again to go on")
            .into(),
        code: "StoreSetAside".into(),
        ..Trouble::default()
    };
    Fault { title: "STORE WENT BACK".into(), trouble, ..Fault::default() }
}

#[cfg(test)]
mod tests {
    use status::view::{StatusView, problems};

    use super::SetAside;
    use crate::faces::Tells as _;

    #[tokio::test]
    async fn what_was_set_aside_is_said_until_it_is_gone() {
        let state = tempfile::tempdir().unwrap();
        let told = async || {
            let mut view = StatusView::default();
            SetAside::find(state.path()).tell(&mut view).await;
            problems(&view).iter().map(|it| it.trouble.sentence()).collect::<Vec<_>>()
        };
        assert_eq!(told().await, [""; 0]);
        let file = state.path().join("objects.redb.newer-99-4711");
        std::fs::write(&file, "").unwrap();
        let said = "The store from before the update is back: this release cannot read what the \
                    later one stored up to revision 4711. What was changed since the update lies \
                    in objects.redb.newer-99-4711; update again to go on.";
        assert_eq!(told().await, [said]);
        std::fs::remove_file(file).unwrap();
        assert_eq!(told().await, [""; 0]);
    }
}
