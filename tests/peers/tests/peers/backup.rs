//! Backups: decrypted by the stock age, encrypted by it, and restored on a second box.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use peers::{Kubectl, Tinboxd, built, poll};
use stdx::testing::PATIENCE;

use super::claim::{claim, code, pin, program, unclaimed};

/// Passphrase of all backups of these tests.
pub const WORDS: &str = "correct horse battery";
const MACHINE: &str = "\
apiVersion: v1
kind: Secret
metadata: {name: bmc-nuc1, namespace: default}
stringData: {username: ADMIN, password: hunter2}
---
apiVersion: tinkerbell.org/v1alpha1
kind: Hardware
metadata: {name: nuc1, namespace: default}
spec:
  interfaces:
  - netboot: {allowPXE: true}
    dhcp:
      mac: 52:54:00:77:00:01
      ip: {address: 10.77.0.11, netmask: 255.255.255.0}
";

/// The stock programs age and its plugin, which need each other in the PATH.
pub struct Age(Vec<PathBuf>);

impl Age {
    pub fn built() -> Self {
        Self(built("age", &["age", "age-keygen", "age-plugin-batchpass"]).unwrap())
    }

    pub fn keygen(&self) -> &Path {
        &self.0[1]
    }

    /// Runs `age` with these arguments; all these tests use one passphrase.
    pub fn run(&self, arguments: &[&str], files: (&Path, &Path)) -> Output {
        let mut path = vec![self.0[0].parent().unwrap().to_owned()];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
        let mut age = Command::new(&self.0[0]);
        age.env("PATH", std::env::join_paths(path).unwrap()).env("AGE_PASSPHRASE", WORDS);
        age.args(arguments).arg("-o").arg(files.1).arg(files.0).stdin(Stdio::null());
        age.output().unwrap()
    }
}

/// Splits a backup into its two readable header lines and the rest.
pub fn parts(file: &Path) -> (Vec<u8>, Vec<u8>) {
    let bytes = fs::read(file).unwrap();
    let ends: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == b'\n').take(2).collect();
    let (lines, payload) = bytes.split_at(ends[1] + 1);
    (lines.to_vec(), payload.to_vec())
}

/// Runs `tinbox` for the administrator of a box, with the passphrase in a file.
pub fn tinbox(tinboxd: &Tinboxd, kubeconfig: &Path, line: &[&str]) -> Output {
    let words = tinboxd.folder().join("passphrase");
    fs::write(&words, format!("{WORDS}\n")).unwrap();
    let mut tinbox = Command::new(program("tinbox"));
    tinbox.arg("--kubeconfig").arg(kubeconfig).args(line).stdin(Stdio::null());
    if !line.contains(&"--recipient") {
        tinbox.arg("--passphrase-file").arg(&words);
    }
    tinbox.current_dir(tinboxd.folder()).output().unwrap()
}

/// Returns the output of a command that succeeded.
#[track_caller]
pub fn good(output: Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn told(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn apply(kubectl: &Kubectl) {
    let applied = kubectl.run(&["apply", "-f", "-"], MACHINE).unwrap();
    assert!(applied.success, "{applied:?}");
}

#[test]
fn the_stock_age_opens_a_backup_and_makes_one() {
    let (age, tinboxd) = (Age::built(), Tinboxd::start().unwrap());
    apply(&tinboxd.kubectl().unwrap());
    let kubeconfig = tinboxd.kubeconfig();
    let folder = tinboxd.folder();
    let file = |name: &str| folder.join(name);
    let made = good(tinbox(&tinboxd, &kubeconfig, &["backup", "create", "-o", "box.boxbak"]));
    assert!(made.starts_with("box.boxbak is written, "), "{made}");

    let (lines, payload) = parts(&file("box.boxbak"));
    fs::write(file("payload.age"), payload).unwrap();
    let batch = ["-d", "-j", "batchpass"];
    let opened = age.run(&batch, (&file("payload.age"), &file("box.tar.gz")));
    assert!(opened.status.success(), "{opened:?}");
    fs::create_dir(file("unpacked")).unwrap();
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(file("box.tar.gz")).arg("-C").arg(file("unpacked"));
    good(tar.output().unwrap());
    let unpacked = |name: &str| fs::read_to_string(file("unpacked").join(name)).unwrap();
    let kept = |name: &str| fs::read_to_string(file("state").join(name)).unwrap();
    for name in ["pki/ca.key", "pki/ca.crt", "tokens", "admin.kubeconfig"] {
        assert_eq!(unpacked(&format!("state/{name}")), kept(name), "{name}");
    }
    let secret = unpacked("objects/core/secrets/default/bmc-nuc1.json");
    assert!(secret.contains("aHVudGVyMg=="), "{secret}");
    assert!(unpacked("objects/tinkerbell.org/hardware/default/nuc1.json").contains("52:54:00"));
    assert!(unpacked("settings/box.toml").contains("[network]"));

    // The opposite direction: the stock tool encrypts, with its own work factor.
    let batch = ["-e", "-j", "batchpass"];
    let sealed = age.run(&batch, (&file("box.tar.gz"), &file("again.age")));
    assert!(sealed.status.success(), "{sealed:?}");
    let again = [lines, fs::read(file("again.age")).unwrap()].concat();
    fs::write(file("again.boxbak"), again).unwrap();
    let verified = good(tinbox(&tinboxd, &kubeconfig, &["backup", "verify", "again.boxbak"]));
    assert!(
        verified.contains(" is good: ") && verified.contains("(1 machine, 1 secret"),
        "{verified}"
    );
}

#[test]
fn a_backup_for_a_public_key_opens_with_its_secret_one() {
    let (age, tinboxd) = (Age::built(), Tinboxd::start().unwrap());
    let kubeconfig = tinboxd.kubeconfig();
    let folder = tinboxd.folder();
    let keys = good(Command::new(age.keygen()).output().unwrap());
    let secret = folder.join("key.txt");
    fs::write(&secret, &keys).unwrap();
    let public = keys.lines().find_map(|line| line.strip_prefix("# public key: ")).unwrap();
    let line = ["backup", "create", "-o", "box.boxbak", "--recipient", public];
    good(tinbox(&tinboxd, &kubeconfig, &line));
    let (lines, payload) = parts(&folder.join("box.boxbak"));
    assert!(str::from_utf8(&lines).unwrap().contains(public), "it says for whom it is");
    fs::write(folder.join("payload.age"), payload).unwrap();
    let key = secret.display().to_string();
    let (from, to) = (folder.join("payload.age"), folder.join("box.tar.gz"));
    let opened = age.run(&["-d", "-i", &key], (&from, &to));
    assert!(opened.status.success(), "{opened:?}");
    // The opposite direction: the stock tool encrypts for the public key.
    let again = folder.join("again.age");
    let sealed = age.run(&["-r", public], (&to, &again));
    assert!(sealed.status.success(), "{sealed:?}");
    let again = [lines, fs::read(again).unwrap()].concat();
    fs::write(folder.join("again.boxbak"), again).unwrap();

    for name in ["box.boxbak", "again.boxbak"] {
        let mut verify = Command::new(program("tinbox"));
        verify.arg("--kubeconfig").arg(&kubeconfig).args(["backup", "verify"]);
        verify.arg(folder.join(name)).arg("--passphrase-file").arg(&secret);
        let verified = good(verify.output().unwrap());
        assert!(verified.contains(" is good: "), "{name}: {verified}");
    }
    let other = tinbox(&tinboxd, &kubeconfig, &["backup", "verify", "box.boxbak"]);
    assert!(
        told(&other).contains("can be decrypted only with one of its secret keys"),
        "{other:?}"
    );
}

/// A kubeconfig of one box, changed to the address of the box that restored its backup.
pub fn moved(from: &Tinboxd, to: &Tinboxd) -> PathBuf {
    let text = fs::read_to_string(from.kubeconfig()).unwrap();
    let path = to.folder().join("moved.kubeconfig");
    fs::write(&path, text.replace(&from.url(), &to.url())).unwrap();
    path
}

/// A kubectl with a kubeconfig other than that of the box.
pub fn with(kubeconfig: &Path, tinboxd: &Tinboxd) -> Kubectl {
    let program = built("kubectl", &["1.35"]).unwrap().remove(0);
    Kubectl::new(program, kubeconfig.to_owned(), tinboxd.folder().join("home-of-a-guest")).unwrap()
}

#[test]
fn a_fresh_box_becomes_the_one_of_the_backup() {
    let (old, new) = (unclaimed(), unclaimed());
    let owners = old.folder().join("owner.kubeconfig");
    let (old_pin, new_pin) = (pin(&old), pin(&new));
    good(claim(&old, &owners, &old_pin, &code(&old)));
    apply(&old.kubectl().unwrap());
    good(tinbox(&old, &owners, &["backup", "create", "-o", "box.boxbak"]));
    let backup = old.folder().join("box.boxbak").display().to_string();
    assert_ne!(old_pin, new_pin);

    let address = format!("{}:8443", new.address());
    let codes = new.folder().join("code");
    let attempt = |code: &str, passphrase: &str| {
        fs::write(&codes, code).unwrap();
        let words = new.folder().join("words-of-the-backup");
        fs::write(&words, passphrase).unwrap();
        let mut tinbox = Command::new(program("tinbox"));
        tinbox.args(["backup", "restore", &backup, "--to", &address, "--pin", &new_pin]);
        tinbox.arg("--code-file").arg(&codes).arg("--passphrase-file").arg(&words);
        tinbox.stdin(Stdio::null()).output().unwrap()
    };
    let right = code(&new);
    let wrong = if right == "000000" { "000001" } else { "000000" };
    let guess = told(&attempt(wrong, WORDS));
    assert!(guess.contains("Wrong code"), "{guess}");
    let other = told(&attempt(&right, "another passphrase"));
    assert!(other.contains("Wrong passphrase for this backup"), "{other}");
    assert_eq!(pin(&new), new_pin, "it is as it was");
    let restored = good(attempt(&right, WORDS));
    assert!(restored.contains("The box restarts"), "{restored}");

    // At the new address, the old tokens and the old certificate authority are valid.
    let kubeconfig = moved(&old, &new);
    let kubectl = with(&kubeconfig, &new);
    poll("the new box to be the old one", PATIENCE, || kubectl.is_ready()).unwrap();
    let secret = ["get", "secret", "bmc-nuc1", "-o", "jsonpath={.data.password}"];
    let secret = kubectl.run(&secret, "").unwrap();
    assert_eq!(secret.out, "aHVudGVyMg==", "{secret:?}");
    let machine = kubectl.run(&["get", "hardware", "nuc1", "-o", "name"], "").unwrap();
    assert!(machine.success, "{machine:?}");
    poll("its pages to be there", PATIENCE, || login(&new).contains("__Host-tinbox=")).unwrap();
    let late = told(&attempt(&right, WORDS));
    assert!(late.contains("the box at") && late.contains(&old_pin), "another pin answers: {late}");
}

/// Response headers of a login with the passphrase of `claim`.
fn login(tinboxd: &Tinboxd) -> String {
    let mut curl = Command::new("curl");
    curl.args(["-ksi", "-d", "passphrase=correct+horse"]);
    curl.arg(format!("https://{}:8443/login", tinboxd.address()));
    String::from_utf8_lossy(&curl.output().unwrap().stdout).into_owned()
}

#[test]
fn an_administrator_goes_back_to_a_backup_and_nobody_else_may() {
    let tinboxd = Tinboxd::start().unwrap();
    let (kubectl, kubeconfig) = (tinboxd.kubectl().unwrap(), tinboxd.kubeconfig());
    apply(&kubectl);
    good(tinbox(&tinboxd, &kubeconfig, &["backup", "create", "-o", "box.boxbak"]));
    let lost = kubectl.run(&["delete", "hardware", "nuc1"], "").unwrap();
    assert!(lost.success, "{lost:?}");
    let unasked = tinbox(&tinboxd, &kubeconfig, &["backup", "restore", "box.boxbak"]);
    assert!(told(&unasked).contains("give --yes"), "{unasked:?}");
    good(tinbox(&tinboxd, &kubeconfig, &["backup", "restore", "box.boxbak", "--yes"]));
    let back = || kubectl.run(&["get", "hardware", "nuc1"], "").is_ok_and(|it| it.success);
    poll("the machine to be back", PATIENCE, back).unwrap();

    let log = fs::read_to_string(tinboxd.folder().join("tinboxd.log")).unwrap();
    assert!(!log.contains(WORDS), "a passphrase is in the log");
}

/// API paths that act on the box itself.
const OF_THE_BOX: [&str; 8] = [
    "/backup",
    "/backup/verify",
    "/backup/restore",
    "/apis/box.tinbox.dev/v1alpha1/reset",
    "/apis/box.tinbox.dev/v1alpha1/settings",
    "/apis/box.tinbox.dev/v1alpha1/update",
    "/apis/box.tinbox.dev/v1alpha1/update/rollback",
    "/apis/box.tinbox.dev/v1alpha1/update/restart",
];

#[test]
fn an_operator_does_nothing_to_the_box_itself() {
    let tinboxd = Tinboxd::start().unwrap();
    let kubectl = tinboxd.kubectl().unwrap();
    for line in [
        "create serviceaccount operator",
        "create clusterrolebinding operator --clusterrole=tinbox:operator \
         --serviceaccount=default:operator",
    ] {
        let words: Vec<&str> = line.split_whitespace().collect();
        let made = kubectl.run(&words, "").unwrap();
        assert!(made.success, "{made:?}");
    }
    let token = kubectl.run(&["create", "token", "operator"], "").unwrap();
    assert!(token.success, "{token:?}");
    let asked = |method: &str, path: &str| {
        let mut curl = Command::new("curl");
        curl.args(["-ks", "-o", "/dev/null", "-w", "%{http_code}", "-X", method]);
        curl.args(["-H", &format!("Authorization: Bearer {}", token.out.trim())]);
        curl.arg(format!("{}{path}", tinboxd.url()));
        String::from_utf8(curl.output().unwrap().stdout).unwrap()
    };
    for (path, method) in OF_THE_BOX.iter().flat_map(|path| ["POST", "PUT"].map(|it| (path, it))) {
        assert_eq!(asked(method, path), "403", "{method} {path}");
    }
    let version = asked("GET", "/apis/box.tinbox.dev/v1alpha1/update");
    assert_ne!(version, "403", "what runs is no secret");
}
