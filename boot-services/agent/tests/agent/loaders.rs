//! Tests the installation of boot loaders by programs of the tools image, on loop devices.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;

use crate::loops::{Loop, act, inspect, run};
use crate::programs::system as system_with_busybox;
use crate::storage::{part, tools};

/// Length of the code in a boot record, in bytes.
const PROGRAM: usize = 440;

fn sector(disk: &Loop) -> [u8; 512] {
    let mut sector = [0; 512];
    File::open(&disk.path).unwrap().read_exact(&mut sector).unwrap();
    sector
}

/// Creates a disk with a partition table by sfdisk's script `table`, and with file systems.
fn disk(table: &str, formats: &[(u32, &str)]) -> Loop {
    let disk = Loop::with_partitions(192 << 20);
    let path = disk.path.to_str().unwrap();
    run("sh", &["-c", &format!("printf '{table}' | sfdisk -q {path} && partx -u {path}")]);
    for (number, program) in formats {
        run("sh", &["-c", &format!("{program} {}", part(&disk, *number).display())]);
    }
    disk
}

#[tokio::test(flavor = "multi_thread")]
async fn syslinux_is_installed_for_both_kinds_of_table() {
    // ext4, because some kernels that run this test cannot mount vfat.
    for (table, of) in
        [("label: dos\\n,64M,L\\n,,L\\n", "a DOS table"), ("label: gpt\\n,64M\\n", "a GPT")]
    {
        let disk = disk(table, &[(1, "mkfs.ext4 -q -O ^64bit")]);
        let before = sector(&disk);
        let _files = tools().await;
        let partition = format!("DEST_PARTITION={}", part(&disk, 1).display());
        let environment =
            [disk.environment("DEST_DISK"), partition, "SYSLINUX_VERSION=3.86".to_owned()];
        let summary =
            act("quay.io/tinkerbell/actions/syslinux:latest", &environment).await.unwrap();
        assert!(summary.contains(&format!("(ext4) and its record for {of} on ")), "{summary}");
        assert!(summary.ends_with("6.04 and not 3.86: modules (.c32) beside it must be of 6.04"));
        let after = sector(&disk);
        assert_ne!(after[..PROGRAM], before[..PROGRAM]);
        assert_eq!((&after[440..446], &after[510..]), (&before[440..446], &before[510..]));
        // A kernel without GPT support finds no partitions when it reads the table again.
        run("partx", &["-u", disk.path.to_str().unwrap()]);
        inspect(&part(&disk, 1), |root| assert!(root.join("ldlinux.sys").exists()));
        let mut start = [0; 512];
        File::open(part(&disk, 1)).unwrap().read_exact(&mut start).unwrap();
        assert_eq!(&start[3..11], b"SYSLINUX", "its boot sector");
        let dump = run("sfdisk", &["--dump", disk.path.to_str().unwrap()]);
        assert!(dump.contains("bootable") || dump.contains("LegacyBIOSBootable"), "{dump}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn syslinux_says_where_it_cannot_start() {
    let disk = disk("label: dos\\n,64M,c\\n,,L\\n", &[]);
    let _files = tools().await;
    let target =
        |partition: &str| [disk.environment("DEST_DISK"), format!("DEST_PARTITION={partition}")];
    let empty = part(&disk, 1).display().to_string();
    let error = act("syslinux", &target(&empty)).await.unwrap_err();
    assert!(error.contains("has no file system; syslinux starts from vfat, ext4"), "{error}");
    let whole = disk.path.display().to_string();
    let error = act("syslinux", &target(&whole)).await.unwrap_err();
    assert!(error.contains(&format!("{whole} is not a partition of {whole}")), "{error}");
}

/// Creates a system with fake GRUB programs, which record their arguments.
fn system(platform: &str) -> Loop {
    let disk = system_with_busybox();
    inspect(&disk.path, |root| {
        std::fs::create_dir_all(root.join("usr/sbin")).unwrap();
        std::fs::create_dir_all(root.join("boot/grub")).unwrap();
        let files = root.join("usr/lib/grub").join(platform);
        std::fs::create_dir_all(&files).unwrap();
        std::fs::write(files.join("moddep.lst"), "").unwrap();
        for name in ["grub-install", "grub-mkconfig"] {
            let program = root.join("usr/sbin").join(name);
            std::fs::write(&program, "#!/bin/sh\necho ${0##*/} \"$@\" >>/asked\n").unwrap();
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    });
    disk
}

fn grub(disk: &Loop, more: &[String]) -> Vec<String> {
    let fixed = [disk.environment("GRUB_INSTALL_PATH"), disk.environment("GRUB_DISK")];
    fixed.into_iter().chain(["FS_TYPE=ext4".to_owned()]).chain(more.iter().cloned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn grub_is_installed_by_the_systems_own_programs() {
    let disk = system("i386-pc");
    let summary =
        act("quay.io/tinkerbell/actions/grub2disk:latest", &grub(&disk, &[])).await.unwrap();
    let path = disk.path.display();
    let expected = format!(
        "installed GRUB (i386-pc) on {path} by grub-install of {path}, and made its configuration"
    );
    assert_eq!(summary, expected);
    inspect(&disk.path, |root| {
        let asked = std::fs::read_to_string(root.join("asked")).unwrap();
        let install = format!("grub-install --target=i386-pc {path}\n");
        assert_eq!(asked, format!("{install}grub-mkconfig -o /boot/grub/grub.cfg\n"));
    });
    let efi = [disk.environment("GRUB_EFI_PARTITION")];
    let error = act("grub2disk", &grub(&disk, &efi)).await.unwrap_err();
    assert!(error.contains("has no grub-install with x86_64-efi; install its package"), "{error}");
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains("/run/tinbox-agent"), "{mounts}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loader_that_fails_says_why() {
    let disk = system("i386-pc");
    inspect(&disk.path, |root| {
        let program = "#!/bin/sh\necho cannot find the frob >&2; exit 3\n";
        std::fs::write(root.join("usr/sbin/grub-install"), program).unwrap();
    });
    let error = act("grub2disk", &grub(&disk, &[])).await.unwrap_err();
    assert!(error.starts_with("grub-install ended with exit status: 3: "), "{error}");
    assert!(error.contains("cannot find the frob"), "{error}");
    inspect(&disk.path, |root| assert!(!root.join("asked").exists(), "nothing came after it"));
    imaging::preserve::set(imaging::preserve::parse(disk.path.to_str().unwrap()).unwrap());
    let kept = act("grub2disk", &grub(&disk, &[])).await;
    imaging::preserve::set(Vec::new());
    assert!(kept.unwrap_err().ends_with("is preserved"));
}
