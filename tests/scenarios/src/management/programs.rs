//! The stock programs and manifests, as their build scripts make them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use peers::built;

/// Outputs of the build scripts, for the Go modules in folders of `tests/peers`.
const BUILT: [(&str, &[&str]); 2] = [
    ("kubernetes", &["etcd", "kube-apiserver", "kube-controller-manager", "capt"]),
    (
        "cluster-api",
        &[
            "core",
            "bootstrap",
            "control-plane",
            "core.yaml",
            "bootstrap.yaml",
            "control-plane.yaml",
            "tinkerbell.yaml",
        ],
    ),
];

/// Paths of the programs and manifests of a management cluster, by name.
pub struct Programs {
    /// Path of stock kubectl.
    pub kubectl: PathBuf,
    others: BTreeMap<&'static str, PathBuf>,
}

impl Programs {
    /// Builds the programs and manifests that no earlier run has built.
    pub fn build() -> anyhow::Result<Self> {
        let mut others = BTreeMap::new();
        for (module, names) in BUILT {
            others.extend(names.iter().copied().zip(built(module, names)?));
        }
        let kubectl = built("kubectl", &["1.35"])?.remove(0);
        Ok(Self { kubectl, others })
    }

    /// Path of a program, by its name.
    pub fn program(&self, name: &str) -> anyhow::Result<&Path> {
        self.others
            .get(name)
            .map(PathBuf::as_path)
            .with_context(|| format!("nothing builds {name}"))
    }

    /// The manifest that installs a provider.
    pub fn manifest(&self, name: &str) -> anyhow::Result<&Path> {
        self.program(&format!("{name}.yaml"))
    }
}
