//! A workstation with clusterctl, and local repositories of providers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use peers::{Printed, Tinboxd, built, run};
use tempfile::TempDir;

/// Name of the box in its certificate.
pub const NAME: &str = "box.test";
/// Sections of `box.toml` for the pages, from which clusterctl reads.
pub const SECTIONS: &str = "[web]\nlisten = \"ADDRESS:8443\"\n";
/// Host name of the box.
pub const HOST: &str = "gitlab.box.test";
/// Definition of a kind. clusterctl does not install cert-manager if its kinds can be created.
const CERT_MANAGER: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: NAMES.cert-manager.io}
spec:
  group: cert-manager.io
  scope: Namespaced
  names: {kind: KIND, plural: NAMES, singular: ONE, listKind: KINDList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
"#;

/// A workstation that knows the box by its name and trusts its CA.
pub struct Workstation {
    /// Path of the box's CA.
    authority: PathBuf,
    folder: TempDir,
}

impl Workstation {
    /// Creates the workstation of a box with the name [`NAME`] and the sections [`SECTIONS`].
    pub fn of(tinboxd: &Tinboxd) -> Self {
        let folder = TempDir::with_prefix("workstation-").unwrap();
        let hosts = format!("127.0.0.1 localhost\n{} {HOST}\n", tinboxd.address());
        fs::write(folder.path().join("hosts"), hosts).unwrap();
        fs::create_dir_all(folder.path().join(".config/cluster-api")).unwrap();
        let authority = tinboxd.folder().join("state/pki/ca.crt");
        Self { authority, folder }
    }

    /// Returns the provider as the box's own configuration names it.
    pub fn provider(&self) -> String {
        let authority = self.authority.display().to_string();
        let arguments = ["-fsS", "--cacert", &authority, &self.url()];
        let text = self.good(Path::new("/usr/bin/curl"), &arguments, None);
        text.strip_prefix("providers:\n").unwrap().to_owned()
    }

    /// Returns the URL of the box's configuration of clusterctl.
    pub fn url(&self) -> String {
        format!("https://{HOST}:8443/clusterctl.yaml")
    }

    /// Folder of the user.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a configuration of clusterctl with these providers, and returns its path.
    pub fn config(&self, name: &str, providers: &[&str]) -> String {
        let path = self.folder().join(format!("{name}.yaml"));
        fs::write(&path, format!("providers:\n{}", providers.concat())).unwrap();
        path.display().to_string()
    }

    /// Runs a program with the box's name in `/etc/hosts`.
    pub fn run(&self, program: &Path, arguments: &[&str], kubeconfig: Option<&Path>) -> Printed {
        let mut command = Command::new("unshare");
        let hosts = "mount --bind \"$0\" /etc/hosts; exec \"$@\"";
        command.args(["--mount", "sh", "-euc", hosts]).arg(self.folder.path().join("hosts"));
        command.arg(program).args(arguments).env_clear();
        command.env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin").env("HOME", self.folder.path());
        command.env("SSL_CERT_FILE", &self.authority);
        command.env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true").env("GOPROXY", "off");
        command.envs(kubeconfig.map(|path| ("KUBECONFIG", path)));
        command.env("CONTROL_PLANE_VIP", "10.77.0.9");
        run(command, "").unwrap()
    }

    /// Runs a program that must succeed, and returns its output.
    pub fn good(&self, program: &Path, arguments: &[&str], kubeconfig: Option<&Path>) -> String {
        let printed = self.run(program, arguments, kubeconfig);
        assert!(printed.success, "{arguments:?}: {printed:?}");
        printed.out + &printed.err
    }
}

/// Returns the path of a clusterctl.
pub fn clusterctl(version: &str) -> PathBuf {
    built("clusterctl", &[version]).unwrap().remove(0)
}

/// Returns the definitions of cert-manager's kinds that clusterctl looks for.
pub fn cert_manager() -> String {
    let stub = |kind: &str, names: &str, one: &str| {
        CERT_MANAGER.replace("KIND", kind).replace("NAMES", names).replace("ONE", one)
    };
    stub("Issuer", "issuers", "issuer") + &stub("Certificate", "certificates", "certificate")
}

/// Provider in a local repository.
#[derive(Debug, Clone, Copy)]
pub struct LocalProvider<'a> {
    /// Name, as after `clusterctl init --core`.
    pub name: &'a str,
    /// Type, such as `CoreProvider`.
    pub kind: &'a str,
    /// Label of the provider: the name of its folder, as clusterctl requires.
    pub label: &'a str,
    /// Version with its `v`.
    pub version: &'a str,
    /// Release series, as in `metadata.yaml`.
    pub series: &'a str,
}

impl LocalProvider<'_> {
    /// Writes the release to a repository, and returns the lines for the configuration of
    /// clusterctl.
    pub fn write(&self, repository: &Path, components: &str) -> String {
        let Self { name, kind, label, version, series } = self;
        let release = repository.join(label).join(version);
        fs::create_dir_all(&release).unwrap();
        let url = release.join("components.yaml");
        fs::write(&url, components).unwrap();
        let metadata = format!(
            "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\n\
             releaseSeries: [{{{series}}}]\n"
        );
        fs::write(release.join("metadata.yaml"), metadata).unwrap();
        format!("- {{name: {name}, type: {kind}, url: {}}}\n", url.display())
    }
}
