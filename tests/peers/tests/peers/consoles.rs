//! Serial consoles of a real box: a simulated BMC, OpenSSH's client, and a restart of the box.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use peers::{IpmiSim, Tinboxd, poll};
use stdx::testing::PATIENCE;
use tempfile::TempDir;

use crate::claim::{code, program};

fn key(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    let mut generate = Command::new("ssh-keygen");
    generate.args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"]).arg(&path);
    assert!(generate.status().unwrap().success());
    path
}

/// Hardware `nuc1` with this public key, and its BMC.
fn objects(address: &str, key: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Secret
metadata: {{name: bmc-nuc1, namespace: default}}
stringData: {{username: {}, password: {}}}
---
apiVersion: bmc.tinkerbell.org/v1alpha1
kind: Machine
metadata: {{name: bmc-nuc1, namespace: default}}
spec:
  connection:
    host: {address}
    port: 623
    insecureTLS: false
    authSecretRef: {{name: bmc-nuc1, namespace: default}}
    providerOptions: {{ipmitool: {{cipherSuite: "3"}}}}
---
apiVersion: tinkerbell.org/v1alpha1
kind: Hardware
metadata: {{name: nuc1, namespace: default}}
spec:
  bmcRef: {{apiGroup: bmc.tinkerbell.org, kind: Machine, name: bmc-nuc1}}
  interfaces: [{{dhcp: {{mac: "02:00:00:00:00:01"}}}}]
  metadata: {{instance: {{ssh_keys: ["{key}"]}}}}
"#,
        IpmiSim::USERNAME,
        IpmiSim::PASSWORD
    )
}

fn ssh(folder: &Path, key: &str, tinboxd: &Tinboxd) -> Output {
    Command::new("ssh")
        .args(["-F", "none", "-T", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes"])
        .args(["-o", "StrictHostKeyChecking=accept-new", "-o"])
        .arg(format!("UserKnownHostsFile={}", folder.join("known").display()))
        .arg("-i")
        .arg(folder.join(key))
        .args(["-p", "2222", &format!("nuc1@{}", tinboxd.address()), "log"])
        .env_remove("SSH_AUTH_SOCK")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Claims the box by its page, and gives the owner this SSH key.
fn add_key_of_owner(folder: &Path, key: &str, tinboxd: &Tinboxd) {
    let page = |path: &str, fields: &[(&str, &str)]| {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--insecure", "--fail", "--cookie-jar"]);
        curl.arg(folder.join("jar")).arg("--cookie").arg(folder.join("jar"));
        for (name, value) in fields {
            curl.arg("--data-urlencode").arg(format!("{name}={value}"));
        }
        let output =
            curl.arg(format!("https://{}:8443{path}", tinboxd.address())).output().unwrap();
        assert!(output.status.success(), "{path}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let words = [("passphrase", "correct horse"), ("again", "correct horse")];
    page("/S", &[("code", &code(tinboxd)), words[0], words[1]]);
    let account = page("/account", &[]);
    let (_, rest) = account.split_once("name=\"csrf\" value=\"").unwrap();
    let (csrf, _) = rest.split_once('"').unwrap();
    page("/account/ssh-keys", &[("csrf", csrf), ("keys", key)]);
}

/// Runs the command on a terminal, types a word that must reach the machine, then ends the command.
fn type_on_a_terminal(command: &Command, machine: &mut TcpStream) {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let line: Vec<_> = words.map(|word| word.to_str().unwrap()).collect();
    let mut terminal = Command::new("script")
        .args(["--quiet", "--return", "--command", &line.join(" "), "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keys = terminal.stdin.take().unwrap();
    let mut screen = terminal.stdout.take().unwrap();
    let mut shown = String::new();
    while !shown.contains("Booting Linux") {
        let mut bytes = [0; 4096];
        let length = screen.read(&mut bytes).unwrap();
        assert!(length > 0, "the command ended: {shown}");
        shown += &String::from_utf8_lossy(&bytes[..length]);
    }
    assert!(shown.contains("Ctrl+] ends the command"), "{shown}");
    keys.write_all(b"root\r").unwrap();
    machine.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut typed = Vec::new();
    while !typed.ends_with(b"root\r") {
        let mut byte = [0];
        machine.read_exact(&mut byte).unwrap();
        typed.extend(byte);
    }
    keys.write_all(b"\x1d").unwrap();
    assert!(terminal.wait().unwrap().success());
}

#[test]
fn a_box_records_before_anyone_looks_and_admits_the_right_key() {
    let folder = TempDir::with_prefix("consoles-").unwrap();
    let public = std::fs::read_to_string(key(folder.path(), "right").with_extension("pub"));
    key(folder.path(), "wrong");
    let owners = std::fs::read_to_string(key(folder.path(), "owners").with_extension("pub"));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let sim = IpmiSim::start_with_serial(listener.local_addr().unwrap()).unwrap();
    let (mut machine, _) = listener.accept().unwrap();
    let mut tinboxd = Tinboxd::start_with("[web]\nlisten = \"ADDRESS:8443\"\n").unwrap();
    let address = sim.endpoint(None).address.host;
    let applied = tinboxd
        .kubectl()
        .unwrap()
        .run(&["apply", "-f", "-"], &objects(&address, public.unwrap().trim()))
        .unwrap();
    assert!(applied.success, "{}", applied.err);

    let log = |tinboxd: &Tinboxd| {
        let output = ssh(folder.path(), "right", tinboxd);
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let recorded = |tinboxd: &Tinboxd, text: &str| {
        poll("the recorded text", PATIENCE, || log(tinboxd).1.contains(text)).unwrap();
    };
    recorded(&tinboxd, " connected]");
    machine.write_all(b"Booting Linux\r\n").unwrap();
    recorded(&tinboxd, "Booting Linux");
    let config = tinboxd.kubeconfig();
    let tinbox = |arguments: &[&str]| {
        let mut tinbox = Command::new(program("tinbox"));
        tinbox.arg("--kubeconfig").arg(&config).args(["machine", "console"]).args(arguments);
        tinbox
    };
    let recording = tinbox(&["nuc1", "--recorded"]).output().unwrap();
    assert!(String::from_utf8_lossy(&recording.stdout).contains("Booting Linux"), "{recording:?}");
    let missing = tinbox(&["nuc2", "--recorded"]).output().unwrap();
    assert!(String::from_utf8_lossy(&missing.stderr).contains("nuc2"), "{missing:?}");
    type_on_a_terminal(&tinbox(&["nuc1"]), &mut machine);
    let refused = ssh(folder.path(), "wrong", &tinboxd);
    let refused = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.contains("Permission denied (publickey)"), "{refused}");
    assert!(!ssh(folder.path(), "owners", &tinboxd).status.success());
    add_key_of_owner(folder.path(), owners.unwrap().trim(), &tinboxd);
    let shown = ssh(folder.path(), "owners", &tinboxd);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("Booting Linux"), "{shown:?}");
    // The key of the host is kept, and the BMC ends the session of the process that was killed.
    tinboxd.restart().unwrap();
    recorded(&tinboxd, " connected]");
    machine.write_all(b"After the restart\r\n").unwrap();
    recorded(&tinboxd, "After the restart");
}
