//! IPv4 datagram around a UDP payload, for clients that cannot answer ARP yet.

use std::net::SocketAddrV4;

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{IpProtocol, Ipv4Packet, Ipv4Repr, UdpPacket, UdpRepr};

const IP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
const HOPS: u8 = 64;

/// Returns the IPv4 datagram with both checksums; `None` if the payload is too long.
///
/// The UDP checksum is computed here, not left to the interface's offload. Firmware behind a
/// virtual interface would otherwise receive an incomplete checksum.
pub(crate) fn datagram(
    source: SocketAddrV4,
    target: SocketAddrV4,
    payload: &[u8],
) -> Option<Vec<u8>> {
    let length = IP_HEADER + UDP_HEADER + payload.len();
    u16::try_from(length).ok()?;
    let mut bytes = vec![0; length];
    let sums = ChecksumCapabilities::default();
    let ip = Ipv4Repr {
        src_addr: *source.ip(),
        dst_addr: *target.ip(),
        next_header: IpProtocol::Udp,
        payload_len: UDP_HEADER + payload.len(),
        hop_limit: HOPS,
    };
    ip.emit(&mut Ipv4Packet::new_unchecked(&mut bytes), &sums);
    UdpRepr { src_port: source.port(), dst_port: target.port() }.emit(
        &mut UdpPacket::new_unchecked(&mut bytes[IP_HEADER..]),
        &(*source.ip()).into(),
        &(*target.ip()).into(),
        payload.len(),
        |body| body.copy_from_slice(payload),
        &sums,
    );
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::datagram;

    /// Internet checksum (RFC 1071) over all parts; a part of odd length is padded with a zero
    /// byte. The test computes it independently, because the code uses a library.
    fn checksum(parts: &[&[u8]]) -> u16 {
        let pairs = parts.iter().flat_map(|part| part.chunks(2));
        let words =
            pairs.map(|pair| u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
        let sum: u64 = words.map(u64::from).sum();
        let folded = (0..4).fold(sum, |sum, _| (sum & 0xffff) + (sum >> 16));
        !u16::try_from(folded).unwrap()
    }

    #[test]
    fn sums_to_zero_for_even_and_odd_payloads() {
        for payload in [&b"abcd"[..], b"abc", b""] {
            let source = "10.77.0.1:67".parse().unwrap();
            let target = "255.255.255.255:68".parse().unwrap();
            let bytes = datagram(source, target, payload).unwrap();
            assert_eq!(checksum(&[&bytes[..20]]), 0);
            let [high, low] = u16::try_from(bytes.len() - 20).unwrap().to_be_bytes();
            assert_eq!(checksum(&[&bytes[12..], &[0, 17, high, low]]), 0);
            assert_eq!(&bytes[28..], payload);
        }
    }

    #[test]
    fn rfc_1071_example() {
        assert_eq!(checksum(&[&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]]), !0xddf2);
    }

    #[test]
    fn a_payload_beyond_one_datagram_is_refused() {
        let end = "0.0.0.0:0".parse().unwrap();
        assert!(datagram(end, end, &vec![0; 65_508]).is_none());
        assert!(datagram(end, end, &vec![0; 65_507]).is_some());
    }
}
