//! Tests packets as boot ROMs send them, and invalid packets.

use super::{Code, Malformed, Options, Packet, Request, data_head, error};
use proptest::prelude::{ProptestConfig, any, proptest};

#[test]
fn reads_the_requests_that_roms_send() {
    // EDK2's first request for a file, recorded on a network.
    let edk2 = b"\0\x01snponly.efi\0octet\0tsize\x000\0blksize\x001468\0windowsize\x004\0";
    let options =
        Options { blksize: Some(1468), tsize: Some(0), windowsize: Some(4), ..Options::default() };
    let request = Request { file: "snponly.efi", octet: true, options };
    assert_eq!(Packet::parse(edk2), Ok(Packet::Read(request)));
    // Request of iPXE's undionly build, with a leading slash.
    let ipxe = b"\0\x01/undionly.kpxe\0octet\0blksize\x001432\0tsize\x000\0";
    let Ok(Packet::Read(request)) = Packet::parse(ipxe) else { panic!("not read") };
    assert_eq!((request.options.blksize, request.options.tsize), (Some(1432), Some(0)));
    let netascii = b"\0\x01a\0NetASCII\0";
    let Ok(Packet::Read(request)) = Packet::parse(netascii) else { panic!("not read") };
    assert!(!request.octet);
}

#[test]
fn unlawful_values_count_as_not_said() {
    let bytes = b"\0\x01a\0octet\0blksize\x007\0timeout\x000\0windowsize\x0065536\0tsize\0-1\0";
    let Ok(Packet::Read(request)) = Packet::parse(bytes) else { panic!("not read") };
    assert!(request.options.is_empty());
    let twice = b"\0\x01a\0octet\0BLKSIZE\x00512\0blksize\x001024\0pad";
    let Ok(Packet::Read(request)) = Packet::parse(twice) else { panic!("not read") };
    assert_eq!(request.options.blksize, Some(512));
}

#[test]
fn what_is_written_is_read_back() {
    let options = Options {
        blksize: Some(1468),
        tsize: Some(5_000_000_000),
        timeout: Some(3),
        windowsize: Some(64),
    };
    assert_eq!(Packet::parse(&options.to_bytes()), Ok(Packet::OptionAck(options)));
    let bytes = [&data_head(65_536 + 65_535)[..], b"xyz"].concat();
    assert_eq!(Packet::parse(&bytes), Ok(Packet::Data { block: 65535, payload: b"xyz" }));
    let bytes = error(Code::NotFound, "no such file");
    assert_eq!(Packet::parse(&bytes), Ok(Packet::Error { code: 1, message: "no such file" }));
}

#[test]
fn refuses_what_is_no_packet() {
    assert_eq!(Packet::parse(b""), Err(Malformed::Short));
    assert_eq!(Packet::parse(b"\0\x04\0"), Err(Malformed::Short));
    assert_eq!(Packet::parse(b"\0\x09"), Err(Malformed::Operation(9)));
    assert_eq!(Packet::parse(b"\0\x01name"), Err(Malformed::Text));
    assert_eq!(Packet::parse(b"\0\x01name\0octet"), Err(Malformed::Text));
    let long = [b"\0\x01", &[b'a'; 256][..], b"\0octet\0"].concat();
    assert_eq!(Packet::parse(&long), Err(Malformed::Text));
}

/// Options with numbers of every length.
const NAMES: &str = "(blksize|tsize|timeout|windowsize)\0[0-9]{0,25}\0";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn no_bytes_make_it_panic(
        operation in 0_u16..8,
        rest in proptest::collection::vec(any::<u8>(), 0..600),
        names in proptest::collection::vec(NAMES, 0..20),
    ) {
        let _ = Packet::parse(&rest);
        let bytes = [&operation.to_be_bytes()[..], &rest].concat();
        let _ = Packet::parse(&bytes);
        let bytes = [b"\0\x01f\0octet\0", names.concat().as_bytes()].concat();
        if let Ok(Packet::Read(request)) = Packet::parse(&bytes) {
            assert!(request.options.blksize.is_none_or(|n| (8..=65464).contains(&n)));
            assert!(request.options.timeout != Some(0));
            assert!(request.options.windowsize != Some(0));
        }
    }
}
