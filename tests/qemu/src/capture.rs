//! Capture of the rack's bridge: a tcpdump, and the UDP datagrams in its file.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process};
use stdx::MacAddr;
use stdx::testing::PATIENCE;

use crate::namespace::Namespace;
use crate::{DhcpKind, DhcpMessage, Error, children, poll};

/// A running tcpdump, ended when dropped.
#[derive(Debug)]
pub struct Capture {
    child: Child,
    path: PathBuf,
}

impl Capture {
    pub(crate) fn start(
        rack: &Namespace,
        bridge: &str,
        filter: &str,
        path: PathBuf,
    ) -> Result<Self, Error> {
        let mut command = rack.command("tcpdump");
        // -U and immediate mode: a packet is written to the file as soon as it is captured.
        command.args(["-i", bridge, "-U", "--immediate-mode", "-Z", "root", "-w"]).arg(&path);
        command.args(filter.split_whitespace());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = children::spawn(command).map_err(Error::io("start tcpdump"))?;
        let mut said = String::new();
        let mut ready = false;
        if let Some(errors) = child.stderr.take() {
            let mut errors = BufReader::new(errors);
            while !ready && matches!(errors.read_line(&mut said), Ok(1..)) {
                ready = said.contains("listening on");
            }
            // The pipe stays open and empty: tcpdump reports its counts there when it ends.
            std::thread::spawn(move || std::io::copy(&mut errors, &mut std::io::sink()));
        }
        let capture = Self { child, path };
        if ready {
            return Ok(capture);
        }
        Err(Error::Command { command: format!("tcpdump {filter}"), outcome: said })
    }

    /// The pcap file; it always contains every packet up to now.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The UDP datagrams captured so far.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn datagrams(&self) -> Result<Vec<Datagram>, Error> {
        read_datagrams(&self.path)
    }

    /// The DHCP messages captured so far.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn dhcp(&self) -> Result<Vec<DhcpMessage>, Error> {
        Ok(self.datagrams()?.iter().filter_map(DhcpMessage::read).collect())
    }

    /// The DHCP messages of one kind that `server` (option 54) has sent so far, `since` included.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn answers(
        &self,
        server: Ipv4Addr,
        kind: DhcpKind,
        since: SystemTime,
    ) -> Result<Vec<DhcpMessage>, Error> {
        let mut messages = self.dhcp()?;
        messages.retain(|it| it.kind == kind && it.server() == Some(server) && it.at() >= since);
        Ok(messages)
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // An interrupt lets tcpdump write its buffer; a process that remains is killed below.
            let _ = kill_process(pid, Signal::INT);
            let _ = poll("tcpdump to end", PATIENCE, || self.child.try_wait().ok().flatten());
        }
        children::end(&mut self.child);
    }
}

/// One UDP datagram over IPv4.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datagram {
    /// Time at which the datagram crossed the bridge.
    pub at: SystemTime,
    /// MAC address of the sender.
    pub from: MacAddr,
    /// Source address and UDP port.
    pub source: SocketAddrV4,
    /// Destination address and UDP port.
    pub target: SocketAddrV4,
    /// Payload of the UDP datagram.
    pub payload: Vec<u8>,
}

/// Reads the UDP datagrams of a pcap file (the classic format: 24 bytes of header, then per packet
/// seconds, microseconds, captured and original length as little-endian 32 bits, and the bytes).
/// Fragments are left out, and so is a last packet that is not completely written yet.
///
/// # Errors
/// The file cannot be read.
pub fn read_datagrams(path: &Path) -> Result<Vec<Datagram>, Error> {
    let bytes = fs::read(path).map_err(Error::path("read", path))?;
    let mut rest = bytes.get(24..).unwrap_or_default();
    let mut found = Vec::new();
    while let Some((header, tail)) = rest.split_at_checked(16) {
        let word = |index: usize| {
            let bytes = header.get(index * 4..index * 4 + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?))
        };
        let (Some(seconds), Some(micros), Some(length)) = (word(0), word(1), word(2)) else {
            break;
        };
        let Some((frame, tail)) = tail.split_at_checked(length as usize) else { break };
        rest = tail;
        let since = Duration::from_secs(seconds.into()) + Duration::from_micros(micros.into());
        found.extend(datagram(UNIX_EPOCH + since, frame));
    }
    Ok(found)
}

/// Reads a frame of Ethernet II, IPv4 (RFC 791 section 3.1) and UDP (RFC 768); `None` for any other
/// frame, and for a fragment.
fn datagram(at: SystemTime, frame: &[u8]) -> Option<Datagram> {
    let from = MacAddr(frame.get(6..12)?.try_into().ok()?);
    let packet = frame.get(14..).filter(|_| frame.get(12..14) == Some(&[0x08, 0x00]))?;
    let header = usize::from(packet.first()? & 0x0f) * 4;
    let fragment = u16::from_be_bytes(packet.get(6..8)?.try_into().ok()?) & 0x3fff;
    if *packet.get(9)? != 17 || fragment != 0 {
        return None;
    }
    let address = |at: usize| {
        let octets: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
        Some(Ipv4Addr::from(octets))
    };
    let udp = packet.get(header..)?;
    let port = |at: usize| Some(u16::from_be_bytes(udp.get(at..at + 2)?.try_into().ok()?));
    let length = usize::from(port(4)?);
    Some(Datagram {
        at,
        from,
        source: SocketAddrV4::new(address(12)?, port(0)?),
        target: SocketAddrV4::new(address(16)?, port(2)?),
        payload: udp.get(8..length)?.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(payload: &[u8], fragment: u8) -> Vec<u8> {
        let mut frame = vec![0xff; 6];
        frame.extend([0x52, 0x54, 0, 0x77, 0, 1, 0x08, 0x00]);
        frame.extend([0x45, 0, 0, 0, 0, 0, fragment, 0, 64, 17, 0, 0]);
        frame.extend([0, 0, 0, 0, 255, 255, 255, 255]);
        frame.extend([0, 68, 0, 67, 0, 8 + payload.len() as u8, 0, 0]);
        frame.extend(payload);
        // Ethernet pads short frames; the UDP length must win.
        frame.extend([0; 10]);
        frame
    }

    #[test]
    fn a_datagram_is_read_and_padding_is_not() {
        let read = datagram(UNIX_EPOCH, &frame(b"hello", 0)).expect("a datagram");
        assert_eq!(read.from, MacAddr([0x52, 0x54, 0, 0x77, 0, 1]));
        assert_eq!((read.source.port(), read.target.port()), (68, 67));
        assert_eq!(*read.target.ip(), Ipv4Addr::BROADCAST);
        assert_eq!(read.payload, b"hello");
    }

    #[test]
    fn fragments_and_every_truncation_are_left_out() {
        assert_eq!(datagram(UNIX_EPOCH, &frame(b"hello", 0x20)), None);
        let whole = frame(b"hello", 0);
        for length in 0..whole.len() - 10 {
            assert_eq!(datagram(UNIX_EPOCH, whole.get(..length).expect("shorter")), None);
        }
    }

    #[test]
    fn a_file_cut_in_the_middle_gives_what_is_whole() {
        let packet = frame(b"hello", 0);
        let mut file = vec![0; 24];
        for _ in 0..2 {
            for word in [7u32, 5, packet.len() as u32, packet.len() as u32] {
                file.extend(word.to_le_bytes());
            }
            file.extend(&packet);
        }
        file.pop();
        let path = std::env::temp_dir().join(format!("tinbox-capture-{}", std::process::id()));
        fs::write(&path, &file).expect("write the file");
        let read = read_datagrams(&path);
        fs::remove_file(&path).expect("remove the file");
        let read = read.expect("read the file");
        assert_eq!(read.len(), 1);
        let at = read.first().expect("one").at.duration_since(UNIX_EPOCH).expect("after 1970");
        assert_eq!(at, Duration::new(7, 5000));
    }
}
