use super::{Target, mounted};

fn stick() -> Target {
    Target {
        name: "sdb".into(),
        model: "SanDisk Extreme".into(),
        serial: "4C530001".into(),
        size: 32 << 30,
        removable: true,
        partitions: vec!["sdb1".into()],
        ..Target::default()
    }
}

#[test]
fn what_may_not_be_overwritten() {
    type Change = fn(&mut Target);
    let table: [(Change, Option<&str>); 6] = [
        (|_| (), None),
        (|it| it.part_of = Some("sdb".into()), Some("it is a part of sdb")),
        (|it| it.in_use = vec!["sdb1 is mounted at /".into()], Some("sdb1 is mounted at /")),
        (|it| it.read_only = true, Some("it is write-protected")),
        (|it| it.size = 0, Some("it contains no medium")),
        (|it| it.size = 512 << 20, Some("it has 512 MiB, the image needs 706 MiB")),
    ];
    for (change, why) in table {
        let mut disk = stick();
        change(&mut disk);
        assert_eq!(disk.refusal(Some(706 << 20)).map(|(why, _)| why).as_deref(), why, "{disk:?}");
    }
}

#[test]
fn a_disk_is_shown_and_proved() {
    let disk = stick();
    let [what, holds] = disk.lines();
    assert_eq!(what, "sdb: SanDisk Extreme, serial 4C530001, 32 GiB, removable");
    assert_eq!(holds, "it has sdb1; all data on it will be lost");
    assert_eq!(disk.proof(), "0001");
    let none = Target { serial: String::new(), partitions: Vec::new(), ..stick() };
    assert_eq!(
        (none.proof(), none.proof_of().as_str()),
        ("sdb", "the disk's name, as the disk has no serial number")
    );
    assert!(none.lines()[1].contains("no partitions"));
    let short = Target { serial: "é7".into(), ..stick() };
    assert_eq!(short.proof(), "é7");
    let named = Target { name: "mmcblk0".into(), ..none };
    assert_eq!(named.proof(), "blk0");
}

#[test]
fn the_proof_fits_no_other_disk_of_the_machine() {
    let among = |others: &[&str]| {
        let other_serials = others.iter().map(|it| (*it).to_owned()).collect();
        let disk = Target { serial: "4C53a001".into(), other_serials, ..stick() };
        (disk.proof().to_owned(), disk.proof_of())
    };
    for (others, proof, what) in [
        (&["X"][..], "a001", "the last 4 characters of the disk's serial number"),
        (&["4C5BA001"], "3a001", "the last 5 characters of the disk's serial number"),
        (&["5C53A001"], "4C53a001", "the disk's serial number"),
        (&["4c53A001"], "sdb", "the disk's name, as another disk has the same serial number"),
    ] {
        assert_eq!(among(others), (proof.to_owned(), what.to_owned()), "{others:?}");
    }
}

#[test]
fn a_mount_is_found_by_its_number() {
    let mounts = "22 1 8:17 / /mnt/a\\040b rw - ext4 /dev/sdb1 rw\n23 1 8:1 / / rw - ext4 x rw\n";
    assert_eq!(mounted(mounts, "8:17").as_deref(), Some("/mnt/a\\040b"));
    assert_eq!((mounted(mounts, "8:2"), mounted(mounts, "")), (None, None));
}
