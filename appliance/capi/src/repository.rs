//! Files of the provider's release, and the configuration that points `clusterctl` at them.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::components;
use crate::provider::Provider;

/// Project in the URLs, escaped to one segment. The escaped slash makes clusterctl 1.6 to 1.8
/// accept the path, which compare the escaped form only. clusterctl requests one file by one GET
/// (sigs.k8s.io/cluster-api, cmd/clusterctl/client/repository/repository_gitlab.go).
const PROJECT: &str = "box%2Ffirmware";
pub const COMPONENTS: &str = "infrastructure-components.yaml";

/// Release series that boxes have had: `(major, minor, contract)`. Only append: `clusterctl` looks
/// up the installed version in the file of the new version.
///
/// Contract v1beta1 is the one that clusterctl 1.6 to 1.10 require; clusterctl 1.11 to 1.15 accept
/// it beside v1beta2. The kinds have the fields of both contracts.
const SERIES: [(u64, u64, &str); 1] = [(0, 1, "v1beta1")];

/// Cluster templates by flavor; the default has the empty name.
const TEMPLATES: [(&str, &str); 6] = [
    ("", include_str!("repository/templates/kube-vip.yaml")),
    ("box-endpoint", include_str!("repository/templates/box-endpoint.yaml")),
    ("kube-vip", include_str!("repository/templates/kube-vip.yaml")),
    ("talos", include_str!("repository/templates/talos.yaml")),
    ("topology", include_str!("repository/templates/topology.yaml")),
    ("workers-only", include_str!("repository/templates/workers-only.yaml")),
];

/// ClusterClass of the flavor `topology`. `clusterctl` downloads it by the name of the class.
const CLASS: &str = "clusterclass-tinbox.yaml";
const CLASS_YAML: &str = include_str!("repository/templates/clusterclass.yaml");

/// Files of one version of the box, for each provider.
#[derive(Debug)]
pub struct Repository {
    /// Version of the box with its `v`.
    version: String,
    releases: [Release; Provider::ALL.len()],
}

/// Release of one provider.
#[derive(Debug)]
pub(crate) struct Release {
    /// Provider of the release.
    pub provider: Provider,
    /// Version with its `v`.
    pub version: String,
    /// Files by name. Clients without a session request them, so that they are made once.
    pub files: Vec<(String, Cow<'static, str>)>,
}

impl Release {
    fn new(provider: Provider, version: &str) -> Self {
        let mut files = vec![
            ("metadata.yaml".to_owned(), metadata(provider).into()),
            (COMPONENTS.to_owned(), components::yaml(provider).into()),
            (CLASS.to_owned(), CLASS_YAML.into()),
        ];
        files.extend(TEMPLATES.map(|(flavor, text)| (template_name(flavor), text.into())));
        Self { provider, version: provider.version(version), files }
    }

    /// Returns the path of the release in the registry, with a slash at the end.
    fn package(&self) -> String {
        let (label, version) = (self.provider.label(), &self.version);
        format!("/api/v4/projects/{PROJECT}/packages/generic/{label}/{version}/")
    }

    fn file(&self, name: &str) -> Option<&str> {
        let found = self.files.iter().find(|(known, _)| known == name);
        found.map(|(_, text)| text.as_ref())
    }
}

impl Repository {
    /// Creates the releases of a version of the box, such as `0.1.0`.
    pub fn new(version: &str) -> Self {
        let releases = Provider::ALL.map(|provider| Release::new(provider, version));
        Self { version: format!("v{version}"), releases }
    }

    /// Version of the box with its `v`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns `clusterctl.yaml` for a box that is reached at `host`: a name that begins with
    /// `gitlab.`, with an optional port.
    pub fn config(&self, host: &str) -> String {
        self.config_with(|release| format!("https://{host}{}{COMPONENTS}", release.package()))
    }

    /// Returns `clusterctl.yaml` with a URL for the components of each release.
    pub(crate) fn config_with(&self, url: impl Fn(&Release) -> String) -> String {
        let mut text = String::from("providers:\n");
        for release in &self.releases {
            let (name, url) = (release.provider.name(), url(release));
            let _ = write!(text, "- name: {name}\n  type: InfrastructureProvider\n  url: {url}\n");
        }
        text
    }

    /// Returns the file at a path of the registry; `None` if no release has such a file. `path` is
    /// the path of the URL as it was sent: a decoded `%2F` would be a separator.
    pub fn package_file(&self, path: &str) -> Option<&str> {
        let mut releases = self.releases.iter();
        releases.find_map(|release| release.file(path.strip_prefix(&release.package())?))
    }

    /// Returns the components of the box's own provider with clusterctl's labels, for
    /// `kubectl apply`.
    pub fn components(&self) -> &str {
        self.releases[0].file(COMPONENTS).unwrap_or_default()
    }

    pub(crate) fn releases(&self) -> &[Release] {
        &self.releases
    }
}

fn template_name(flavor: &str) -> String {
    match flavor {
        "" => "cluster-template.yaml".to_owned(),
        _ => format!("cluster-template-{flavor}.yaml"),
    }
}

fn metadata(provider: Provider) -> String {
    let mut text = String::from(
        "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries:\n",
    );
    for (major, minor, contract) in provider.series(&SERIES) {
        let _ = write!(text, "- major: {major}\n  minor: {minor}\n  contract: {contract}\n");
    }
    text
}

#[cfg(test)]
mod tests;
