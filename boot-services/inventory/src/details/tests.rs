use std::os::unix::fs::symlink;
use std::path::Path;

use super::inventory;

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[test]
fn a_machine_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "sys/class/dmi/id/product_uuid", "4C4C4544-0042-3510-8051-B2C04F4E3032\n");
    for (path, text) in [
        ("nvme0n1/size", "1000215216"),
        ("nvme0n1/device/model", "Samsung SSD 970 EVO  \n"),
        ("nvme0n1/device/serial", "S4EV1\n"),
        ("nvme0n1/queue/rotational", "0"),
        ("nvme0n1/wwid", "eui.0025385a91b0e2a1"),
        ("vda/size", "8"),
        ("vda/queue/rotational", "1"),
        ("loop0/size", "8"),
        ("sr0/size", "8"),
    ] {
        write(root, &format!("sys/block/{path}"), text);
    }
    let disk = root.join("sys/devices/pci0000:00/ata1/host0/block/sda");
    std::fs::create_dir_all(&disk).unwrap();
    std::fs::create_dir_all(disk.join("queue")).unwrap();
    std::fs::write(disk.join("size"), "16").unwrap();
    std::fs::write(disk.join("queue/rotational"), "1").unwrap();
    symlink(&disk, root.join("sys/block/sda")).unwrap();
    for (path, text) in [
        ("eth0/type", "1"),
        ("eth0/address", "52:54:00:77:00:01"),
        ("eth0/speed", "2500"),
        ("eth0/carrier", "1"),
        ("eth1/type", "1"),
        ("eth1/speed", "-1"),
        ("bond0/type", "1"),
        ("bond0/address", "52:54:00:77:00:01"),
        ("dummy0/type", "1"),
        ("lo/type", "772"),
    ] {
        write(root, &format!("sys/class/net/{path}"), text);
    }
    for nic in ["eth0", "eth1"] {
        std::fs::create_dir_all(root.join("sys/class/net").join(nic).join("device")).unwrap();
    }
    symlink("../drivers/igc", root.join("sys/class/net/eth0/device/driver")).unwrap();
    write(root, "sys/class/tpm/tpm0/tpm_version_major", "2\n");
    std::fs::create_dir_all(root.join("sys/class/mei/mei0")).unwrap();

    let found = inventory(root);
    assert_eq!(found.uuid, "4c4c4544-0042-3510-8051-b2c04f4e3032");
    let disks: Vec<_> =
        found.disks.iter().map(|it| (it.name.as_str(), it.transport.as_str())).collect();
    assert_eq!(disks, [("nvme0n1", "nvme"), ("sda", "sata"), ("vda", "virtio")]);
    let rotational: Vec<_> = found.disks.iter().map(|it| it.rotational).collect();
    assert_eq!(rotational, [false, true, false]);
    assert_eq!((found.disks[0].serial.as_str(), found.disks[0].bytes), ("S4EV1", 512_110_190_592));
    let [first, second] = &found.interfaces[..] else { panic!("{:?}", found.interfaces) };
    assert_eq!((first.driver.as_str(), first.speed, first.carrier), ("igc", 2500, true));
    assert_eq!((second.speed, second.carrier), (0, false));
    assert_eq!(found.tpm.unwrap().version, "2.0");
    assert!(found.management_engine && found.efi.is_none() && found.memory.is_empty());
}

#[test]
fn a_machine_that_tells_nothing_has_nothing() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(inventory(folder.path()), agent_rpc::Inventory::default());
}
