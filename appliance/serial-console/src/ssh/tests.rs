//! The SSH server against OpenSSH's client.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, mpsc};

use stdx::testing::PATIENCE;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::sync::oneshot;
use tokio_util::sync::DropGuard;

use super::*;
use crate::{Machines, OpenError, Pending, RecordMode, Recorded};

/// Reads of the client's output that wait for the test.
const READS_MAX: usize = 64;

/// Machine `node` with one session and one key.
struct OneMachine {
    session: Mutex<Option<DuplexStream>>,
    /// Valid key; empty after its removal.
    key: Arc<Mutex<String>>,
}

impl Machines for OneMachine {
    fn list(&self) -> Pending<'_, Option<Vec<Recorded>>> {
        let recorded = Recorded { name: "node".into(), mode: RecordMode::Always };
        Box::pin(async { Some(vec![recorded]) })
    }

    fn open<'a>(&'a self, _: &'a str) -> Pending<'a, Result<DuplexStream, OpenError>> {
        let session = self.session.lock().unwrap().take();
        let busy = OpenError { message: "busy".into(), is_transient: true };
        Box::pin(async { session.ok_or(busy) })
    }

    fn keys<'a>(&'a self, name: &'a str) -> Pending<'a, Vec<String>> {
        let key = self.key.lock().unwrap().clone();
        let keys = (name == "node" && !key.is_empty()).then(|| format!("{key} admin@desk"));
        Box::pin(async { keys.into_iter().collect() })
    }
}

struct Server {
    folder: TempDir,
    port: u16,
    machine: DuplexStream,
    key: Arc<Mutex<String>>,
    consoles: Consoles,
    _shutdown: DropGuard,
}

fn key(folder: &TempDir, name: &str) -> PathBuf {
    let path = folder.path().join(name);
    let mut generate = Command::new("ssh-keygen");
    generate.args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"]).arg(&path);
    assert!(generate.status().unwrap().success());
    path
}

impl Server {
    async fn start() -> Self {
        let folder = TempDir::with_prefix("ssh-").unwrap();
        let public = key(&folder, "right").with_extension("pub");
        let public = std::fs::read_to_string(public).unwrap();
        key(&folder, "wrong");
        let (session, machine) = tokio::io::duplex(64);
        let right = Arc::new(Mutex::new(public.trim().to_owned()));
        let machines = OneMachine { session: Mutex::new(Some(session)), key: right.clone() };
        let (consoles, shutdown) = (Consoles::new(Arc::new(machines)), CancellationToken::new());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (recorders, until) = (consoles.clone(), shutdown.clone());
        tokio::spawn(async move { recorders.run(until).await });
        let host_key = HostKey::ensure(folder.path()).unwrap();
        tokio::spawn(serve(listener, host_key, consoles.clone(), shutdown.clone()));
        Self { folder, port, machine, key: right, consoles, _shutdown: shutdown.drop_guard() }
    }

    fn ssh(&self, key: &str, user: &str, command: &[&str]) -> Command {
        let mut ssh = Command::new("ssh");
        ssh.args(["-F", "none", "-T", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes"])
            .args(["-o", "StrictHostKeyChecking=accept-new", "-o"])
            .arg(format!("UserKnownHostsFile={}", self.folder.path().join("known").display()))
            .arg("-i")
            .arg(self.folder.path().join(key))
            .args(["-p", &self.port.to_string(), &format!("{user}@127.0.0.1")])
            .args(command)
            .env_remove("SSH_AUTH_SOCK");
        ssh
    }

    fn view(&self) -> Client {
        let mut ssh = self.ssh("right", "node", &[]);
        ssh.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = ssh.spawn().unwrap();
        let (keys, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, shown) = mpsc::sync_channel(READS_MAX);
        std::thread::spawn(move || {
            let mut buffer = [0; 512];
            while let Ok(len @ 1..) = screen.read(&mut buffer) {
                if sender.send(buffer[..len].to_vec()).is_err() {
                    return;
                }
            }
        });
        Client { child, keys, shown, text: String::new() }
    }
}

/// OpenSSH's client with an open console; ended when dropped.
struct Client {
    child: Child,
    keys: ChildStdin,
    shown: mpsc::Receiver<Vec<u8>>,
    text: String,
}

impl Client {
    fn see(&mut self, wanted: &str) {
        while !self.text.contains(wanted) {
            let bytes = self.shown.recv_timeout(PATIENCE).unwrap();
            self.text.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn run(mut command: Command) -> (bool, String) {
    let (sender, ended) = oneshot::channel();
    std::thread::spawn(move || sender.send(command.stdin(Stdio::null()).output().unwrap()));
    let output = timeout(PATIENCE, ended).await.unwrap().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn two_clients_see_what_was_printed_before_and_what_each_types_arrives() {
    let mut server = Server::start().await;
    server.machine.write_all(b"printed before anyone came\r\n").await.unwrap();
    let recorded = async {
        loop {
            let recorded = server.consoles.recorded("node").await.unwrap();
            if String::from_utf8_lossy(&recorded).contains("before anyone") {
                break;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, recorded).await.unwrap();

    let (mut first, mut second) = (server.view(), server.view());
    first.see("printed before anyone came");
    second.see("printed before anyone came");
    server.machine.write_all(b"login: ").await.unwrap();
    first.see("login: ");
    second.see("login: ");
    first.keys.write_all(b"root\n").unwrap();
    let mut typed = [0; 5];
    timeout(PATIENCE, server.machine.read_exact(&mut typed)).await.unwrap().unwrap();
    assert_eq!(&typed, b"root\n");
    second.keys.write_all(b"toor\n").unwrap();
    timeout(PATIENCE, server.machine.read_exact(&mut typed)).await.unwrap().unwrap();
    assert_eq!(&typed, b"toor\n");

    let (is_done, log) = run(server.ssh("right", "node", &["log"])).await;
    assert!(is_done && log.contains("printed before anyone came") && log.contains("login: "));
    let (is_done, said) = run(server.ssh("right", "node", &["reboot"])).await;
    assert!(!is_done && said.contains("the only command is"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_key_another_machine_and_a_password_are_refused() {
    let server = Server::start().await;
    for (key, user) in [("wrong", "node"), ("right", "other")] {
        let (is_in, said) = run(server.ssh(key, user, &["log"])).await;
        assert!(!is_in && said.contains("Permission denied (publickey)"), "{key} {user}: {said}");
    }
    let (is_in, said) = run(server.ssh("right", "node", &["log"])).await;
    assert!(is_in, "{said}");
}

#[test]
fn the_host_key_is_generated_once_and_only_its_owner_reads_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = TempDir::with_prefix("ssh-").unwrap();
    let first = HostKey::ensure(folder.path()).unwrap().fingerprint();
    assert_eq!(HostKey::ensure(folder.path()).unwrap().fingerprint(), first);
    let file = folder.path().join(HOST_KEY);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let said = Command::new("ssh-keygen").arg("-lf").arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains(&first), "{said} {first}");
    std::fs::write(&file, "not a key").unwrap();
    assert!(matches!(HostKey::ensure(folder.path()), Err(Error::HostKey { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_console_ends_with_the_key_that_opened_it() {
    let mut server = Server::start().await;
    let mut client = server.view();
    server.machine.write_all(b"login: ").await.unwrap();
    client.see("login: ");
    server.key.lock().unwrap().clear();
    client.see("your key may not use this console any more");
    assert!(!client.child.wait().unwrap().success());
}
