//! Tests of valid descriptions, and of the error for each kind of mistake.

use super::Storage;
use crate::storage::Amount;

/// Response of Tinkerbell's metadata service, with the storage of Hardware.
const METADATA: &str = r#"{"metadata": {"facility": {}, "instance": {"hostname": "a", "storage": {
    "disks": [{"device": "/dev/sda", "partitions": [
        {"label": "ROOT", "number": 1, "size": 0, "start": null, "type_guid": null}
    ], "wipe_table": true}, {"device": "serialNumber=X", "partitions": null}],
    "raid": null,
    "filesystems": [{"mount": {"create": {"options": null, "force": true}, "device": "/dev/sda1",
        "files": [{"path": "/a", "contents": "s3cret"}], "format": "ext4", "point": "/"}}]
}}}}"#;

#[test]
fn metadata_are_read_as_they_are_served() {
    let storage = Storage::of_metadata(METADATA).unwrap();
    assert_eq!(storage.disks.len(), 2);
    assert!(storage.disks[0].wipe_table && !storage.disks[1].wipe_table);
    assert_eq!(storage.disks[0].partitions[0].label, "ROOT");
    assert_eq!(storage.filesystems[0].mount.format, "ext4");
    let nothing = r#"{"metadata":{"instance":{"storage":{"disks":null,"filesystems":null}}}}"#;
    assert_eq!(Storage::of_metadata(nothing).unwrap(), Storage::default());
    assert_eq!(Storage::of_metadata("{}").unwrap(), Storage::default());
}

#[test]
fn names_and_sizes_have_every_usual_form() {
    let text = "raid: [{name: /dev/md/root, level: raid10, devices: [/dev/a, /dev/b]}]\n\
                volume_groups: [{name: v, physical_volumes: [/dev/a], \
                logical_volumes: [{name: w, size: 5GiB}]}]";
    let storage = Storage::parse(text).unwrap();
    assert_eq!(storage.raid[0].path(), "/dev/md/root");
    assert_eq!(storage.raid[0].level, "10");
    assert_eq!(storage.volume_groups[0].logical_volumes[0].size, Amount::Bytes(5 << 30));
}

#[test]
fn every_mistake_has_its_sentence() {
    let members = "devices: [/dev/a, /dev/b]";
    let volumes = "physical_volumes: [/dev/a]";
    for (text, words) in [
        ("disks: [{device: sda}]".to_owned(), "is not an absolute path"),
        ("disks: [{}]".into(), "disks has an entry without a device"),
        ("disks: [{device: /dev/../etc/x}]".into(), "has .. in it"),
        ("disks: [{device: /dev/sda, wipe: true}]".into(), "unknown field"),
        (
            "disks: [{device: /dev/sda, partitions: [{size: 0}, {size: 1}]}]".into(),
            "partition 1 of /dev/sda has size 0 (all free space), but is not the last",
        ),
        (
            "disks: [{device: /dev/sda, partitions: [{number: 2, size: 9}, {size: 1}]}]".into(),
            "/dev/sda has partition 2 twice",
        ),
        (
            "disks: [{device: /dev/sda, partitions: [{label: 'a\"b'}]}]".into(),
            "is not a partition label",
        ),
        (
            "disks: [{device: /dev/sda, partitions: [{type_guid: \"x, bootable\"}]}]".into(),
            "is not a partition type GUID",
        ),
        ("disks: [{device: /dev/sda, partitions: [{size: 8GB}]}]".into(), "is not a valid size"),
        (format!("raid: [{{name: sda, level: 1, {members}}}]"), "is not a valid array name"),
        (format!("raid: [{{name: md/--x, level: 1, {members}}}]"), "is not a valid array name"),
        (format!("raid: [{{name: md0, level: 2, {members}}}]"), "array md0 has level \"2\""),
        (format!("raid: [{{name: md0, level: 5, {members}}}]"), "needs 3 devices, not 2"),
        (
            "raid: [{name: md0, level: 1, devices: [/dev/a, /dev/a]}]".into(),
            "array md0 names a device twice",
        ),
        (format!("volume_groups: [{{name: -v, {volumes}}}]"), "is not a volume group name"),
        ("volume_groups: [{name: v}]".into(), "has no physical volume"),
        (
            format!("volume_groups: [{{name: v, {volumes}, logical_volumes: [{{name: a/b}}]}}]"),
            "is not a valid, new volume name in v",
        ),
        (format!("volume_groups: [{{name: v, {volumes}, tags: [--x]}}]"), "is not a valid LVM tag"),
        ("filesystems: [{mount: {device: /dev/a, format: zfs}}]".into(), "has format \"zfs\""),
        ("disks: 7".into(), "expected sequence"),
        ("[".into(), ""),
    ] {
        let error = Storage::parse(&text).unwrap_err();
        assert!(error.contains(words), "{text}: {error}");
    }
    let long = format!("# {}", "x".repeat(1 << 20));
    assert!(Storage::parse(&long).unwrap_err().contains("longer than"));
    let many = format!("disks: [{}]", "{device: /dev/sda},".repeat(200));
    assert!(Storage::parse(&many).unwrap_err().contains("more than 128"));
}
