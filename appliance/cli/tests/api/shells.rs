//! Tests of completion and manual pages with the programs that read them.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

fn tinbox(line: &[&str]) -> Vec<u8> {
    let ended = Command::new(env!("CARGO_BIN_EXE_tinbox")).args(line).env_clear().output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    ended.stdout
}

/// Writes the completion of a shell to a file, and returns what the shell prints for `script`.
fn completed(shell: &str, folder: &Path, script: &str) -> String {
    let file = folder.join(format!("_tinbox.{shell}"));
    std::fs::write(&file, tinbox(&["completion", shell])).unwrap();
    let plain: &[&str] = match shell {
        "bash" => &["--norc", "--noprofile"],
        "zsh" => &["--no-rcs"],
        _ => &["--no-config"],
    };
    let ended = Command::new(shell)
        .args(plain)
        .args(["-c", script])
        .env("FILE", &file)
        .env("HOME", folder)
        .output()
        .unwrap();
    assert!(ended.status.success() && ended.stderr.is_empty(), "{shell}: {ended:?}");
    String::from_utf8(ended.stdout).unwrap()
}

#[test]
fn every_shell_loads_its_completion() {
    let folder = TempDir::new().unwrap();
    let bash = "source $FILE; COMP_WORDS=(tinbox machine en); COMP_CWORD=2; \
                _tinbox tinbox en machine; echo ${COMPREPLY[@]}";
    assert_eq!(completed("bash", folder.path(), bash), "enroll\n");
    let fish = "source $FILE; complete --do-complete 'tinbox machine en'";
    let printed = completed("fish", folder.path(), fish);
    assert!(printed.starts_with("enroll\t"), "{printed}");
    // The widgets of zsh need a terminal; loading registers the function for the command.
    let zsh = "autoload -U compinit; compinit -u -D; source $FILE; print $_comps[tinbox]";
    assert_eq!(completed("zsh", folder.path(), zsh), "_tinbox\n");
}

#[test]
fn man_reads_a_page_for_every_command() {
    let folder = TempDir::new().unwrap();
    let said = tinbox(&["man", folder.path().join("man1").to_str().unwrap()]);
    let pages = std::fs::read_dir(folder.path().join("man1")).unwrap().count();
    assert_eq!(String::from_utf8(said).unwrap(), format!("{pages} pages written\n"));
    for page in ["tinbox", "tinbox-machine-install", "tinbox-box-settings-revert"] {
        let file = folder.path().join(format!("man1/{page}.1"));
        let ended = Command::new("man").arg("--warnings").arg(&file).output().unwrap();
        assert!(ended.status.success() && ended.stderr.is_empty(), "{page}: {ended:?}");
        let text = String::from_utf8(ended.stdout).unwrap();
        assert!(text.contains("SYNOPSIS") && text.contains("Example"), "{page}: {text}");
    }
}
