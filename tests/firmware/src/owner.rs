//! An owner's computer beside a box, and the owner's credentials. A step that fails panics.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use qemu::{Host, Mark, Rack, Segment, Serial};
use serde_json::{Value, json};

use crate::{PATIENCE, run};

/// Passphrase that the owner chose.
pub const PASSPHRASE: &str = "correct horse";

/// Owner of a box, with a kubeconfig and a browser session.
#[derive(Debug)]
pub struct Owner<'a> {
    /// Computer of the owner.
    pub host: &'a Host,
    address: String,
    kubeconfig: PathBuf,
    cookies: PathBuf,
}

/// Adds the owner's computer to the rack's near cable. It has the address `own`, and one in the
/// link-local range that a box without DHCP uses.
pub fn host(rack: &Rack, own: Ipv4Addr) -> Host {
    let host = rack.add_host("owner", &[(Segment::Near, own)]).unwrap();
    host.ip("address add 169.254.250.9/16 dev eth0\n").unwrap();
    host
}

/// Address of the box, from its console line about the claim.
pub fn address(claim: &str) -> String {
    claim.split("HTTPS://").nth(1).unwrap().split('/').next().unwrap().to_owned()
}

/// Waits for the first line after `since` that matches, and returns its last word.
pub fn told(serial: &Serial, since: Mark, pattern: &str) -> String {
    let line = serial.wait_for_whole(since, pattern, PATIENCE).unwrap().0.text;
    line.split_whitespace().next_back().unwrap().to_owned()
}

/// Path of a program of this workspace.
pub fn program(name: &str) -> PathBuf {
    programs::find(name).expect("`make build` builds the programs that tests run")
}

impl<'a> Owner<'a> {
    /// Claims the box at `address` for `host`, with only the code and the pin from its serial
    /// console. Checks that the API refuses requests before the claim, and lists machines after the
    /// claim.
    pub fn claims(host: &'a Host, address: &str, serial: &Serial, folder: &Path) -> Self {
        Self::claims_again(host, address, (serial, Mark::START), folder)
    }

    /// Claims the box as [`Owner::claims`] does, but with console output after the mark `since`
    /// only.
    pub fn claims_again(
        host: &'a Host,
        address: &str,
        (serial, since): (&Serial, Mark),
        folder: &Path,
    ) -> Self {
        let mut curl = host.command("curl");
        let refused = run(curl.arg("-ks").arg(format!("https://{address}:6443/api/v1/nodes")));
        let refused: Value = serde_json::from_str(&refused.unwrap()).unwrap();
        assert_eq!((&refused["code"], &refused["reason"]), (&json!(403), &json!("Unclaimed")));

        let link = format!("claim this box at HTTPS://{address}/S/[0-9A-Z]{{6}} with code ");
        let (code, pin) = (told(serial, since, &link), told(serial, since, "certificate pin "));
        let owner = Self {
            host,
            address: address.to_owned(),
            kubeconfig: folder.join("owner.kubeconfig"),
            cookies: folder.join("cookies"),
        };
        let words = folder.join("words");
        fs::write(&words, format!("{code}\n{PASSPHRASE}\n")).unwrap();
        let mut claim = owner.tinbox();
        claim.args(["box", "claim", address, "--secrets-stdin", "--pin", &pin]);
        let claim = claim.stdin(Stdio::from(fs::File::open(&words).unwrap())).output().unwrap();
        assert!(claim.status.success(), "{claim:?}");
        run(owner.tinbox().args(["hardware", "list"])).unwrap();

        let with_code = serial.lines().into_iter().filter(|line| line.text.contains(&code));
        let logged: Vec<_> =
            with_code.filter(|line| !line.text.contains("claim this box")).collect();
        assert!(logged.is_empty(), "the code is in the log: {logged:?}");
        owner
    }

    /// Path of the administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The command `tinbox`, with this box's kubeconfig.
    pub fn tinbox(&self) -> Command {
        let mut tinbox = self.host.command(program("tinbox"));
        tinbox.arg("--kubeconfig").arg(&self.kubeconfig);
        tinbox
    }

    /// Logs in with the owner's browser session.
    pub fn log_in(&self) {
        let words = format!("passphrase={}", PASSPHRASE.replace(' ', "+"));
        run(self.curl("/login").args(["-d", &words])).unwrap();
    }

    /// A curl command with the owner's session, for `path`.
    pub fn curl(&self, path: &str) -> Command {
        let mut curl = self.host.command("curl");
        curl.args(["-ksS", "--fail-with-body", "-b"]).arg(&self.cookies);
        curl.arg("-c").arg(&self.cookies).arg(format!("https://{}{path}", self.address));
        curl
    }

    /// Error output of a command that must fail.
    pub fn refused(&self, arguments: &[&str]) -> String {
        let error = run(self.tinbox().args(arguments)).expect_err("it must be refused");
        error.to_string()
    }
}
