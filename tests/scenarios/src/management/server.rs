//! etcd, kube-apiserver and kube-controller-manager.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, ensure};
use qemu::{BoxProcess, BoxProgram, Rack, poll};
use stdx::testing::PATIENCE;

use super::programs::Programs;

/// Port of the API server. The default 6443 is the box's port.
const PORT: u16 = 26443;

/// A running API server.
pub struct Server {
    kubeconfig: PathBuf,
    certificates: PathBuf,
    authority: String,
    _controllers: BoxProcess,
    _api: BoxProcess,
    _etcd: BoxProcess,
}

impl Server {
    /// Starts the three programs and waits until the API is ready. They listen on this loopback
    /// address, and the names of their logs begin with `name`.
    pub fn start(
        rack: &Rack,
        programs: &Programs,
        folder: &Path,
        (address, name): (Ipv4Addr, &str),
    ) -> anyhow::Result<Self> {
        let certificates = folder.join("certificates");
        let kubeconfig = folder.join("kubeconfig");
        let key = folder.join("service-accounts.key");
        let public = folder.join("service-accounts.pub");
        let tokens = folder.join("tokens.csv");
        let token = random()?;
        let pair = rcgen::KeyPair::generate()?;
        secret(&key, &pair.serialize_pem())?;
        fs::write(&public, pair.public_key_pem()).context("cannot write a public key")?;
        secret(&tokens, &format!("{token},admin,admin,system:masters\n"))?;
        secret(&kubeconfig, &kubeconfig_of(address, &certificates, &token))?;

        let log = |program: &str| rack.dir().join(format!("{name}-{program}.log"));
        let (clients, peers) = (format!("http://{address}:2379"), format!("http://{address}:2380"));
        let etcd = BoxProgram::new(programs.program("etcd")?, log("etcd"))
            .args(["--data-dir".as_ref(), folder.join("etcd").as_os_str()])
            .args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients])
            .args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers])
            .args(["--initial-cluster".to_owned(), format!("default={peers}")])
            .args(["--unsafe-no-fsync"]);
        let etcd = rack.spawn_box(etcd)?;
        let listen = address.to_string();
        let api = BoxProgram::new(programs.program("kube-apiserver")?, log("apiserver"))
            .args(["--etcd-servers", &clients, "--authorization-mode", "RBAC"])
            .args(["--bind-address", &listen, "--advertise-address", &listen])
            .args(["--secure-port".to_owned(), PORT.to_string()])
            .args(["--cert-dir".as_ref(), certificates.as_os_str()])
            .args(["--token-auth-file".as_ref(), tokens.as_os_str()])
            .args(["--service-account-issuer", "https://management.test"])
            .args(["--service-account-key-file".as_ref(), public.as_os_str()])
            .args(["--service-account-signing-key-file".as_ref(), key.as_os_str()])
            .args(["--service-cluster-ip-range", "10.96.0.0/24"])
            .args(["--endpoint-reconciler-type", "none"]);
        let mut api = rack.spawn_box(api)?;
        let ready = || {
            if !api.is_running() {
                return Some(false);
            }
            let mut command = rack.box_command(&programs.kubectl);
            command.arg("--kubeconfig").arg(&kubeconfig).args(["get", "--raw", "/readyz"]);
            let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
            status.is_ok_and(|status| status.success()).then_some(true)
        };
        let what = "the management cluster's API to be ready";
        ensure!(poll(what, PATIENCE, ready)?, "it ended; its words are in {}", api.log().display());
        // Only these two controllers are needed: the first removes the finalizers of namespaces,
        // the second deletes objects whose owner is deleted.
        let controllers =
            BoxProgram::new(programs.program("kube-controller-manager")?, log("controllers"))
                .args(["--kubeconfig".as_ref(), kubeconfig.as_os_str()])
                .args(["--controllers", "namespace-controller,garbage-collector-controller"])
                .args(["--leader-elect=false", "--secure-port=0"]);
        let controllers = rack.spawn_box(controllers)?;
        let authority = fs::read_to_string(certificates.join("apiserver.crt"))
            .context("cannot read the API server's certificate")?;
        Ok(Self {
            kubeconfig,
            certificates,
            authority,
            _controllers: controllers,
            _api: api,
            _etcd: etcd,
        })
    }

    /// Path of the administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Certificate and key that the API server generated.
    pub fn certificate(&self) -> [PathBuf; 2] {
        ["apiserver.crt", "apiserver.key"].map(|name| self.certificates.join(name))
    }

    /// PEM of the authority that signed the certificate.
    pub fn authority(&self) -> &str {
        &self.authority
    }
}

/// Kubeconfig of the administrator. The certificate file of the API server is the authority's file
/// too, because it contains both certificates.
fn kubeconfig_of(address: Ipv4Addr, certificates: &Path, token: &str) -> String {
    let authority = certificates.join("apiserver.crt");
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         clusters:\n\
         - name: management\n\
         \x20 cluster:\n\
         \x20   server: https://{address}:{PORT}\n\
         \x20   certificate-authority: {authority:?}\n\
         users:\n\
         - {{name: admin, user: {{token: {token}}}}}\n\
         contexts:\n\
         - {{name: management, context: {{cluster: management, user: admin}}}}\n\
         current-context: management\n"
    )
}

fn secret(path: &Path, text: &str) -> anyhow::Result<()> {
    use std::io::Write as _;
    let open =
        fs::OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(path);
    let mut file = open.with_context(|| format!("cannot make {}", path.display()))?;
    file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
}

fn random() -> anyhow::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("no randomness: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
