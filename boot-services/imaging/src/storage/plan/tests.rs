//! Tests of the plans for descriptions and states of disks.

use super::{DiskState, Slice, Step, Table, format, made, partition, wipe};
use crate::storage::Storage;

/// Description with a RAID 1, extended from upstream's example.
const MIRROR: &str = r#"
disks:
- device: /dev/sda
  wipe_table: true
  partitions:
  - {label: BIOS, number: 1, size: 4096}
  - {label: EFI, number: 2, size: 64MiB}
  - {label: LINUX, number: 3, size: 0}
- device: /dev/nvme0n1
  wipe_table: true
  partitions:
  - {label: SWAP, size: 1GiB}
  - {size: 0}
raid:
- {name: md0, level: 1, devices: [/dev/sda3, /dev/nvme0n1p2], spare: [/dev/sdc]}
volume_groups:
- name: vg0
  physical_volumes: [/dev/md0]
  tags: [tinbox]
  logical_volumes:
  - {name: root, size: 1073741824, opts: ["--type=linear"]}
  - {name: rest, size: 0, tags: [data]}
filesystems:
- mount: {device: /dev/vg0/root, format: ext4, point: /, create: {options: ["-L", "ROOT"]}}
- mount: {device: /dev/sda2, format: vfat, point: /boot/efi}
- mount: {device: /dev/nvme0n1p1, format: swap, point: none}
"#;

fn blank(path: &str, mebibytes: u64) -> DiskState {
    let size = mebibytes * 2048;
    DiskState { path: path.to_owned(), size, block: 512, partitions: Vec::new() }
}

/// Formats each step as `program arguments` or `wait device`, with the input of sfdisk.
fn lines(steps: &[Step]) -> Vec<String> {
    let line = |step: &Step| match step {
        Step::Appear(path) => format!("wait {path}"),
        Step::Run(run, touches) => {
            assert!(!touches.is_empty(), "{run:?} writes to nothing that a policy could keep");
            let input = run.input.iter().flat_map(|text| text.lines());
            let input: String = input.map(|line| format!("\n  {line}")).collect();
            format!("{} {}{input}", run.program, run.arguments.join(" "))
        }
    };
    steps.iter().map(line).collect()
}

fn one(yaml: &str) -> Storage {
    Storage::parse(yaml).unwrap()
}

#[test]
fn a_whole_machine_is_made_in_order() {
    let storage = one(MIRROR);
    let mut sda = blank("/dev/sda", 4096);
    sda.partitions = vec![Slice { number: 1, start: 2048, size: 2048 }];
    let seen = [sda, blank("/dev/nvme0n1", 4096)];
    let steps = lines(&partition(&storage, &seen, Table::Gpt).unwrap());
    let clear = "wipefs --all --force --quiet";
    let expected = [
        format!("{clear} /dev/sda1"),
        format!("{clear} /dev/sda"),
        "sfdisk --wipe=always --wipe-partitions=always --quiet /dev/sda\
         \n  label: gpt\n  unit: sectors\
         \n  1 : start=2048, size=4096, type=21686148-6449-6E6F-744E-656564454649, name=\"BIOS\"\
         \n  2 : start=6144, size=131072, type=C12A7328-F81F-11D2-BA4B-00C93EC93B3B, name=\"EFI\"\
         \n  3 : start=137216, size=8249344, \
         type=0FC63DAF-8483-4772-8E79-3D69D8477DE4, name=\"LINUX\""
            .to_owned(),
        "partx --update /dev/sda".into(),
        "wait /dev/sda1".into(),
        "wait /dev/sda2".into(),
        "wait /dev/sda3".into(),
        format!("{clear} /dev/nvme0n1"),
        "sfdisk --wipe=always --wipe-partitions=always --quiet /dev/nvme0n1\
         \n  label: gpt\n  unit: sectors\
         \n  1 : start=2048, size=2097152, type=0657FD6D-A4AB-43C4-84E5-0933C84B4F4F, name=\"SWAP\"\
         \n  2 : start=2099200, size=6287360, type=0FC63DAF-8483-4772-8E79-3D69D8477DE4"
            .into(),
        "partx --update /dev/nvme0n1".into(),
        "wait /dev/nvme0n1p1".into(),
        "wait /dev/nvme0n1p2".into(),
        "wait /dev/sda3".into(),
        format!("{clear} /dev/sda3"),
        "wait /dev/nvme0n1p2".into(),
        format!("{clear} /dev/nvme0n1p2"),
        "wait /dev/sdc".into(),
        format!("{clear} /dev/sdc"),
        "mdadm --create /dev/md0 --homehost=any --metadata=1.2 --level=1 --raid-devices=2 \
         --spare-devices=1 --run --force /dev/sda3 /dev/nvme0n1p2 /dev/sdc"
            .into(),
        "wait /dev/md0".into(),
        "wait /dev/md0".into(),
        format!("{clear} /dev/md0"),
        "lvm pvcreate --yes -ff /dev/md0".into(),
        "lvm vgcreate --yes --addtag=tinbox vg0 /dev/md0".into(),
        "lvm lvcreate --yes --wipesignatures=y --size=1073741824b --name=root vg0 --type=linear"
            .into(),
        "wait /dev/vg0/root".into(),
        "lvm lvcreate --yes --wipesignatures=y --addtag=data --extents=100%FREE --name=rest vg0"
            .into(),
        "wait /dev/vg0/rest".into(),
    ];
    assert_eq!(steps, expected);
    let expected = "5 partitions on 2 disks, /dev/md0 (RAID 1 of 2 devices), \
                    volume group vg0 (2 volumes)";
    assert_eq!(made(&storage), expected);
}

#[test]
fn each_file_system_has_its_program() {
    let made = |format_of: &str| {
        let text = format!(
            "filesystems: [{{mount: {{device: /dev/sda1, format: {format_of}, \
             create: {{force: true, options: [-L, X]}}}}}}]"
        );
        let steps = lines(&format(&one(&text)));
        assert_eq!(steps[..2], ["wait /dev/sda1", "wipefs --all --force --quiet /dev/sda1"]);
        steps[2].clone()
    };
    for (format_of, line) in [
        ("ext4", "mke2fs -L X -q -F -t ext4 /dev/sda1"),
        ("ext3", "mke2fs -L X -q -F -t ext3 /dev/sda1"),
        ("ext2", "mke2fs -L X -q -F -t ext2 /dev/sda1"),
        ("xfs", "mkfs.xfs -L X -q -f /dev/sda1"),
        ("btrfs", "mkfs.btrfs -L X -q -f /dev/sda1"),
        ("vfat", "mkfs.fat -L X -I /dev/sda1"),
        ("swap", "mkswap -L X --force /dev/sda1"),
    ] {
        assert_eq!(made(format_of), line);
    }
    assert_eq!(lines(&format(&one(MIRROR))).len(), 9);
}

#[test]
fn a_table_is_kept_or_replaced_only_when_that_is_said() {
    let text = "disks: [{device: /dev/sda, partitions: [{size: 2048}, {number: 7, size: 4MiB}]}]";
    let storage = one(text);
    let mut seen = blank("/dev/sda", 64);
    assert_eq!(partition(&storage, &[seen.clone()], Table::Gpt).unwrap().len(), 4);
    let ours = [
        Slice { number: 7, start: 4096, size: 8192 },
        Slice { number: 1, start: 2048, size: 2048 },
    ];
    seen.partitions = ours.to_vec();
    assert_eq!(partition(&storage, &[seen.clone()], Table::Gpt).unwrap(), []);
    seen.partitions[0].size = 8191;
    let refused = partition(&storage, &[seen.clone()], Table::Gpt).unwrap_err();
    let expected =
        "/dev/sda has another partition table, of 2 partitions; wipe_table: true replaces it";
    assert_eq!(refused, expected);
    let mut wiped = storage.clone();
    wiped.disks[0].wipe_table = true;
    assert_eq!(partition(&wiped, &[seen.clone()], Table::Gpt).unwrap().len(), 7);
    assert_eq!(wipe(&seen).len(), 3, "two partitions and the disk");
}

#[test]
fn blocks_of_4096_bytes_and_an_mbr_are_counted_right() {
    let text = "disks: [{device: /dev/sda, partitions: [{label: FAT32_ACTIVE, size: 2049}, \
                {label: SWAP, size: 1MiB, start: 8MiB}, {label: LINUX}]}]";
    let mut seen = blank("/dev/sda", 64);
    seen.block = 4096;
    let steps = lines(&partition(&one(text), &[seen], Table::Mbr).unwrap());
    assert_eq!(
        steps[0],
        "sfdisk --wipe=always --wipe-partitions=always --quiet /dev/sda\
         \n  label: dos\n  unit: sectors\
         \n  1 : start=256, size=257, type=c, bootable\
         \n  2 : start=2048, size=256, type=82\
         \n  3 : start=2304, size=14080, type=83"
    );
}

#[test]
fn what_does_not_fit_is_said_before_anything_is_touched() {
    let refused = |partitions: &str, table| {
        let text = format!("disks: [{{device: /dev/sda, partitions: [{partitions}]}}]");
        partition(&one(&text), &[blank("/dev/sda", 64)], table).unwrap_err()
    };
    let too_large = refused("{size: 1GiB}", Table::Gpt);
    let expected =
        "partition 1 does not fit on /dev/sda: it needs 1.0 GiB from 1.0 MiB on, of 64 MiB";
    assert_eq!(too_large, expected);
    assert!(refused("{size: 62MiB}, {}", Table::Gpt).contains("partition 2 does not fit"));
    let overlap = refused("{size: 4MiB}, {size: 1MiB, start: 2MiB}", Table::Gpt);
    assert!(overlap.ends_with("cannot begin at sector 4096: the first free one is 10240"));
    let five = ["{size: 1MiB}"; 5].join(", ");
    assert!(refused(&five, Table::Mbr).contains("at most 4 partitions"));
    let huge = refused("{size: 18446744073709551615}", Table::Gpt);
    assert!(huge.contains("does not fit"), "{huge}");
}
