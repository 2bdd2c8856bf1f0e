//! RMCP presence ping of the Alert Standard Format (ASF 2.0 §3.2.4). Management engines and IPMI
//! BMCs answer it without a session.

/// UDP port of RMCP (ASF 2.0 §3.2.1).
pub const PORT: u16 = 623;
/// RMCP version 1.0, a reserved byte, no acknowledgment (sequence number 0xff), class ASF.
const RMCP: [u8; 4] = [0x06, 0x00, 0xff, 0x06];
/// Enterprise number of ASF, the first field of each ASF message.
const ASF: [u8; 4] = 4542_u32.to_be_bytes();
/// Message type of a presence ping.
const PING: u8 = 0x80;
/// Message type of the answer to a presence ping.
const PONG: u8 = 0x40;
/// Bytes of data in a pong.
const PONG_DATA: u8 = 16;
/// Enterprise number of Intel, which Intel AMT puts into its pong.
const INTEL: [u8; 4] = 343_u32.to_be_bytes();
/// Bit of the supported entities: IPMI.
const ENTITY_IPMI: u8 = 0x80;
/// Bit of the supported interactions: DASH, which Intel AMT sets.
const INTERACTION_DASH: u8 = 0x20;

/// Returns a presence ping. The pong has the same `tag`.
pub fn ping(tag: u8) -> [u8; 12] {
    let mut ping = [0; 12];
    ping[..4].copy_from_slice(&RMCP);
    ping[4..8].copy_from_slice(&ASF);
    ping[8..10].copy_from_slice(&[PING, tag]);
    ping
}

/// Answer to a presence ping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pong {
    /// True if the device has an IPMI BMC.
    pub has_ipmi: bool,
    /// Data of Intel AMT; `None` for another device.
    pub amt: Option<AmtPong>,
}

/// Data of Intel AMT in a pong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AmtPong {
    /// TCP port of WS-Management: 16992 or 16993. 0 if the firmware reports another number.
    pub port: u16,
    /// Version, major and minor. The major number has four bits: a version above 15 is wrong.
    pub version: (u8, u8),
    /// True after the activation of AMT.
    pub is_provisioned: bool,
}

impl Pong {
    /// Reads the pong with this `tag`; `None` for any other datagram.
    pub fn parse(datagram: &[u8], tag: u8) -> Option<Self> {
        let pong: &[u8; 28] = datagram.get(..28)?.try_into().ok()?;
        let is_pong = pong[0] == RMCP[0]
            && pong[3] == RMCP[3]
            && pong[4..8] == ASF
            && pong[8..10] == [PONG, tag]
            && pong[11] >= PONG_DATA;
        if !is_pong {
            return None;
        }
        let is_amt = pong[12..16] == INTEL && pong[21] & INTERACTION_DASH != 0;
        let port = u16::from_be_bytes([pong[16], pong[17]]);
        let amt = AmtPong {
            port: if matches!(port, 16992 | 16993) { port } else { 0 },
            version: (pong[18] >> 4, pong[18] & 0x0f),
            is_provisioned: pong[19] & 0x03 == 2,
        };
        Some(Self { has_ipmi: pong[20] & ENTITY_IPMI != 0, amt: is_amt.then_some(amt) })
    }
}

#[cfg(test)]
mod tests {
    use super::{AmtPong, Pong, ping};

    fn pong(data: [u8; 16]) -> Vec<u8> {
        let head = [0x06, 0, 0xff, 0x06, 0, 0, 0x11, 0xbe, 0x40, 7, 0, 16];
        [&head[..], &data].concat()
    }

    #[test]
    fn a_ping_has_the_bytes_of_the_standard() {
        assert_eq!(ping(7), [0x06, 0, 0xff, 0x06, 0, 0, 0x11, 0xbe, 0x80, 7, 0, 0]);
    }

    #[test]
    fn the_pong_of_an_ipmi_bmc_and_of_amt() {
        let ipmi = pong([0, 0, 0x11, 0xbe, 0, 0, 0, 0, 0x81, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Pong::parse(&ipmi, 7), Some(Pong { has_ipmi: true, amt: None }));
        let amt = pong([0, 0, 0x01, 0x57, 0x42, 0x60, 0xc0, 0x02, 0x01, 0x20, 0, 0, 0, 0, 0, 0]);
        let found = AmtPong { port: 16992, version: (12, 0), is_provisioned: true };
        assert_eq!(Pong::parse(&amt, 7), Some(Pong { has_ipmi: false, amt: Some(found) }));
    }

    #[test]
    fn another_datagram_is_not_a_pong() {
        let good = pong([0; 16]);
        assert!(Pong::parse(&good, 7).is_some());
        assert_eq!(Pong::parse(&good, 8), None, "the answer to another ping");
        for length in 0..good.len() {
            assert_eq!(Pong::parse(&good[..length], 7), None, "{length}");
        }
        for place in [0, 3, 4, 7, 8, 11] {
            let mut bad = good.clone();
            bad[place] ^= 0x10;
            assert_eq!(Pong::parse(&bad, 7), None, "byte {place}");
        }
    }
}
