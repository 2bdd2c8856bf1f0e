use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use super::{CaptVersion, FIRST, commands, completed, create, host, host_of, quoted};
use crate::error::Error;

#[test]
fn a_version_without_an_external_mode_is_refused() {
    for text in ["0.6.8", "v0.6.8", "0.0.9"] {
        let error = text.parse::<CaptVersion>().unwrap_err();
        assert!(error.contains("v0.7.0 is the first"), "{error}");
    }
    assert_eq!("v0.7.0".parse(), Ok(FIRST));
    assert_eq!("1.0.2".parse::<CaptVersion>().unwrap().to_string(), "v1.0.2");
    for text in ["", "0.7", "latest", "v0.7.0;reboot", "0.7.0.1"] {
        assert!(text.parse::<CaptVersion>().unwrap_err().starts_with("expected"), "{text}");
    }
}

#[test]
fn machines_reach_the_box_at_the_host_of_its_url() {
    assert_eq!(host_of("https://192.168.7.1:6443").unwrap(), "192.168.7.1");
    assert_eq!(host_of("https://box.example").unwrap(), "box.example");
    assert!(host_of("https://[fd00::1]:6443").is_err());
    assert!(host("box$(reboot)").is_err());
}

#[test]
fn a_path_that_kubectl_reads_as_a_list_is_refused() {
    assert_eq!(quoted(Path::new("/home/a b/c")).unwrap(), "'/home/a b/c'");
    for path in ["/a'b", "/a\"b", "/a,b", "/a=b", "/a\nb"] {
        let error = quoted(Path::new(path)).unwrap_err().to_string();
        assert!(error.contains("--credential-file without"), "{error}");
    }
}

#[test]
fn a_file_without_a_token_is_removed_and_another_file_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("capt.kubeconfig");
    let file = create(&path).unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let error = create(&path).unwrap_err().to_string();
    assert!(error.contains("run the commands that were printed"), "{error}");
    assert_eq!(completed(&path, Ok(1)).unwrap(), 1);
    assert!(path.exists());
    completed::<()>(&path, Err(Error::Usage(String::new()))).unwrap_err();
    assert!(!path.exists());
}

/// Stub of kubectl and clusterctl: `clusterctl` fails unless the file `good` exists.
const STUB: &str = r#"
    kubectl() { case $1 in create) echo "$*";; get) [ -e secret ];; *) cat >>secret;; esac; }
    clusterctl() { [ -e good ]; }
"#;

#[test]
fn the_commands_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("capt.kubeconfig");
    let script = STUB.to_owned() + &commands(FIRST, &quoted(&file).unwrap(), "192.168.7.1");
    let run = || {
        let mut shell = Command::new("/bin/sh");
        shell.current_dir(&folder).args(["-c", &script]).status().unwrap().success()
    };
    create(&file).unwrap();
    std::fs::write(folder.path().join("good"), "").unwrap();
    assert!(!run(), "neither a kubeconfig nor a Secret");
    std::fs::write(&file, "token").unwrap();
    std::fs::remove_file(folder.path().join("good")).unwrap();
    assert!(!run() && !file.exists(), "clusterctl failed");
    let secret = std::fs::read_to_string(folder.path().join("secret")).unwrap();
    assert!(secret.contains(&format!("--from-file=kubeconfig={}", file.display())), "{secret}");
    std::fs::write(folder.path().join("good"), "").unwrap();
    assert!(run() && run());
    assert_eq!(std::fs::read_to_string(folder.path().join("secret")).unwrap(), secret);
}

#[test]
fn the_commands_as_they_are_printed() {
    let text = commands(FIRST, "'/home/me/capt.kubeconfig'", "192.168.7.1");
    golden::check("capi-init-capt.txt", &text);
}
