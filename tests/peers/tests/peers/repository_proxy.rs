//! Stock clusterctl on a workstation that cannot resolve the name of the box: the box is its proxy
//! for the repository, and for no other host.

use std::fs;
use std::process::Command;

use peers::clusterctl::{HOST, NAME, SECTIONS, program as clusterctl};
use peers::{Printed, Tinboxd, run};
use tempfile::TempDir;

/// Oldest and newest pinned clusterctl.
const VERSIONS: [&str; 2] = ["1.8", "1.14"];

#[test]
fn a_workstation_without_the_name_reads_the_repository_by_the_box_as_its_proxy() {
    let tinboxd = Tinboxd::start_named(NAME, SECTIONS).unwrap();
    let home = TempDir::with_prefix("workstation-").unwrap();
    // clusterctl does not create the folder of its configuration.
    fs::create_dir_all(home.path().join(".config/cluster-api")).unwrap();
    let config = format!("https://{HOST}:8443/clusterctl.yaml");
    let proxy = format!("https://{}:8443", tinboxd.address());
    let run = |version: &str, proxy: Option<&str>, arguments: &[&str]| -> Printed {
        let mut command = Command::new(clusterctl(version).unwrap());
        command.args(arguments).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", home.path());
        command.env("SSL_CERT_FILE", tinboxd.folder().join("state/pki/ca.crt"));
        command.env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true").env("GOPROXY", "off");
        command.envs(proxy.map(|proxy| ("HTTPS_PROXY", proxy)));
        run(command, "").unwrap()
    };
    let provider = ["generate", "provider", "--infrastructure", "tinbox", "--config", &config];
    for version in VERSIONS {
        let all = run(version, Some(&proxy), &provider);
        assert!(all.success, "{version}: {all:?}");
        assert!(all.out.contains("kind: TinkerbellClusterTemplate"), "{version}: {all:?}");
        let without = run(version, None, &provider);
        assert!(!without.success && without.err.contains(HOST), "{version}: {without:?}");
        let other = "https://templates.example/cluster-template.yaml";
        let other = ["generate", "yaml", "--from", other, "--config", &config];
        let other = run(version, Some(&proxy), &other);
        let why = "this box is a proxy to itself only: add templates.example to NO_PROXY";
        assert!(!other.success && other.err.contains(why), "{version}: {other:?}");
    }
}
