//! The installation script and the hook as a machine runs them: a real shell, curl and openssl, and
//! the router on a TCP port. Only `systemctl` and `ethtool` are replaced, by scripts that record
//! their arguments.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::routing::post;
use stdx::testing::until;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use super::NUC;
use crate::fake::{Events, Machines};
use crate::{Config, Instance, PowerHooks, Provisioning, router};

/// Box and installed system of one machine, both on the loopback interface.
struct Rig {
    runtime: Runtime,
    hooks: Arc<PowerHooks>,
    root: TempDir,
    url: String,
}

impl Rig {
    fn new(provisioning: Provisioning) -> Self {
        let hooks = Arc::new(PowerHooks::new(&[7; 32]));
        let instance = Instance {
            hardware: NUC.to_owned(),
            uuid: "uid-1".to_owned(),
            provisioning,
            ..Instance::default()
        };
        let machines = Arc::new(Machines::default().with(Ipv4Addr::LOCALHOST, instance));
        let events = Arc::new(Events::default());
        let routes = router(Config::default(), machines, events, Arc::clone(&hooks));
        let runtime = Runtime::new().unwrap();
        let url = serve(&runtime, routes);
        Self { runtime, hooks, root: TempDir::with_prefix("power-hook-").unwrap(), url }
    }

    fn script(&self) -> String {
        let output = curl(&["-fsS", &format!("{}/power-hook", self.url)]);
        assert!(output.0, "{}", output.1);
        output.1
    }

    /// Installs the hook of the machine; the hook then polls `url`.
    fn install(&self, url: &str) {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(self.script()).env("DESTDIR", self.root.path());
        assert!(shell.status().unwrap().success());
        std::fs::write(self.root.path().join("etc/tinbox/power-hook.url"), url).unwrap();
        for program in ["systemctl", "ethtool"] {
            let path = self.root.path().join(program);
            let calls = self.root.path().join("calls");
            let text = format!("#!/bin/sh\nset -eu\necho {program} \"$@\" >>{}\n", calls.display());
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    fn start(&self) -> Child {
        let root = self.root.path();
        let path = format!("{}:{}", root.display(), std::env::var("PATH").unwrap());
        Command::new("sh")
            .arg(root.join("usr/local/sbin/tinbox-power-hook"))
            .env("TINBOX_POWER_HOOK", root.join("etc/tinbox"))
            .env("TINBOX_POWER_HOOK_PAUSE", "0.05")
            .env("PATH", path)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Returns the calls of `systemctl`.
    fn calls(&self) -> Vec<String> {
        let calls = std::fs::read_to_string(self.root.path().join("calls")).unwrap_or_default();
        let calls = calls.lines().filter(|line| line.starts_with("systemctl"));
        calls.map(str::to_owned).collect()
    }
}

fn serve(runtime: &Runtime, routes: Router) -> String {
    let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let service = routes.into_make_service_with_connect_info::<SocketAddr>();
    runtime.spawn(async move { axum::serve(listener, service).await });
    url
}

/// Returns true and the output after a success.
fn curl(arguments: &[&str]) -> (bool, String) {
    let output = Command::new("curl").args(["--noproxy", "*"]).args(arguments).output().unwrap();
    (output.status.success(), String::from_utf8(output.stdout).unwrap())
}

fn end(mut hook: Child) -> String {
    hook.kill().unwrap();
    let output = hook.wait_with_output().unwrap();
    String::from_utf8(output.stderr).unwrap()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn the_installed_hook_powers_its_machine_off_when_the_box_requests_it_and_only_then() {
    let rig = Rig::new(Provisioning::Underway);
    rig.install(&rig.url);
    assert_eq!(mode(&rig.root.path().join("etc/tinbox")), 0o700);
    assert_eq!(mode(&rig.root.path().join("etc/tinbox/power-hook.inner")), 0o600);
    let wants = "etc/systemd/system/multi-user.target.wants/tinbox-power-hook.service";
    assert!(std::fs::read_to_string(rig.root.path().join(wants)).unwrap().contains("ExecStart="));
    let hook = rig.start();
    until("the hook to poll twice", || {
        let hooks = rig.hooks.hooks();
        hooks.get(NUC).is_some_and(|hook| hook.number > 0)
    });
    let first = rig.hooks.hooks()[NUC].number;
    until("another poll", || rig.hooks.hooks()[NUC].number > first);
    assert_eq!(rig.calls(), Vec::<String>::new(), "without a request nothing happens");
    assert_eq!(rig.runtime.block_on(rig.hooks.power_off(NUC)), Ok(()));
    let output = hook.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, "powering off, because the box requested it\n");
    assert_eq!(rig.calls(), ["systemctl poweroff"]);
}

#[test]
fn a_forged_answer_powers_nothing_off() {
    let rig = Rig::new(Provisioning::Underway);
    let (polls, downs) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (polled, downed) = (Arc::clone(&polls), Arc::clone(&downs));
    let other = PowerHooks::new(&[8; 32]).key_of("uid-1").mac("off");
    let forged = Router::new()
        .route(
            "/power-hook/poll",
            post(async move || {
                polled.fetch_add(1, Ordering::SeqCst);
                format!("off 0123 {other}\n")
            }),
        )
        .route(
            "/power-hook/down",
            post(async move || {
                downed.fetch_add(1, Ordering::SeqCst);
                "go"
            }),
        );
    let url = serve(&rig.runtime, forged);
    rig.install(&url);
    let hook = rig.start();
    until("three polls", || polls.load(Ordering::SeqCst) >= 3);
    let said = end(hook);
    assert!(said.contains("ignored a request to power off with a wrong HMAC"), "{said}");
    assert_eq!((downs.load(Ordering::SeqCst), rig.calls()), (0, Vec::new()));
}

#[test]
fn a_box_that_lost_its_key_gets_no_hook_and_the_machine_says_why() {
    let rig = Rig::new(Provisioning::Underway);
    rig.install(&rig.url);
    let pad = rig.root.path().join("etc/tinbox/power-hook.inner");
    let mut bytes = std::fs::read(&pad).unwrap();
    bytes[0] ^= 1;
    std::fs::write(&pad, bytes).unwrap();
    let mut hook = rig.start();
    let mut line = String::new();
    let mut errors = std::io::BufReader::new(hook.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut errors, &mut line).unwrap();
    end(hook);
    assert!(line.starts_with("cannot poll http://127.0.0.1:"), "{line}");
    assert_eq!(rig.hooks.state(NUC), None);
}

#[test]
fn the_key_is_given_only_while_the_machine_may_have_its_user_data() {
    let rig = Rig::new(Provisioning::Unrecorded);
    let url = format!("{}/power-hook", rig.url);
    let (_, status) = curl(&["-s", "-o", "/dev/null", "-w", "%{http_code}", &url]);
    assert_eq!(status, "403");
    let host = ["-s", "-o", "/dev/null", "-w", "%{http_code}", "-H", "Host: a'; reboot '", &url];
    assert_eq!(curl(&host).1, "403");
    let rig = Rig::new(Provisioning::Underway);
    let url = format!("{}/power-hook", rig.url);
    let host = ["-s", "-o", "/dev/null", "-w", "%{http_code}", "-H", "Host: a'; reboot '", &url];
    assert_eq!(curl(&host).1, "400");
}
