//! Test that receives an LLDP frame over a veth pair, in a separate network namespace.

use std::process::Command;
use std::time::Duration;

use inventory::listen;
use stdx::testing::wait_for;

/// Environment variable that marks the test process inside the network namespace.
const INSIDE: &str = "TINBOX_NEIGHBORS_INSIDE";
/// Script that creates a veth pair, and sends a switch's LLDP frame on one end until the test ends.
const NAMESPACE: &str = r#"
set -e
mount -t sysfs sysfs /sys
ip link add nuc type veth peer name switch
ip link set nuc up
ip link set switch up
python3 - <<'END' &
import socket, struct, time
def part(kind, value): return struct.pack("!H", kind << 9 | len(value)) + value
frame = bytes.fromhex("0180c200000e" "5254007700aa" "88cc")
frame += part(1, b"\x07rack7") + part(2, b"\x05ge-0/0/7") + part(3, b"\x00\x78")
frame += part(5, b"rack7-switch") + part(0, b"")
sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sock.bind(("switch", 0))
while True:
    sock.send(frame)
    time.sleep(0.2)
END
"$0" --exact neighbors::a_switch_is_heard --nocapture
"#;

#[test]
fn a_switch_is_heard() {
    if std::env::var_os(INSIDE).is_some() {
        // The switch may not have sent a frame yet.
        let neighbors = wait_for("the switch", || {
            let neighbors = listen(Duration::from_secs(3));
            neighbors.contains_key("nuc").then_some(neighbors)
        });
        let neighbor = &neighbors["nuc"];
        assert_eq!(
            (neighbor.system.as_str(), neighbor.port.as_str()),
            ("rack7-switch", "ge-0/0/7")
        );
        // The switch's interface must not receive its own frame as a neighbor's.
        assert_eq!(neighbors.len(), 1, "{neighbors:?}");
        return;
    }
    let itself = std::env::current_exe().unwrap();
    // All processes end with this test, also when the test is killed.
    let mut unshare = Command::new("setpriv");
    unshare.args(["--pdeathsig", "KILL", "unshare", "--net", "--pid", "--fork", "--kill-child"]);
    unshare.args(["--mount-proc", "bash", "-c", NAMESPACE]).arg(itself).env(INSIDE, "1");
    let output = unshare.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}\n{error}");
}
