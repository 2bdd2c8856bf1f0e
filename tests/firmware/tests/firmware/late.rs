//! A flashed box in late or wrong surroundings: its cable is unplugged, the NIC of its rack is not
//! present yet, and the only time server says that it is 2007.

use std::path::Path;
use std::process::{Child, Stdio};

use firmware::{FIRST_LINE, PATIENCE, boot_volume, run};
use qemu::{Bus, Drive, Host, Mark, Nic, Rack, RackConfig, Segment, poll};
use stdx::MacAddr;

use super::made;

const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0x1a, 0]);
const LATE: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0x1a, 1]);
/// Linux calls a USB NIC with such an address `usb0`.
const BOX_TOML: &str = "[[management]]\n\
    interface = \"eth0\"\n\
    address = \"10.77.0.9/24\"\n\
    [[network]]\n\
    interface = \"usb0\"\n\
    address = \"10.78.0.9/24\"\n\
    mode = \"reserved\"\n\
    [time]\n\
    servers = [\"10.77.0.250\"]\n";

/// A program that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `Some` if any server answers at the URL.
fn answers(host: &Host, url: &str) -> Option<()> {
    let mut curl = host.command("curl");
    run(curl.args(["-sk", "--max-time", "5", "--output", "/dev/null", url])).ok().map(drop)
}

#[test]
fn a_box_starts_without_its_cables_and_serves_what_comes_and_believes_no_date_of_long_ago() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    made(folder.path()).copy(&disk).unwrap();
    boot_volume::put(&disk, "box.toml", BOX_TOML.as_bytes()).unwrap();
    let rack = Rack::build(RackConfig::new("late")).unwrap();
    let owner = rack.add_host("owner", &[(Segment::Near, [10, 77, 0, 250].into())]).unwrap();
    let machine = rack.add_host("machine", &[(Segment::Far, [10, 78, 0, 250].into())]).unwrap();
    let mut time = owner.command("/usr/bin/python3");
    time.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/old_time.py"));
    let _time = Server(time.stdin(Stdio::null()).spawn().unwrap());

    let card = (Segment::Near, Nic::E1000, MAC);
    let mut board = rack.add_board(&Drive::new(&disk, Bus::Usb), card).unwrap();
    board.plug(0, false).unwrap();
    let (_, mark) = board.serial().wait_for_after(Mark::START, FIRST_LINE, PATIENCE).unwrap();
    let waits = "problem: .* is not served on usb0";
    board.serial().wait_for_after(Mark::START, waits, PATIENCE).unwrap();

    rack.put_in(&mut board, (Segment::Far, LATE)).unwrap();
    board.serial().wait_for_after(mark, "over: fault/NetworkWaits/usb0", PATIENCE).unwrap();
    let boot_files = "http://10.78.0.9:7080/";
    poll("the late card to be served", PATIENCE, || answers(&machine, boot_files)).unwrap();

    assert!(answers(&owner, "http://10.77.0.9/ca.pem").is_none(), "its cable is out");
    board.plug(0, true).unwrap();
    let page = "http://10.77.0.9/ca.pem";
    poll("the box to answer by its cable", PATIENCE, || answers(&owner, page)).unwrap();
    board.serial().wait_for_after(mark, "refused an impossible date", PATIENCE).unwrap();
    let lines = board.serial().lines();
    assert!(lines.iter().all(|line| !line.text.contains("the clock is set")), "{lines:?}");
    rack.succeed();
}
