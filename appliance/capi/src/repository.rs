//! Files of the provider's release, and the configuration that points `clusterctl` at them.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::components::{self, LABEL, NAME};
use crate::package_path::PackagePath;

/// Project in the URLs. The escaped slash makes clusterctl 1.6 to 1.8 accept the path, which
/// compare the escaped form only.
const PROJECT: &str = "box%2Ffirmware";
pub const COMPONENTS: &str = "infrastructure-components.yaml";

/// Release series that boxes have had: `(major, minor, contract)`. Only append: `clusterctl` looks
/// up the installed version in the file of the new version.
///
/// Contract v1beta1 is the one that clusterctl 1.6 to 1.10 require; clusterctl 1.11 to 1.15 accept
/// it beside v1beta2. The kinds fulfill both.
const SERIES: [(u64, u64, &str); 1] = [(0, 1, "v1beta1")];

/// Cluster templates by flavor; the default has the empty name.
const TEMPLATES: [(&str, &str); 4] = [
    ("", include_str!("repository/templates/kube-vip.yaml")),
    ("kube-vip", include_str!("repository/templates/kube-vip.yaml")),
    ("topology", include_str!("repository/templates/topology.yaml")),
    ("workers-only", include_str!("repository/templates/workers-only.yaml")),
];

/// ClusterClass of the flavor `topology`. `clusterctl` downloads it by the name of the class.
const CLASS: &str = "clusterclass-tinbox.yaml";
const CLASS_YAML: &str = include_str!("repository/templates/clusterclass.yaml");

/// Provider release of one version.
#[derive(Debug, Clone)]
pub struct Repository {
    /// Version with its `v`.
    version: String,
}

impl Repository {
    /// Creates the release of a version such as `0.1.0`.
    pub fn new(version: &str) -> Self {
        Self { version: format!("v{version}") }
    }

    /// Version with its `v`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns `clusterctl.yaml` for a box that is reached at `host`: a name that begins with
    /// `gitlab.`, with an optional port.
    pub fn config(&self, host: &str) -> String {
        let version = &self.version;
        config(&format!(
            "https://{host}/api/v4/projects/{PROJECT}/packages/generic/{LABEL}/{version}/\
             {COMPONENTS}"
        ))
    }

    /// Returns a file of the package registry; `None` if the release has no such file.
    pub fn package_file(&self, path: &PackagePath<'_>) -> Option<Cow<'static, str>> {
        let is_current =
            path.slug == PROJECT && path.package == LABEL && path.version == self.version;
        if is_current { file(path.file) } else { None }
    }

    /// Returns the components with clusterctl's own labels, for `kubectl apply`.
    pub fn components(&self) -> String {
        components::yaml()
    }

    /// Files of the provider in a local repository of `clusterctl`, by their path below it.
    pub(crate) fn files(&self) -> Vec<(String, Cow<'static, str>)> {
        let mut names = vec!["metadata.yaml".into(), COMPONENTS.into(), CLASS.into()];
        names.extend(TEMPLATES.iter().map(|(flavor, _)| template_name(flavor)));
        let folder = format!("{LABEL}/{}", self.version);
        let put = |name: &String| Some((format!("{folder}/{name}"), file(name)?));
        let files = names.iter().filter_map(put);
        files.collect()
    }
}

/// Returns `clusterctl.yaml` with the provider's components at `url`.
pub fn config(url: &str) -> String {
    format!("providers:\n- name: {NAME}\n  type: InfrastructureProvider\n  url: {url}\n")
}

fn template_name(flavor: &str) -> String {
    match flavor {
        "" => "cluster-template.yaml".to_owned(),
        _ => format!("cluster-template-{flavor}.yaml"),
    }
}

/// Returns a file of the release, by its name.
fn file(name: &str) -> Option<Cow<'static, str>> {
    if name == "metadata.yaml" {
        return Some(metadata().into());
    }
    if name == COMPONENTS {
        return Some(components::yaml().into());
    }
    if name == CLASS {
        return Some(CLASS_YAML.into());
    }
    let found = TEMPLATES.iter().find(|(flavor, _)| template_name(flavor) == name);
    found.map(|(_, text)| Cow::Borrowed(*text))
}

fn metadata() -> String {
    let mut text = String::from(
        "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries:\n",
    );
    for (major, minor, contract) in SERIES {
        let _ = write!(text, "- major: {major}\n  minor: {minor}\n  contract: {contract}\n");
    }
    text
}

#[cfg(test)]
mod tests;
