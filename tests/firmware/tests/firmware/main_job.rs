//! The main purpose of the product, with flashed disks only: a box from its image, and a machine. A
//! box with one cable, and the box of `make demo BOX=image` between an office and a rack.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use firmware::{PATIENCE, run};
use image::disk::disk_size;
use qemu::{Action, Board, Bus, Drive, Nic, NucConfig, Origin, Rack, RackConfig, Segment, poll};
use qemu::{BoxProgram, Host};
use scenarios::nuc_manifest;
use stdx::MacAddr;

use super::{grubenv, made};
use firmware::boot_volume;
use firmware::image_rack::{ImageRack, output};
use firmware::owner::{Owner, program};

const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0, 0xb0]);
/// Address of the box in `box.toml`.
const BOX: &str = "10.77.0.1";
const OWNER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 250);
/// Configuration of an owner with one rack and one cable, as an editor on Windows saves it. The
/// last key is for QEMU's clock, the two before it for its speed.
const BOX_TOML: &str = "\u{feff}name = \"cellar\"\r\n\
    [network]\r\n\
    interface = \"eth0\"\r\n\
    address = \"10.77.0.1\"\r\n\
    mode = \"reserved\"\r\n\
    [agents]\r\n\
    silence_secs = 120\r\n\
    boot_secs = 600\r\n\
    [boot]\r\n\
    kernel_args = [\"no_timer_check\"]\r\n";
/// Timeout for boot, 1.5 GiB of image and Debian with cloud-init, all emulated beside an emulated
/// box.
const WHOLE: Duration = Duration::from_secs(2400);

const USER_DATA: &str = "#cloud-config\n\
    runcmd:\n\
    - \"echo HOST=$(hostname) KEYS=$(grep -c 'owner$' /home/debian/.ssh/authorized_keys) \
         >/dev/ttyS0\"\n\
    phone_home:\n\
    \x20 url: http://10.77.0.1:7080/phone-home\n\
    \x20 post: [instance_id, hostname]\n\
    \x20 tries: 10\n";

#[test]
fn a_flashed_box_installs_a_machine() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    made(folder.path()).copy(&disk).unwrap();
    // Space for the image in the box's cache.
    let larger = fs::File::options().write(true).open(&disk).unwrap();
    larger.set_len(disk_size() + (1 << 30)).unwrap();
    boot_volume::put(&disk, "box.toml", BOX_TOML.as_bytes()).unwrap();
    let rack = Rack::build(RackConfig::new("main-job").nuc(NucConfig::uefi())).unwrap();
    // The board is the box here, not a process.
    rack.unplug_box().unwrap();
    let host = rack.add_host("owner", &[(Segment::Near, OWNER)]).unwrap();
    let images = qemu::out_dir().join("artifacts/images");
    let server = BoxProgram::new(program("rack-httpd"), rack.dir().join("httpd.log"))
        .args(["--dir".as_ref(), images.as_os_str()])
        .args(["--listen", "10.77.0.250:8099"]);
    let _server = host.spawn(server).unwrap();
    let board =
        rack.add_board(&Drive::new(&disk, Bus::Nvme), (Segment::Near, Nic::Virtio, MAC)).unwrap();
    installs(&rack, &host, &board, folder.path());
    drop(board);
    assert!(grubenv(&disk).contains("\nA_OK=1\nA_TRY=0\n"), "the slot is not good");
    rack.succeed();
}

fn installs(rack: &Rack, host: &Host, board: &Board, folder: &Path) {
    board.serial().wait_for("claim this box at HTTPS://10.77.0.1/S/", PATIENCE).unwrap();
    let owner = Owner::claims(host, BOX, board.serial(), folder);
    let nuc = rack.nuc(1);
    let file = folder.join("nuc1.yaml");
    fs::write(&file, nuc_manifest(nuc, true, true, "ssh-ed25519 AAAA owner", USER_DATA)).unwrap();
    let tinbox = |arguments: &[&str]| run(owner.tinbox().args(arguments)).unwrap();
    tinbox(&["hardware", "push", "--file", &file.to_string_lossy()]);
    let image = format!("http://{OWNER}:8099/debian.raw.zst");
    let (image, sums) = (format!("image_url={image}"), format!("sums_url={image}.sha256"));
    let debian = ["template", "create", "--library", "debian"];
    tinbox(&[&debian[..], &["--set", &image, "--set", &sums]].concat());
    assert!(!nuc.is_on(), "the machine begins switched off");
    let create = ["workflow", "create", "--template", "debian", "--hardware", "nuc1"];
    tinbox(&[&create[..], &["--name", "install", "--wait", "--timeout", "40m"]].concat());

    nuc.serial().wait_for("HOST=nuc1 KEYS=1", WHOLE).unwrap();
    let home = || tinbox(&["machine", "history", "nuc1"]).contains("phoned home as nuc1");
    poll("Debian to phone home", WHOLE, || home().then_some(())).unwrap();
    assert_eq!(nuc.count(Origin::Bmc, Action::On), 1, "how often the box switched it on");
    board.serial().wait_for("its slot is good", PATIENCE).unwrap();
}

/// The steps of `make demo BOX=image`: the box has a NIC on the office network, which has a DHCP
/// server, and a NIC on the rack's network. Its cache fetches the image from the office.
#[test]
fn a_box_between_office_and_rack_installs_a_machine() {
    let folder = tempfile::tempdir().unwrap();
    let config = RackConfig::new("office-and-rack").nuc(NucConfig::uefi());
    let rack = ImageRack::start(&made(folder.path()), config).unwrap();
    rack.watch_console("claim this box at HTTPS://10.78.", |_| {}).unwrap();
    let (claimed, _) = rack.claim().unwrap();
    let tinbox = |words: &[&str]| output(rack.tinbox(&claimed, words).unwrap()).unwrap();
    rack.push_nuc(&claimed, 1, ("ssh-ed25519 AAAA owner", USER_DATA)).unwrap();
    rack.push_debian(&claimed).unwrap();
    let create = ["workflow", "create", "--template", "debian", "--hardware", "nuc1"];
    tinbox(&[&create[..], &["--name", "install", "--wait", "--timeout", "40m"]].concat());
    let nuc = rack.rack.nuc(1);
    nuc.serial().wait_for("HOST=nuc1 KEYS=1", WHOLE).unwrap();
    let home = || tinbox(&["machine", "history", "nuc1"]).contains("phoned home as nuc1");
    poll("Debian to phone home", WHOLE, || home().then_some(())).unwrap();
    rack.succeed();
}
