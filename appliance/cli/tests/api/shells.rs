//! Tests of completion and manual pages with the programs that read them.

use std::path::Path;
use std::process::{Command, Stdio};

use status::view::Machine;
use tempfile::TempDir;

use crate::place::{NUC1, Place, end};

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

/// Box with two machines, and a folder with the completions.
async fn rack() -> Place {
    let place = Place::start().await;
    place.file("hardware.yaml", NUC1);
    place.run(&["hardware", "push", "--file", "hardware.yaml"]).await.good();
    for name in ["nuc1", "nuc2", "52:54:00:77:00:09"] {
        let machine = Machine { name: name.into(), ..Machine::default() };
        place.view.lock().unwrap().machines.push(machine);
    }
    place
}

/// Runs a script in a shell that finds `tinbox` and the box.
async fn in_shell(place: &Place, shell: &str, arguments: &[&str]) -> String {
    place.file(
        &format!("tinbox.{shell}"),
        &String::from_utf8(tinbox(&["completion", shell])).unwrap(),
    );
    let programs = Path::new(env!("CARGO_BIN_EXE_tinbox")).parent().unwrap();
    let folder = place.kubeconfig.parent().unwrap();
    let mut command = tokio::process::Command::new(shell);
    command.args(arguments).current_dir(folder).env_clear().kill_on_drop(true);
    command.env("HOME", folder).env("TERM", "dumb").env("TINBOX_KUBECONFIG", &place.kubeconfig);
    // A busy machine starts the program slowly.
    command.env("TINBOX_COMPLETION_TIME", "60s");
    command.env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    end(command.spawn().unwrap()).await.good()
}

#[tokio::test(flavor = "multi_thread")]
async fn bash_and_fish_offer_the_names_on_the_box() {
    let place = rack().await;
    let bash = r#"source tinbox.bash
        offer() {
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
            $(complete -p tinbox | sed 's/.*-F \([^ ]*\).*/\1/') tinbox "${@: -1}" "${@: -2:1}"
            echo "${COMPREPLY[@]}"
        }
        offer tinbox machine history ""
        offer tinbox machine history nuc2
        offer tinbox hardware get ""
        offer tinbox os-image add tal
        offer tinbox machine hist
        offer tinbox --kubeconfig none machine history n"#;
    let printed = in_shell(&place, "bash", &["--norc", "--noprofile", "-c", bash]).await;
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines, ["nuc1 nuc2", "nuc2", "nuc1", "talos-1.11", "history", ""]);

    let fish = "source tinbox.fish
        complete --do-complete 'tinbox machine history '
        echo ==
        complete --do-complete 'tinbox hardware get n'
        echo ==
        complete --do-complete 'tinbox machine hist'";
    let printed = in_shell(&place, "fish", &["--no-config", "-c", fish]).await;
    let parts: Vec<&str> = printed.split("==\n").collect();
    for name in ["nuc1", "nuc2", "52:54:00:77:00:09"] {
        assert!(parts[0].lines().any(|line| line == name), "{printed}");
    }
    assert_eq!(parts[1], "nuc1\n");
    assert!(parts[2].starts_with("history\t"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn zsh_offers_the_names_on_the_box() {
    let place = rack().await;
    // The widgets of zsh need a terminal: a second zsh runs in one. The widget prints what it got.
    let zsh = r#"zmodload zsh/zpty
        zpty typed zsh --no-rcs -i
        zpty -w typed 'PS1=; unsetopt zle_bracketed_paste; autoload -U compinit; compinit -u -D'
        zpty -w typed 'source tinbox.zsh; zstyle ":completion:*" list-prompt ""; LISTMAX=1000'
        zpty -w typed 'bindkey "^I" complete-word; print rea""dy'
        zpty -r typed seen '*ready*' || exit 1
        zpty -w -n typed $'tinbox hardware get n\t'
        zpty -r typed seen '*nuc1*' || exit 1
        print -r -- "hardware: nuc1"
        zpty -w -n typed $'\x15tinbox machine history nuc\t\t'
        zpty -r typed seen '*nuc1*nuc2*' || exit 1
        print -r -- "machine: both"
        zpty -d typed"#;
    let printed = in_shell(&place, "zsh", &["--no-rcs", "-c", zsh]).await;
    assert_eq!(printed, "hardware: nuc1\nmachine: both\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_completion_prints_nothing() {
    let place = rack().await;
    // A port that accepts connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let kubeconfig = std::fs::read_to_string(&place.kubeconfig).unwrap();
    let address = silent.local_addr().unwrap();
    let lines: Vec<String> = kubeconfig
        .lines()
        .map(|line| match line.split_once("server:") {
            Some((before, _)) => format!("{before}server: https://{address}"),
            None => line.to_owned(),
        })
        .collect();
    place.file("silent.kubeconfig", &lines.join("\n"));
    let line = ["__complete", "--kubeconfig", "silent.kubeconfig", "machine", "history"];
    let ended = place.run(&line).await;
    assert_eq!((ended.code, ended.out.as_str(), ended.err.as_str()), (0, "", ""));
    let none = place.run(&["__complete", "--kubeconfig", "none", "machine", "history"]).await;
    assert_eq!((none.code, none.out.as_str(), none.err.as_str()), (0, "", ""));
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
