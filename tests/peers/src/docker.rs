//! A real Docker engine with a registry, for agents that run containers.

use std::fs::{self, Permissions};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::{Process, built, find, loopback_address};

/// Maximum time for the start of engine and registry.
const START_LIMIT: Duration = Duration::from_secs(120);
/// TCP port of the registry on the loopback network.
const REGISTRY_PORT: u16 = 5000;
/// Host folder that tink-worker binds into every container. The engine sees a tmpfs in its place.
/// The empty folder stays on the host: its removal would unmount the tmpfs of every running engine.
const WORKER_FOLDER: &str = "/worker";

/// Registry of the stock actions. The engine must not reach it: tests give their own images these
/// names.
const ACTIONS_REGISTRY: &str = "quay.io";
/// Variables by which the engine would reach registries through a proxy.
const PROXIES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];

/// A running engine with its own state, and a registry from which it may pull without TLS. Dropping
/// this value ends the engine, the registry and every container: the containers are in the engine's
/// own PID namespace. The engine has no bridge and writes no packet filter.
pub struct Docker {
    engine: Process,
    folder: TempDir,
    client: PathBuf,
    registry: String,
    _server: Process,
}

impl Docker {
    /// Starts the engine and the registry, and waits until both answer. Needs root.
    ///
    /// # Errors
    /// A program is missing or does not start; the error contains the end of the program's log.
    pub fn start() -> Result<Self> {
        let programs = built("docker", &[])?.remove(0);
        let folder = TempDir::with_prefix("docker-").context("cannot make a folder")?;
        let (registry, server) = registry(folder.path())?;
        let at = |name: &str| folder.path().join(name).display().to_string();
        // dockerd waits only 15 s for a containerd that it starts itself, too little on a busy
        // machine.
        let script = format!(
            "mkdir -p {WORKER_FOLDER} && mount -t tmpfs worker {WORKER_FOLDER} || exit 1\n\
             mount --bind {hosts} /etc/hosts || exit 1\n\
             {containerd} --config {config} --address {socket} --root {root} --state {state} &\n\
             while [ ! -S {socket} ]; do kill -0 $! || exit 1; sleep 0.1; done\n\
             exec \"$@\"",
            hosts = at("hosts"),
            containerd = programs.join("containerd").display(),
            config = at("containerd.toml"),
            socket = at("containerd.sock"),
            root = at("containerd"),
            state = at("containerd-state"),
        );
        let mut arguments: Vec<String> =
            ["--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "env"]
                .map(str::to_owned)
                .into();
        arguments.extend(PROXIES.map(|name| format!("--unset={name}")));
        arguments.push(format!("PATH={}:/usr/sbin:/usr/bin:/sbin:/bin", programs.display()));
        arguments.extend(["sh", "-c", &script, "dockerd"].map(str::to_owned));
        arguments.push(programs.join("dockerd").display().to_string());
        let flags = ["--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-masq=false"];
        arguments.extend(flags.map(str::to_owned));
        arguments.extend(["--ip-forward=false", "--storage-driver=vfs"].map(str::to_owned));
        for (flag, value) in [
            ("--containerd", at("containerd.sock")),
            ("--host", format!("unix://{}", at("docker.sock"))),
            ("--data-root", at("data")),
            ("--exec-root", at("exec")),
            ("--pidfile", at("pid")),
            ("--config-file", at("none.json")),
            ("--insecure-registry", registry.clone()),
        ] {
            arguments.extend([flag.to_owned(), value]);
        }
        fs::write(at("hosts"), format!("127.0.0.1 localhost {ACTIONS_REGISTRY}\n"))
            .context("cannot write the engine's hosts")?;
        fs::write(at("none.json"), "{}").context("cannot write the engine's configuration")?;
        // The CRI plugin needs a network plugin.
        let config = "version = 2\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n";
        fs::write(at("containerd.toml"), config).context("cannot write containerd.toml")?;
        let unshare = find("unshare", "util-linux")?;
        let engine = Process::start(&unshare, &arguments, &folder.path().join("dockerd.log"))?;
        let client = programs.join("docker");
        let mut docker = Self { engine, folder, client, registry, _server: server };
        let (client, socket) = (docker.client.clone(), docker.host());
        let answers = || command(&client, &socket).arg("version").output().is_ok_and(ok);
        docker.engine.wait_until("the Docker engine to answer", START_LIMIT, answers)?;
        Ok(docker)
    }

    /// Address of the engine, in the form of `DOCKER_HOST`.
    pub fn host(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// Unix socket of the engine.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("docker.sock")
    }

    /// Runs the Docker client and returns its output.
    ///
    /// # Errors
    /// The client fails; the error contains the client's error output.
    pub fn run(&self, arguments: &[&str]) -> Result<String> {
        let output = command(&self.client, &self.host())
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .context("cannot run docker")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "docker {arguments:?}: {said}");
        String::from_utf8(output.stdout).context("docker printed no text")
    }

    /// Builds an image from the host's busybox that runs `script`, pushes it and removes the local
    /// copy, so that it must be pulled. Returns the image reference.
    ///
    /// # Errors
    /// There is no static busybox, or the image cannot be built or pushed.
    pub fn publish(&self, name: &str, script: &str) -> Result<String> {
        let reference = format!("{}/{name}:1", self.registry);
        self.embed(name, &reference, script)?;
        self.run(&["push", "--quiet", &reference])?;
        self.run(&["rmi", &reference])?;
        Ok(reference)
    }

    /// Builds an image from the host's busybox that runs `script`. The engine has it as
    /// `reference`, for agents that cannot pull it. `name` is the name of a folder.
    ///
    /// # Errors
    /// There is no static busybox, or the image cannot be built.
    pub fn embed(&self, name: &str, reference: &str, script: &str) -> Result<()> {
        let root = self.folder.path().join(name);
        fs::create_dir_all(root.join("bin")).context("cannot make a folder")?;
        let busybox = find("busybox", "busybox-static")?;
        fs::copy(&busybox, root.join("bin/busybox")).context("cannot copy busybox")?;
        for applet in ["sh", "cat", "sleep", "sort", "env"] {
            symlink("busybox", root.join("bin").join(applet)).context("cannot link an applet")?;
        }
        let program = root.join("bin/act");
        fs::write(&program, script).context("cannot write the action")?;
        fs::set_permissions(&program, Permissions::from_mode(0o755))
            .context("cannot make the action a program")?;
        let archive = self.folder.path().join(format!("{name}.tar")).display().to_string();
        let mut tar = Command::new("tar");
        tar.arg("-C").arg(&root).args(["-cf", &archive, "."]);
        ensure!(tar.status().context("cannot run tar")?.success(), "tar fails");
        let entry = "ENTRYPOINT [\"/bin/act\"]";
        self.run(&["import", "--change", entry, &archive, reference]).map(drop)
    }

    /// Names of all containers, ended ones included.
    ///
    /// # Errors
    /// The engine does not answer.
    pub fn containers(&self) -> Result<Vec<String>> {
        let names = self.run(&["ps", "--all", "--format", "{{.Names}}"])?;
        Ok(names.lines().map(str::to_owned).collect())
    }

    /// Kills and removes every container, as after a power cut.
    ///
    /// # Errors
    /// The engine cannot remove a container.
    pub fn clear(&self) -> Result<()> {
        for name in self.containers()? {
            // The engine may be about to remove the container for its agent.
            if let Err(error) = self.run(&["rm", "--force", &name]) {
                let said = error.to_string();
                let gone = said.contains("No such container") || said.contains("already in");
                ensure!(gone, "{said}");
            }
        }
        Ok(())
    }
}

impl Drop for Docker {
    fn drop(&mut self) {
        // The kernel would end the containers; the engine also removes their control groups.
        let _ = self.clear();
        self.engine.kill();
    }
}

fn registry(folder: &Path) -> Result<(String, Process)> {
    let program = built("registry", &[])?.remove(0);
    let address = loopback_address()?;
    let host = format!("{address}:{REGISTRY_PORT}");
    let blobs = folder.join("registry").display().to_string();
    let arguments = ["serve".to_owned(), host.clone(), blobs];
    let mut server = Process::start(&program, &arguments, &folder.join("registry.log"))?;
    let answers = || TcpStream::connect((address, REGISTRY_PORT)).is_ok();
    server.wait_until("the registry to answer", START_LIMIT, answers)?;
    Ok((host, server))
}

fn command(client: &Path, host: &str) -> Command {
    let mut command = Command::new(client);
    command.env("DOCKER_HOST", host);
    command
}

fn ok(output: std::process::Output) -> bool {
    output.status.success()
}
