//! Stock clusterctl on a workstation that knows a box, and local repositories of providers.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::cluster_api::Series;
use crate::{Printed, Tinboxd, built, run};

/// Name of the box in its certificate.
pub const NAME: &str = "box.test";
/// Sections of `box.toml` for the pages, from which clusterctl reads.
pub const SECTIONS: &str = "[web]\nlisten = \"ADDRESS:8443\"\n";
/// Port of the pages in [`SECTIONS`].
const PORT: u16 = 8443;
/// Host name of the box.
pub const HOST: &str = "gitlab.box.test";
/// Address of the control plane, for the variable `CONTROL_PLANE_VIP` of the cluster templates.
pub const CONTROL_PLANE: &str = "10.77.0.9";
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
    port: u16,
    folder: TempDir,
}

impl Workstation {
    /// Creates the workstation of a box with the name [`NAME`] and the sections [`SECTIONS`].
    ///
    /// # Errors
    /// As [`Workstation::new`].
    pub fn of(tinboxd: &Tinboxd) -> Result<Self> {
        let authority = tinboxd.folder().join("state/pki/ca.crt");
        Self::new(SocketAddr::from((tinboxd.address(), PORT)), authority)
    }

    /// Creates the workstation of a box with the name [`NAME`], whose pages are at `pages`.
    /// `authority` is the path of the box's CA.
    ///
    /// # Errors
    /// The folder of the user cannot be made.
    pub fn new(pages: SocketAddr, authority: PathBuf) -> Result<Self> {
        let folder = TempDir::with_prefix("workstation-").context("cannot make a folder")?;
        let hosts = format!("127.0.0.1 localhost\n{} {HOST}\n", pages.ip());
        fs::write(folder.path().join("hosts"), hosts).context("cannot write the host names")?;
        fs::create_dir_all(folder.path().join(".config/cluster-api"))
            .context("cannot make the folder of clusterctl")?;
        Ok(Self { authority, port: pages.port(), folder })
    }

    /// Returns the provider as the box's own configuration names it.
    ///
    /// # Errors
    /// The box does not serve its configuration.
    pub fn provider(&self) -> Result<String> {
        let authority = self.authority.display().to_string();
        let arguments = ["-fsS", "--cacert", &authority, &self.url()];
        let text = self.good(Path::new("/usr/bin/curl"), &arguments, None)?;
        let providers = text.strip_prefix("providers:\n").context("no list of providers")?;
        Ok(providers.to_owned())
    }

    /// Returns the URL of the box's configuration of clusterctl.
    pub fn url(&self) -> String {
        let port = match self.port {
            443 => String::new(),
            port => format!(":{port}"),
        };
        format!("https://{HOST}{port}/clusterctl.yaml")
    }

    /// Folder of the user.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a configuration of clusterctl with these providers, and returns its path.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn config(&self, name: &str, providers: &[&str]) -> Result<String> {
        let path = self.folder().join(format!("{name}.yaml"));
        let text = format!("providers:\n{}", providers.concat());
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path.display().to_string())
    }

    /// Returns a command that runs a program with the box's name in `/etc/hosts`.
    pub fn command(
        &self,
        program: &Path,
        arguments: &[&str],
        kubeconfig: Option<&Path>,
    ) -> Command {
        let mut command = Command::new("unshare");
        let hosts = "mount --bind \"$0\" /etc/hosts; exec \"$@\"";
        command.args(["--mount", "sh", "-euc", hosts]).arg(self.folder.path().join("hosts"));
        command.arg(program).args(arguments).env_clear();
        command.env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin").env("HOME", self.folder.path());
        command.env("SSL_CERT_FILE", &self.authority);
        command.env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true").env("GOPROXY", "off");
        command.envs(kubeconfig.map(|path| ("KUBECONFIG", path)));
        command.env("CONTROL_PLANE_VIP", CONTROL_PLANE);
        command
    }

    /// Runs a program with the box's name in `/etc/hosts`.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn run(
        &self,
        program: &Path,
        arguments: &[&str],
        kubeconfig: Option<&Path>,
    ) -> Result<Printed> {
        run(self.command(program, arguments, kubeconfig), "")
    }

    /// Runs a program that must succeed, and returns its output.
    ///
    /// # Errors
    /// The program fails; with its output.
    pub fn good(
        &self,
        program: &Path,
        arguments: &[&str],
        kubeconfig: Option<&Path>,
    ) -> Result<String> {
        let printed = self.run(program, arguments, kubeconfig)?;
        ensure!(printed.success, "{arguments:?}: {printed:?}");
        Ok(printed.out + &printed.err)
    }
}

/// Returns the path of a clusterctl.
///
/// # Errors
/// clusterctl cannot be built.
pub fn program(version: &str) -> Result<PathBuf> {
    Ok(built("clusterctl", &[version])?.remove(0))
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
    /// Returns the provider of a manager: `core`, or kubeadm's `bootstrap` or `control-plane`.
    ///
    /// # Errors
    /// No manager has this name.
    pub fn of_manager(series: Series, manager: &str) -> Result<LocalProvider<'static>> {
        let (version, series) = match series {
            Series::V1_8 => ("v1.8.12", "major: 1, minor: 8, contract: v1beta1"),
            Series::V1_13 => ("v1.13.5", "major: 1, minor: 13, contract: v1beta2"),
        };
        let core = LocalProvider {
            name: "cluster-api",
            kind: "CoreProvider",
            label: "cluster-api",
            version,
            series,
        };
        let kubeadm = LocalProvider { name: "kubeadm", ..core };
        match manager {
            "core" => Ok(core),
            "bootstrap" => Ok(LocalProvider {
                kind: "BootstrapProvider",
                label: "bootstrap-kubeadm",
                ..kubeadm
            }),
            "control-plane" => Ok(LocalProvider {
                kind: "ControlPlaneProvider",
                label: "control-plane-kubeadm",
                ..kubeadm
            }),
            _ => anyhow::bail!("{manager} is not a manager of Cluster API"),
        }
    }

    /// Writes the release with the objects of a List as its components, as [`Self::write`] does.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_list(&self, repository: &Path, list: &Value) -> Result<String> {
        let objects = list["items"].as_array().context("a List has items")?;
        let documents: Vec<String> = objects.iter().map(Value::to_string).collect();
        self.write(repository, &documents.join("\n---\n"))
    }

    /// Writes the release to a repository, and returns the lines for the configuration of
    /// clusterctl.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, repository: &Path, components: &str) -> Result<String> {
        let Self { name, kind, label, version, series } = self;
        let release = repository.join(label).join(version);
        fs::create_dir_all(&release).context("cannot make the folder of a release")?;
        let url = release.join("components.yaml");
        let metadata = format!(
            "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\n\
             releaseSeries: [{{{series}}}]\n"
        );
        fs::write(&url, components)
            .and_then(|()| fs::write(release.join("metadata.yaml"), metadata))
            .with_context(|| format!("cannot write the release of {name}"))?;
        Ok(format!("- {{name: {name}, type: {kind}, url: {}}}\n", url.display()))
    }
}
