//! Tests `cexec` on a partition that has a shell.

use std::os::unix::fs::symlink;
use std::path::Path;

use stdx::testing::Wait;

use crate::loops::{Loop, act, inspect, run};

/// Creates a partition with busybox as the only program, linked under several names.
pub fn system() -> Loop {
    let disk = Loop::new(32 << 20);
    run("mkfs.ext4", &["-q", disk.path.to_str().unwrap()]);
    inspect(&disk.path, |root| {
        for folder in ["bin", "etc", "dev", "proc", "sys", "root"] {
            std::fs::create_dir(root.join(folder)).unwrap();
        }
        let busybox =
            ["/usr/bin/busybox", "/bin/busybox"].into_iter().find(|p| Path::new(p).exists());
        let busybox = busybox.expect("this test needs busybox (package busybox-static)");
        std::fs::copy(busybox, root.join("bin/busybox")).unwrap();
        for name in ["sh", "touch", "cat", "env", "false", "sleep", "mkdir", "sync"] {
            symlink("busybox", root.join("bin").join(name)).unwrap();
        }
        symlink("/run/nowhere/resolv.conf", root.join("etc/resolv.conf")).unwrap();
    });
    disk
}

async fn cexec(disk: &Loop, more: &[&str]) -> Result<String, String> {
    let mut environment = vec![disk.environment("BLOCK_DEVICE"), "FS_TYPE=ext4".to_owned()];
    environment.extend(more.iter().map(|entry| (*entry).to_owned()));
    act("quay.io/tinkerbell/actions/cexec:latest", &environment).await
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_run_in_the_partition_and_leave_nothing_mounted() {
    let disk = system();
    let line = "CMD_LINE=mkdir -p /srv/a b; touch /srv/a/made ;";
    assert_eq!(
        cexec(&disk, &["CHROOT=y", line]).await.unwrap(),
        format!("ran 2 commands in {}", disk.path.display())
    );
    let script = "CMD_LINE=cat /proc/self/mounts > /mounts; echo $COLOUR $PATH > /env; \
                  test -c /dev/null && test -d /sys/kernel && cat /etc/resolv.conf > /resolv";
    let settings = ["DEFAULT_INTERPRETER=/bin/sh -c", "UPDATE_RESOLV_CONF=true", "COLOUR=green"];
    let mut all = settings.to_vec();
    all.push(script);
    cexec(&disk, &all).await.unwrap();
    inspect(&disk.path, |root| {
        assert!(root.join("srv/a/made").exists() && root.join("b").is_dir());
        let env = std::fs::read_to_string(root.join("env")).unwrap();
        assert!(env.starts_with("green /usr/local/sbin:"), "{env}");
        let ours = std::fs::read("/etc/resolv.conf").unwrap_or_default();
        assert_eq!(std::fs::read(root.join("resolv")).unwrap(), ours);
        // The partition's own link is restored.
        let link = std::fs::read_link(root.join("etc/resolv.conf")).unwrap();
        assert_eq!(link, Path::new("/run/nowhere/resolv.conf"));
    });
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains("/run/tinbox-agent"), "{mounts}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_program_says_why() {
    let disk = system();
    let interpreter = "DEFAULT_INTERPRETER=/bin/sh -c";
    let script = "CMD_LINE=echo first; echo cannot find the frob >&2; exit 3";
    let error = cexec(&disk, &[interpreter, script]).await.unwrap_err();
    assert!(error.starts_with("/bin/sh ended with exit status: 3: "), "{error}");
    assert!(error.contains("cannot find the frob"), "{error}");
    let error = cexec(&disk, &["CMD_LINE=false; touch /never"]).await.unwrap_err();
    assert_eq!(error, "false ended with exit status: 1");
    let error = cexec(&disk, &["CMD_LINE=nosuch thing"]).await.unwrap_err();
    let begins = format!("cannot start nosuch in {}: No such file", disk.path.display());
    assert!(error.starts_with(&begins), "{error}");
    inspect(&disk.path, |root| assert!(!root.join("never").exists()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_program_leaves_behind_ends_with_it() {
    let disk = system();
    let script = "CMD_LINE=sleep 1000 > /dev/null 2>&1 & touch /made";
    cexec(&disk, &["DEFAULT_INTERPRETER=/bin/sh -c", script]).await.unwrap();
    inspect(&disk.path, |root| assert!(root.join("made").exists()));
}

const RESOLVING: &str = "UPDATE_RESOLV_CONF=true";

/// Asserts that the partition has its original resolv.conf, and no backup file.
fn has_its_own(disk: &Loop) {
    inspect(&disk.path, |root| {
        let link = std::fs::read_link(root.join("etc/resolv.conf")).unwrap();
        assert_eq!(link, Path::new("/run/nowhere/resolv.conf"));
        assert_eq!(std::fs::read_dir(root.join("etc")).unwrap().count(), 1);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_action_gives_the_partition_its_own_resolv_conf_back() {
    let disk = system();
    let settings = ["DEFAULT_INTERPRETER=/bin/sh -c", RESOLVING];
    let mut stopped = settings.to_vec();
    stopped.push("CMD_LINE=touch /started; sleep 1000");
    let wait = Wait::new("the program");
    let started = async {
        while !Path::new("/run/tinbox-agent/mnt/started").exists() {
            tokio::time::sleep(wait.pause()).await;
        }
    };
    tokio::select! {
        ended = cexec(&disk, &stopped) => panic!("{ended:?}"),
        () = started => {}
    }
    let mut again = settings.to_vec();
    again.push("CMD_LINE=test -e /started && cat /etc/resolv.conf > /dev/null");
    cexec(&disk, &again).await.unwrap();
    has_its_own(&disk);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_after_a_power_cut_keeps_the_original_resolv_conf() {
    for was_there in [true, false] {
        let disk = system();
        inspect(&disk.path, |root| {
            let [own, aside, absent] = ["", ".tinbox-aside", ".tinbox-absent"]
                .map(|end| root.join(format!("etc/resolv.conf{end}")));
            if was_there {
                std::fs::rename(&own, aside).unwrap();
            } else {
                std::fs::remove_file(&own).unwrap();
                std::fs::write(absent, "").unwrap();
            }
            std::fs::write(own, "nameserver 10.77.0.1\n").unwrap();
        });
        cexec(&disk, &[RESOLVING, "CMD_LINE=touch /made"]).await.unwrap();
        if was_there {
            has_its_own(&disk);
        } else {
            inspect(&disk.path, |root| {
                assert_eq!(std::fs::read_dir(root.join("etc")).unwrap().count(), 0);
            });
        }
    }
}
