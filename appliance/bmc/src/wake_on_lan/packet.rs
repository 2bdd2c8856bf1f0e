//! Payload of a magic packet (AMD publication 20213): six bytes FF, the hardware address 16 times,
//! and the SecureOn password if there is one.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use stdx::MacAddr;

use crate::Error;

/// Repetitions of the hardware address.
const REPETITIONS: usize = 16;

/// SecureOn password of a NIC: six bytes, or four, as the NIC has them. Text forms are
/// `aa:bb:cc:dd:ee:ff`, `aa:bb:cc:dd` and `192.0.2.1`, as of ethtool and etherwake.
#[derive(Clone, PartialEq, Eq)]
pub struct SecureOn(Vec<u8>);

impl fmt::Debug for SecureOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecureOn(..)")
    }
}

impl FromStr for SecureOn {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Ok(Self(address.octets().to_vec()));
        }
        let pairs = text.split([':', '-']);
        let byte = |pair: &str| {
            let is_pair = pair.len() == 2 && pair.bytes().all(|byte| byte.is_ascii_hexdigit());
            u8::from_str_radix(pair, 16).ok().filter(|_| is_pair)
        };
        let bytes: Option<Vec<u8>> = pairs.map(byte).collect();
        bytes.filter(|bytes| matches!(bytes.len(), 4 | 6)).map(Self).ok_or(Error::InvalidSecureOn)
    }
}

/// Returns the payload of a magic packet: 102 bytes, or 106 or 108 with a password.
pub fn magic_packet(mac: MacAddr, secure_on: Option<&SecureOn>) -> Vec<u8> {
    let mut packet = vec![0xFF; 6];
    packet.extend(mac.0.repeat(REPETITIONS));
    packet.extend(secure_on.iter().flat_map(|password| &password.0));
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0, 1]);

    #[test]
    fn a_packet_has_the_address_sixteen_times_after_six_bytes_of_ones() {
        let packet = magic_packet(MAC, None);
        let text: String = packet.iter().map(|byte| format!("{byte:02x}")).collect();
        let expected = format!("ffffffffffff{}", "525400770001".repeat(16));
        assert_eq!((packet.len(), text), (102, expected));
    }

    #[test]
    fn a_password_of_four_or_six_bytes_ends_the_packet() {
        for (text, length, end) in [
            ("aa:bb:cc:dd:ee:0f", 108, &[0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0x0f][..]),
            ("AA-BB-CC-DD-EE-0F\n", 108, &[0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0x0f]),
            ("00:11:22:33", 106, &[0, 0x11, 0x22, 0x33]),
            ("192.0.2.7", 106, &[192, 0, 2, 7]),
        ] {
            let password: SecureOn = text.parse().unwrap();
            let packet = magic_packet(MAC, Some(&password));
            assert_eq!((packet.len(), &packet[102..]), (length, end), "{text}");
            assert_eq!(packet[..102], magic_packet(MAC, None));
        }
    }

    #[test]
    fn another_text_is_not_a_password() {
        for text in ["", "aa", "aa:bb:cc:dd:ee", "aa:bb:cc:dd:ee:fg", "+a:bb:cc:dd", "aabbccdd"] {
            assert!(matches!(text.parse::<SecureOn>(), Err(Error::InvalidSecureOn)), "{text}");
        }
    }
}
