//! LLDP neighbors of the network interfaces (IEEE 802.1AB). A switch sends its identity every 30 s.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::time::{Duration, Instant};

use agent_rpc::Neighbour;
use platform::net::lldp_socket;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use stdx::MacAddr;

use super::{bounded, folders, name, read};

/// Maximum number of interfaces to listen on.
const INTERFACES_MAX: usize = 16;
/// Maximum length of an LLDP frame in bytes.
const FRAME: usize = 1500;
/// Default listening time: the 30 s interval of switches, plus 5 s.
pub const LISTEN: Duration = Duration::from_secs(35);

/// TLV types of LLDP. The values of chassis id and port id begin with a subtype (8.5.2.2, 8.5.3.2).
const CHASSIS: u16 = 1;
const PORT: u16 = 2;
const PORT_DESCRIPTION: u16 = 4;
const SYSTEM_NAME: u16 = 5;
const CHASSIS_IS_MAC: u8 = 4;
const PORT_IS_MAC: u8 = 3;

/// Listens on all Ethernet interfaces with a link until each has received a neighbor's frame, or
/// for `limit`. Blocks. Returns the neighbors by interface name.
pub fn listen(limit: Duration) -> BTreeMap<String, Neighbour> {
    let mut neighbors = BTreeMap::new();
    let mut open = Vec::new();
    for path in folders("/sys/class/net").into_iter().take(INTERFACES_MAX) {
        let is_ethernet = read(&path.join("type")).as_deref() == Some("1");
        let has_link = read(&path.join("carrier")).as_deref() == Some("1");
        let index = read(&path.join("ifindex")).and_then(|text| text.parse().ok());
        if let (true, true, Some(index), Some(name)) = (is_ethernet, has_link, index, name(&path)) {
            match lldp_socket(index) {
                Ok(socket) => open.push((name, socket)),
                Err(error) => tracing::debug!(name, %error, "cannot listen for neighbors"),
            }
        }
    }
    let deadline = Instant::now() + limit;
    while !open.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut waiting: Vec<PollFd<'_>> =
            open.iter().map(|(_, socket)| PollFd::new(socket, PollFlags::IN)).collect();
        let wait = Timespec::try_from(left).ok();
        if left.is_zero() || !poll(&mut waiting, wait.as_ref()).is_ok_and(|ready| ready > 0) {
            break;
        }
        let ready: Vec<bool> = waiting.iter().map(|it| !it.revents().is_empty()).collect();
        let mut at = 0;
        open.retain_mut(|(name, socket)| {
            at += 1;
            if !ready[at - 1] {
                return true;
            }
            let mut frame = [0; FRAME];
            // A removed interface receives no more frames.
            let Ok(length) = socket.read(&mut frame) else { return false };
            match neighbor(&frame[..length]) {
                Some(neighbor) => {
                    neighbors.insert(name.clone(), neighbor);
                    false
                }
                None => true,
            }
        });
    }
    neighbors
}

/// Parses an LLDP frame, without its Ethernet header. Returns `None` for an invalid frame.
pub fn neighbor(mut frame: &[u8]) -> Option<Neighbour> {
    let mut neighbor = Neighbour::default();
    let mut is_whole = false;
    // Each value follows seven bits of type and nine bits of length.
    while let Some((head, rest)) = frame.split_first_chunk::<2>() {
        let head = u16::from_be_bytes(*head);
        let (value, rest) = rest.split_at_checked(usize::from(head & 0x1ff))?;
        match head >> 9 {
            0 => break,
            CHASSIS => neighbor.chassis = id(value, CHASSIS_IS_MAC)?,
            PORT => {
                neighbor.port = id(value, PORT_IS_MAC)?;
                is_whole = !neighbor.chassis.is_empty();
            }
            PORT_DESCRIPTION => neighbor.port_description = text(value),
            SYSTEM_NAME => neighbor.system = text(value),
            _ => {}
        }
        frame = rest;
    }
    is_whole.then_some(neighbor)
}

/// Parses a chassis id or port id: a subtype, then a MAC address if the subtype is `is_mac`, else a
/// text.
fn id(value: &[u8], is_mac: u8) -> Option<String> {
    let (kind, value) = value.split_first()?;
    match <[u8; 6]>::try_from(value) {
        Ok(mac) if *kind == is_mac => Some(MacAddr(mac).to_string()),
        _ => Some(text(value)),
    }
}

fn text(value: &[u8]) -> String {
    bounded(&String::from_utf8_lossy(value))
}

#[cfg(test)]
mod tests {
    use super::neighbor;

    fn part(kind: u16, value: &[u8]) -> Vec<u8> {
        let head = kind << 9 | u16::try_from(value.len()).unwrap();
        [&head.to_be_bytes(), value].concat()
    }

    fn frame() -> Vec<u8> {
        [
            part(1, &[4, 0x52, 0x54, 0, 0x77, 0xff, 1]),
            part(2, b"\x05ge-0/0/7"),
            part(3, &[0, 120]),
            part(4, b"to nuc1"),
            part(5, b"rack7-switch\n"),
            part(0, &[]),
            b"padding".to_vec(),
        ]
        .concat()
    }

    #[test]
    fn a_switch_is_known_by_its_words() {
        let found = neighbor(&frame()).unwrap();
        assert_eq!(
            (found.chassis.as_str(), found.port.as_str()),
            ("52:54:00:77:ff:01", "ge-0/0/7")
        );
        assert_eq!(found.system, "rack7-switch");
        assert_eq!(found.port_description, "to nuc1");
        let by_mac = [part(1, b"\x07sw"), part(2, &[3, 2, 0, 0, 0, 0, 9]), part(0, &[])].concat();
        assert_eq!(neighbor(&by_mac).unwrap().port, "02:00:00:00:00:09");
    }

    #[test]
    fn what_is_no_such_frame_is_nobody() {
        let frame = frame();
        for cut in 0..frame.len() {
            let _ = neighbor(&frame[..cut]);
        }
        for bytes in [&[][..], &[0, 0], &part(2, b"\x05x"), &part(1, &[]), &[0xff; 40]] {
            assert_eq!(neighbor(bytes), None, "{bytes:?}");
        }
    }
}
