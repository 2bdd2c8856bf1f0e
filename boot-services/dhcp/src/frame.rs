//! An IPv4 datagram around a UDP payload, for clients that cannot answer ARP yet.

use std::net::Ipv4Addr;

const IP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
const UDP: u8 = 17;
const HOPS: u8 = 64;

/// The datagram, both checksums filled in; `None` when the payload is too long for one.
///
/// Made here, the checksum is never left to an interface's offload, which firmware behind a virtual
/// interface would see unfinished.
pub(crate) fn datagram(
    from: (Ipv4Addr, u16),
    to: (Ipv4Addr, u16),
    payload: &[u8],
) -> Option<Vec<u8>> {
    let udp_length = u16::try_from(UDP_HEADER + payload.len()).ok()?;
    let length = u16::try_from(IP_HEADER + UDP_HEADER + payload.len()).ok()?;
    let mut bytes = Vec::with_capacity(usize::from(length));
    bytes.extend([0x45, 0]);
    bytes.extend(length.to_be_bytes());
    bytes.extend([0, 0, 0x40, 0, HOPS, UDP, 0, 0]);
    bytes.extend(from.0.octets());
    bytes.extend(to.0.octets());
    let sum = checksum(&[&bytes]);
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());

    bytes.extend(from.1.to_be_bytes());
    bytes.extend(to.1.to_be_bytes());
    bytes.extend(udp_length.to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend_from_slice(payload);
    // RFC 768's pseudo header: addresses, protocol, length.
    let [high, low] = udp_length.to_be_bytes();
    let sum = match checksum(&[&bytes[12..], &[0, UDP, high, low]]) {
        0 => 0xffff,
        sum => sum,
    };
    bytes[IP_HEADER + 6..IP_HEADER + 8].copy_from_slice(&sum.to_be_bytes());
    Some(bytes)
}

/// The Internet checksum (RFC 1071) over all parts, a part of odd length padded with a zero byte.
fn checksum(parts: &[&[u8]]) -> u16 {
    let sum: u64 = parts
        .iter()
        .flat_map(|part| part.chunks(2))
        .map(|pair| u64::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])))
        .sum();
    let folded = (0..4).fold(sum, |sum, _| (sum & 0xffff) + (sum >> 16));
    !u16::try_from(folded).expect("four folds leave sixteen bits")
}

#[cfg(test)]
mod tests {
    use super::{checksum, datagram};

    #[test]
    fn sums_to_zero_for_even_and_odd_payloads() {
        for payload in [&b"abcd"[..], b"abc", b""] {
            let from = ([10, 77, 0, 1].into(), 67);
            let bytes = datagram(from, ([255, 255, 255, 255].into(), 68), payload).unwrap();
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
        let end = ([0, 0, 0, 0].into(), 0);
        assert!(datagram(end, end, &vec![0; 65_508]).is_none());
        assert!(datagram(end, end, &vec![0; 65_507]).is_some());
    }
}
