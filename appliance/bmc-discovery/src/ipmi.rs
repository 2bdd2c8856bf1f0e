//! System GUID of an IPMI BMC, read without a session (IPMI 2.0 §22.14 and table G-1).

use stdx::hex;

/// RMCP header with class IPMI, then an IPMI 1.5 session header without a session (§13.6).
const HEADER: [u8; 13] = [0x06, 0x00, 0xff, 0x07, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// Address of the BMC (§5.5).
const BMC: u8 = 0x20;
/// Address of the remote console (§13.8).
const CONSOLE: u8 = 0x81;
/// Network function `App` of requests, in the upper six bits.
const APP_REQUEST: u8 = 0x06 << 2;
/// Network function `App` of responses, in the upper six bits.
const APP_RESPONSE: u8 = 0x07 << 2;
/// Number of the command `Get System GUID`.
const GET_SYSTEM_GUID: u8 = 0x37;
/// Bytes of a GUID.
const GUID: usize = 16;

/// Returns the request `Get System GUID`. `sequence` is below 64.
pub fn guid_request(sequence: u8) -> Vec<u8> {
    let body = [CONSOLE, sequence << 2, GET_SYSTEM_GUID];
    let mut message = vec![BMC, APP_REQUEST];
    message.push(checksum(&message));
    message.extend(body);
    message.push(checksum(&body));
    let mut datagram = HEADER.to_vec();
    datagram.push(u8::try_from(message.len()).unwrap_or(u8::MAX));
    datagram.extend(message);
    datagram
}

/// Reads the response with this `sequence`; `None` for any other datagram, an error of the BMC, or
/// a GUID of equal bytes, which is a placeholder.
pub fn guid_response(datagram: &[u8], sequence: u8) -> Option<[u8; GUID]> {
    let (header, rest) = datagram.split_at_checked(HEADER.len())?;
    if header[0] != HEADER[0] || header[3] != HEADER[3] || header[4] != 0 {
        return None;
    }
    let (length, message) = rest.split_first()?;
    let message = message.get(..usize::from(*length))?;
    let [console, function, head_sum, bmc, order, command, code, data @ ..] = message else {
        return None;
    };
    let is_response = [*console, *function, *bmc] == [CONSOLE, APP_RESPONSE, BMC]
        && *head_sum == checksum(&message[..2])
        && *order >> 2 == sequence
        && [*command, *code] == [GET_SYSTEM_GUID, 0];
    let (guid, sum) = data.split_first_chunk::<GUID>()?;
    if !is_response || sum != [checksum(&message[3..message.len() - 1])] {
        return None;
    }
    guid.iter().any(|byte| *byte != guid[0]).then_some(*guid)
}

/// Returns the two's complement of the sum (§13.8).
fn checksum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)).wrapping_neg()
}

/// Returns the GUID as UUIDs in the three byte orders that BMCs use: as stored, wholly reversed
/// (the standard's), and with the first three fields reversed (SMBIOS).
pub fn uuids(guid: [u8; GUID]) -> [String; 3] {
    let mut reversed = guid;
    reversed.reverse();
    let mut smbios = guid;
    smbios[..4].reverse();
    smbios[4..6].reverse();
    smbios[6..8].reverse();
    [guid, reversed, smbios].map(|bytes| {
        let digits = hex(&bytes);
        let (a, b, c) = (&digits[..8], &digits[8..12], &digits[12..16]);
        format!("{a}-{b}-{c}-{}-{}", &digits[16..20], &digits[20..])
    })
}

#[cfg(test)]
mod tests {
    use super::{checksum, guid_request, guid_response, uuids};

    fn response(guid: [u8; 16]) -> Vec<u8> {
        let mut message = vec![0x81, 0x1c, 0x63, 0x20, 5 << 2, 0x37, 0];
        message.extend(guid);
        message.push(checksum(&message[3..]));
        let mut datagram = vec![6, 0, 0xff, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        datagram.push(message.len().try_into().unwrap());
        datagram.extend(message);
        datagram
    }

    const GUID: [u8; 16] =
        [0, 17, 34, 51, 68, 85, 102, 119, 136, 153, 170, 187, 204, 221, 238, 255];

    #[test]
    fn the_request_has_both_checksums() {
        assert_eq!(
            guid_request(5)[13..],
            [7, 0x20, 0x18, 0xc8, 0x81, 0x14, 0x37, 0x34],
            "RMCP and session header are before"
        );
    }

    #[test]
    fn a_guid_is_read_and_a_damaged_one_is_not() {
        let good = response(GUID);
        assert_eq!(guid_response(&good, 5), Some(GUID));
        assert_eq!(guid_response(&good, 6), None);
        assert_eq!(guid_response(&response([0xff; 16]), 5), None, "a placeholder");
        for length in 0..good.len() {
            assert_eq!(guid_response(&good[..length], 5), None, "{length}");
        }
        for place in 13..good.len() {
            let mut bad = good.clone();
            bad[place] ^= 0x40;
            assert_eq!(guid_response(&bad, 5), None, "byte {place}");
        }
    }

    #[test]
    fn a_guid_has_three_readings() {
        assert_eq!(
            uuids(GUID),
            [
                "00112233-4455-6677-8899-aabbccddeeff",
                "ffeeddcc-bbaa-9988-7766-554433221100",
                "33221100-5544-7766-8899-aabbccddeeff",
            ]
        );
    }
}
