//! Encoding of DHCP options: their places in a message, and values that are split into parts.
//!
//! Sources: RFC 2131 §4.1 (fields), RFC 2132 §9.3 (option 52, overload), RFC 3396 (values in
//! several parts).

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use crate::messages::request::Malformed;

/// Option codes. Names are short forms of the RFC 2132 names; `NAME_SERVERS` is Domain Name Server
/// (6). Each option that is not in RFC 2132 has a comment with its source.
pub(crate) mod code {
    pub const PAD: u8 = 0;
    pub const SUBNET_MASK: u8 = 1;
    pub const ROUTERS: u8 = 3;
    pub const NAME_SERVERS: u8 = 6;
    pub const LOG_SERVERS: u8 = 7;
    pub const HOST_NAME: u8 = 12;
    pub const DOMAIN_NAME: u8 = 15;
    pub const BROADCAST: u8 = 28;
    pub const NTP_SERVERS: u8 = 42;
    pub const VENDOR_SPECIFIC: u8 = 43;
    pub const REQUESTED_ADDRESS: u8 = 50;
    pub const LEASE_TIME: u8 = 51;
    pub const OVERLOAD: u8 = 52;
    pub const MESSAGE_TYPE: u8 = 53;
    pub const SERVER_ID: u8 = 54;
    pub const PARAMETER_LIST: u8 = 55;
    pub const MESSAGE: u8 = 56;
    pub const MAX_SIZE: u8 = 57;
    pub const VENDOR_CLASS: u8 = 60;
    pub const CLIENT_ID: u8 = 61;
    pub const TFTP_SERVER: u8 = 66;
    pub const BOOT_FILE: u8 = 67;
    /// User class (RFC 3004).
    pub const USER_CLASS: u8 = 77;
    /// Relay agent information (RFC 3046).
    pub const RELAY_AGENT: u8 = 82;
    /// Client architecture (RFC 4578 §2.1).
    pub const ARCHITECTURE: u8 = 93;
    /// Client machine identifier (RFC 4578 §2.3).
    pub const MACHINE_ID: u8 = 97;
    /// Subnet selection (RFC 3011).
    pub const SUBNET_SELECTION: u8 = 118;
    /// Domain search list (RFC 3397).
    pub const DOMAIN_SEARCH: u8 = 119;
    /// Classless static routes (RFC 3442).
    pub const CLASSLESS_ROUTES: u8 = 121;
    /// TFTP server addresses (RFC 5859).
    pub const TFTP_ADDRESSES: u8 = 150;
    /// iPXE's own options, encapsulated.
    pub const IPXE: u8 = 175;
    pub const END: u8 = 255;
}

/// Options of one message, from code to value, with parts joined; limited by the datagram.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Options(BTreeMap<u8, Vec<u8>>);

impl Options {
    /// Parses the options field and then, if option 52 says so, `file` and `sname`, the order in
    /// which RFC 3396 §5 joins parts. A missing end option is accepted: some firmware omits it.
    pub fn read(options: &[u8], file: &[u8], sname: &[u8]) -> Result<Self, Malformed> {
        let mut all = Self::default();
        all.split(options)?;
        let overload = match all.0.remove(&code::OVERLOAD).as_deref() {
            None => 0,
            Some([bits @ 1..=3]) => *bits,
            Some(_) => return Err(Malformed::Option(code::OVERLOAD)),
        };
        if overload & 1 != 0 {
            all.split(file)?;
        }
        if overload & 2 != 0 {
            all.split(sname)?;
        }
        Ok(all)
    }

    /// Parses encapsulated options (43, 175), which have the same format; `None` if malformed.
    pub fn encapsulated(bytes: &[u8]) -> Option<Self> {
        let mut all = Self::default();
        all.split(bytes).ok().map(|()| all)
    }

    fn split(&mut self, mut rest: &[u8]) -> Result<(), Malformed> {
        while let Some((&code, after)) = rest.split_first() {
            match code {
                code::PAD => rest = after,
                code::END => break,
                _ => {
                    let (&length, after) = after.split_first().ok_or(Malformed::Option(code))?;
                    let (value, after) = after
                        .split_at_checked(usize::from(length))
                        .ok_or(Malformed::Option(code))?;
                    self.0.entry(code).or_default().extend_from_slice(value);
                    rest = after;
                }
            }
        }
        Ok(())
    }

    /// Returns the value of an option; `None` if the message does not have the option.
    pub fn get(&self, code: u8) -> Option<&[u8]> {
        self.0.get(&code).map(Vec::as_slice)
    }

    /// Returns the value of an option that must have exactly `N` bytes; `None` if it is absent.
    pub fn array<const N: usize>(&self, code: u8) -> Result<Option<[u8; N]>, Malformed> {
        self.get(code)
            .map(|value| value.try_into().map_err(|_| Malformed::Option(code)))
            .transpose()
    }

    /// Returns the IPv4 address in an option; `None` if it is absent.
    pub fn address(&self, code: u8) -> Result<Option<Ipv4Addr>, Malformed> {
        Ok(self.array::<4>(code)?.map(Ipv4Addr::from))
    }

    /// Returns the big-endian number in an option; `None` if it is absent.
    pub fn number(&self, code: u8) -> Result<Option<u16>, Malformed> {
        Ok(self.array(code)?.map(u16::from_be_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::{Malformed, Options};

    #[test]
    fn pads_end_and_missing_end() {
        let options = Options::read(&[0, 0, 53, 1, 1, 0, 255, 12, 200], &[], &[]).unwrap();
        assert_eq!(options.get(53), Some(&[1][..]));
        assert_eq!(options.get(12), None, "what follows the end is not read");
        assert!(Options::read(&[53, 1, 1], &[], &[]).is_ok());
        assert!(Options::read(&[], &[], &[]).is_ok());
    }

    #[test]
    fn parts_are_joined_wherever_they_stand() {
        let options = Options::read(
            &[77, 2, b'i', b'P', 12, 1, b'a', 77, 1, b'X', 52, 1, 3, 255],
            &[0, 77, 1, b'E', 255],
            &[77, 1, b'!', 255],
        );
        let options = options.unwrap();
        assert_eq!(options.get(77), Some(&b"iPXE!"[..]), "options, then file, then sname");
        assert_eq!(options.get(12), Some(&b"a"[..]));
    }

    #[test]
    fn overload_says_which_fields_hold_options() {
        let (file, sname) = ([12, 1, b'f', 255], [15, 1, b's', 255]);
        for (bits, in_file, in_sname) in [(1, true, false), (2, false, true), (3, true, true)] {
            let options = Options::read(&[52, 1, bits, 255], &file, &sname).unwrap();
            assert_eq!(options.get(12).is_some(), in_file, "{bits}");
            assert_eq!(options.get(15).is_some(), in_sname, "{bits}");
        }
        let options = Options::read(&[255], &file, &sname).unwrap();
        assert_eq!(options.get(12), None);
        for bad in [&[52, 1, 0][..], &[52, 1, 4], &[52, 2, 1, 1], &[52, 0]] {
            assert_eq!(Options::read(bad, &file, &sname), Err(Malformed::Option(52)));
        }
        let nested = Options::read(&[52, 1, 1, 255], &[52, 1, 2, 255], &sname).unwrap();
        assert_eq!(
            nested.get(15),
            None,
            "an overload inside an overloaded field counts for nothing"
        );
    }

    #[test]
    fn a_value_that_runs_out_of_the_message_is_refused() {
        for bad in [&[12, 3, b'a', b'b'][..], &[12]] {
            assert_eq!(Options::read(bad, &[], &[]), Err(Malformed::Option(12)));
        }
    }
}
