//! Tests valid and invalid settings of actions, with the error messages.

use agent_rpc::Assignment;
use imaging::stream::{Algorithm, Checksum, Proof};

use super::{Action, Limits, repository};

fn parse(image: &str, environment: &[&str]) -> Result<Action, String> {
    let assignment = Assignment {
        image: image.to_owned(),
        environment: environment.iter().map(|entry| (*entry).to_owned()).collect(),
        ..Assignment::default()
    };
    Action::parse(&assignment, Limits::MACHINE).map_err(|error| stdx::chain(&error))
}

#[test]
fn an_image_is_known_by_its_repository() {
    for (image, name) in [
        ("quay.io/tinkerbell/actions/image2disk:v1", "image2disk"),
        ("quay.io/tinkerbell-actions/image2disk:latest", "image2disk"),
        ("10.1.1.1:5000/image2disk", "image2disk"),
        ("image2disk", "image2disk"),
        ("ghcr.io/x/writefile@sha256:00ff", "writefile"),
        ("ghcr.io/x/writefile:v1@sha256:00ff", "writefile"),
        ("", ""),
        ("a/", ""),
    ] {
        assert_eq!(repository(image), name, "{image}");
    }
    let error = parse("docker.io/library/alpine:3", &[]).unwrap_err();
    assert_eq!(
        error,
        "there is no built-in action for image \"docker.io/library/alpine:3\"; the built-in \
        actions are \
         image2disk, qemuimg2disk, oci2disk, archive2disk, writefile, cexec, disk-wipe, \
         storage, rootio, growpart, grub2disk, syslinux, slurp, kexec, reboot, and waitdaemon \
         for one of them"
    );
}

#[test]
fn the_actions_of_upstreams_cluster_template_are_understood() {
    let disk = ["DEST_DISK=/dev/vda", "COMPRESSED=true"];
    let environment =
        [&disk[..], &["IMG_URL=http://10.77.0.1:7080/cache/ab/ubuntu:v1.gz"]].concat();
    let action = parse("quay.io/tinkerbell/actions/oci2disk", &environment);
    let Ok(Action::Image2Disk(image)) = action else { panic!("{action:?}") };
    assert!(image.compressed && image.proof.is_none());
    let kept = [&disk[..], &["IMG_URL=ghcr.io/a/ubuntu:v1.gz"]].concat();
    assert!(parse("oci2disk", &kept).unwrap_err().contains("[images]"));
    let user = [&kept[..], &["REGISTRY_USERNAME=me", "REGISTRY_PASSWORD=s3cret"]].concat();
    let refused = parse("oci2disk", &user).unwrap_err();
    assert!(refused.contains("without a login") && !refused.contains("s3cret"), "{refused}");

    let kexec = ["BLOCK_DEVICE=/dev/vda1", "FS_TYPE=ext4", "WAIT_SECONDS=5"];
    let daemon = "ghcr.io/jacobweinstock/waitdaemon:latest";
    let kexec = [&kexec[..], &["IMAGE=quay.io/tinkerbell/actions/kexec"]].concat();
    assert!(matches!(parse(daemon, &kexec), Ok(Action::Kexec(_))));
    assert!(matches!(parse(daemon, &["IMAGE=reboot"]), Ok(Action::Reboot)));
    assert!(parse(daemon, &[]).unwrap_err().contains("IMAGE"));
    assert!(parse(daemon, &["IMAGE=alpine:3"]).unwrap_err().contains("alpine:3"));
    assert!(parse(daemon, &["IMAGE=waitdaemon"]).is_err(), "it waits for nothing");
}

#[test]
fn any_other_image_is_a_containers_where_there_is_a_registry() {
    let limits = || Limits { registry: Some("10.77.0.1:7080".into()), ..Limits::MACHINE };
    let parse = |image: &str, more: &[&str]| {
        let environment = more.iter().map(ToString::to_string).collect();
        let image = image.to_owned();
        let assignment = Assignment { image, environment, ..Assignment::default() };
        Action::parse(&assignment, limits()).map_err(|error| stdx::chain(&error))
    };
    assert!(matches!(parse("docker.io/library/alpine:3", &[]), Ok(Action::Container(_))));
    assert!(matches!(parse("ghcr.io/a/reboot", &[]), Ok(Action::Reboot)));
    let error = parse("Not An Image", &[]).unwrap_err();
    assert!(error.starts_with("cannot run the image \"Not An Image\""), "{error}");
    let error = parse("waitdaemon", &["IMAGE=alpine:3"]).unwrap_err();
    assert!(error.starts_with("there is no built-in action for image \"alpine:3\""), "{error}");
}

#[test]
fn image2disk_reads_its_environment() {
    let digest = "ab".repeat(32);
    for spelled in [digest.clone(), format!("sha256:{digest}"), digest.to_uppercase()] {
        let action = parse(
            "a/image2disk:1",
            &[
                "COMPRESSED=true",
                "DEST_DISK=/dev/vda",
                &format!("IMG_SHA256={spelled}"),
                "IMG_URL=http://10.77.0.1:7080/images/a.zst?x=1",
            ],
        );
        let Ok(Action::Image2Disk(image)) = action else { panic!("{action:?}") };
        assert_eq!(image.url.to_string(), "http://10.77.0.1:7080/images/a.zst");
        assert_eq!(image.disk.to_str(), Some("/dev/vda"));
        let sum = Checksum::parse(Algorithm::Sha256, &digest).unwrap();
        assert_eq!(image.proof, Some(Proof::Sum(sum)));
        assert!(image.compressed);
    }
}

#[test]
fn every_mistake_has_its_sentence() {
    let url = "IMG_URL=http://box/a";
    let disk = "DEST_DISK=/dev/vda";
    let (path, fs) = ("DEST_PATH=/a", "FS_TYPE=ext4");
    let cases: &[(&str, &[&str], &str)] = &[
        ("image2disk", &[disk], "image2disk needs IMG_URL in its environment"),
        ("image2disk", &[url], "image2disk needs DEST_DISK in its environment"),
        ("image2disk", &[url, "DEST_DISK="], "image2disk needs DEST_DISK in its environment"),
        ("image2disk", &[url, "DEST_DISK=vda"], "cannot use DEST_DISK: \"vda\" is not an absolute"),
        ("image2disk", &[url, disk, "COMPRESSED=maybe"], "cannot use COMPRESSED: \"maybe\""),
        ("image2disk", &[url, disk, "IMG_SHA256=abc"], "cannot use IMG_SHA256: it is not 64"),
        ("image2disk", &["IMG_URL=ftp://box/a", disk], "does not begin with http://"),
        ("image2disk", &[url, disk, "IMG_CHECKSUM=00ff"], "cannot use IMG_CHECKSUM: it is not"),
        ("image2disk", &[url, disk, "IMG_CHECKSUM_URL=SUMS"], "does not begin with http://"),
        ("image2disk", &[url, disk, "RETRY_DURATION_MINUTES=0"], "not a number of minutes"),
        (
            "image2disk",
            &[url, disk, "IMG_MD5=900150983cd24fb0d6963f7d28e17f72", "IMG_CHECKSUM_URL=http://a/b"],
            "cannot use IMG_CHECKSUM_URL: only one checksum can be set",
        ),
        ("qemuimg2disk", &[url, disk, "EXTRA_ARGS=-W"], "qemuimg2disk cannot use EXTRA_ARGS"),
        ("writefile", &[], "writefile needs DEST_PATH"),
        ("writefile", &["DEST_PATH=etc/a", disk, "FS_TYPE=ext4"], "is not an absolute path"),
        ("writefile", &["DEST_PATH=/a/../b", disk, "FS_TYPE=ext4"], "without .."),
        ("writefile", &[path, disk, fs, "CONTENTS=", "MODE=9"], "not an octal mode"),
        ("writefile", &[path, disk, fs, "CONTENTS=", "UID=root"], "not a number"),
        ("writefile", &[path, disk, fs], "writefile needs CONTENTS"),
        ("disk-wipe", &[], "disk-wipe needs BLOCK_DEVICE"),
        (
            "disk-wipe",
            &["BLOCK_DEVICE=/dev/vda", "WIPE_METHOD=shred"],
            "cannot use WIPE_METHOD: \"shred\" is not one of auto, zero, discard, nvme-format, \
             nvme-sanitize, ata-secure-erase",
        ),
        (
            "disk-wipe",
            &["BLOCK_DEVICE=serial="],
            "cannot use BLOCK_DEVICE: \"serial\" has no value",
        ),
        ("cexec", &["BLOCK_DEVICE=/dev/vda1", "FS_TYPE=ext4"], "cexec needs CMD_LINE"),
        ("archive2disk", &["ARCHIVE_URL=http://a/b"], "archive2disk needs TARFILE_CHECKSUM"),
        ("kexec", &["FS_TYPE=ext4"], "kexec needs BLOCK_DEVICE"),
        ("grub2disk", &["FS_TYPE=ext4"], "grub2disk needs GRUB_INSTALL_PATH"),
        ("grub2disk", &["GRUB_INSTALL_PATH=/dev/vda"], "grub2disk needs GRUB_DISK"),
        ("syslinux", &["SYSLINUX_VERSION=5"], "\"5\" is not 3.86 or 6.04"),
        ("syslinux", &["SYSLINUX_VERSION=3.86", disk], "syslinux needs DEST_PARTITION"),
        ("slurp", &["SOURCE_DISK=/dev/vda", "IMG_NAME=x"], "slurp needs DEST_URL"),
        ("slurp", &["DEST_URL=ftp://box/a", "IMG_NAME=x"], "does not begin with http://"),
        ("slurp", &["DEST_URL=http://box/a", "IMG_NAME=a/b"], "cannot use IMG_NAME: \"a/b\""),
        ("slurp", &["DEST_URL=http://box/a", "IMG_NAME=x"], "slurp needs SOURCE_DISK"),
        ("storage", &[], "storage needs STORAGE in its environment"),
        ("storage", &["STORAGE=disks: [{}]"], "storage cannot use STORAGE: disks has an entry"),
        ("growpart", &[], "growpart needs DEST_DISK"),
        ("growpart", &[disk, "PARTITION=last"], "growpart cannot use PARTITION: \"last\""),
        ("image2disk", &[url, disk, "GROW_LAST_PARTITION=x"], "cannot use GROW_LAST_PARTITION"),
    ];
    for (image, environment, words) in cases {
        let error = parse(image, environment).unwrap_err();
        assert!(error.contains(words), "{image} {environment:?}: {error}");
    }
}

#[test]
fn an_action_of_another_publisher_is_refused() {
    let environment =
        ["DEST_PATH=/a", "DEST_DISK=/dev/vda3", "FS_TYPE=ext4", "STATIC_NETPLAN=true"];
    let error = parse("public.ecr.aws/eks-anywhere/writefile:1", &environment).unwrap_err();
    let expected = "writefile needs CONTENTS in its environment, but has DEST_PATH, DEST_DISK, \
                    FS_TYPE, STATIC_NETPLAN; an action of another publisher may have the same name";
    assert!(error.starts_with(expected), "{error}");
    let empty = ["DEST_PATH=/a", "DEST_DISK=/dev/vda3", "FS_TYPE=ext4", "CONTENTS="];
    assert!(parse("writefile", &empty).is_ok());
}

#[test]
fn contents_stay_out_of_debug_output() {
    let environment = ["DEST_PATH=/a", "DEST_DISK=/dev/vda3", "FS_TYPE=ext4", "CONTENTS=s3cret=1"];
    let action = parse("writefile", &environment).unwrap();
    assert!(!format!("{action:?}").contains("s3cret"));
    let Action::WriteFile(file) = action else { panic!() };
    assert_eq!(file.contents(), "s3cret=1");
}

/// The list of settings of `tinbox template lint`, which reports misspelled settings, must have
/// every setting that an action reads.
#[test]
fn every_setting_of_an_action_is_known_to_lint() {
    let known: Vec<&str> = api::document::SETTINGS.iter().flat_map(|row| row.1).copied().collect();
    for source in [
        include_str!("archive2disk.rs"),
        include_str!("cexec.rs"),
        include_str!("disk_wipe.rs"),
        include_str!("growpart.rs"),
        include_str!("grub2disk.rs"),
        include_str!("image2disk.rs"),
        include_str!("kexec.rs"),
        include_str!("oci2disk.rs"),
        include_str!("rootio.rs"),
        include_str!("slurp.rs"),
        include_str!("syslinux.rs"),
        include_str!("writefile.rs"),
    ] {
        for call in source.split("environment.").skip(1) {
            let name = call.split_once("(\"").map(|(_, rest)| rest.split('"').next().unwrap());
            let is_setting = |name: &&str| {
                let sign = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
                name.len() > 1 && name.chars().all(sign)
            };
            if let Some(name) = name.filter(is_setting) {
                assert!(known.contains(&name), "{name}");
            }
        }
    }
}
