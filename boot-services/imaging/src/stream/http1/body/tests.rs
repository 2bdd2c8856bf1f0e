//! Tests of complete and truncated bodies, in every framing.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::{any, prop, proptest};
use tokio::runtime::Builder;

use super::{Body, Chunk, Framing};

fn framing(fields: &[(&'static str, &str)]) -> Result<Framing, String> {
    let mut map = HeaderMap::new();
    for (name, value) in fields {
        map.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
    }
    Framing::of(&map)
}

/// Reads a whole body from the bytes `wire`, at most `step` bytes per read.
fn read(framing: Framing, wire: &[u8], step: usize) -> Result<Vec<u8>, String> {
    let mut body = Body::new(wire);
    body.begin(framing);
    Builder::new_current_thread().build().unwrap().block_on(async {
        let (mut whole, mut piece) = (Vec::new(), vec![0; step]);
        loop {
            match body.read(&mut piece).await? {
                0 => return Ok(whole),
                count => whole.extend_from_slice(&piece[..count]),
            }
        }
    })
}

#[test]
fn where_a_body_ends_is_told_by_its_fields() {
    assert_eq!(framing(&[]), Ok(Framing::Close));
    assert_eq!(framing(&[("content-length", "12")]), Ok(Framing::Length(12)));
    let twice = [("content-length", "12"), ("content-length", "12")];
    assert_eq!(framing(&twice), Ok(Framing::Length(12)));
    let chunked = Ok(Framing::Chunked(Chunk::Size));
    assert_eq!(framing(&[("transfer-encoding", "Chunked")]), chunked);
    let both = [("content-length", "12"), ("transfer-encoding", "chunked")];
    assert_eq!(framing(&both), chunked, "RFC 9112 section 6.3, rule 3");
    for broken in [
        &[("content-length", "+12")][..],
        &[("content-length", "")],
        &[("content-length", "12"), ("content-length", "13")],
        &[("content-length", "99999999999999999999")],
        &[("transfer-encoding", "gzip, chunked")],
        &[("transfer-encoding", "chunked"), ("transfer-encoding", "gzip")],
    ] {
        assert!(framing(broken).is_err(), "{broken:?}");
    }
}

#[test]
fn a_body_is_read_up_to_its_end_and_a_cut_is_no_end() {
    assert_eq!(read(Framing::Length(3), b"abcdef", 2), Ok(b"abc".to_vec()));
    assert_eq!(read(Framing::Close, b"abcdef", 4), Ok(b"abcdef".to_vec()));
    assert_eq!(read(Framing::Length(0), b"abc", 1), Ok(Vec::new()));
    let cut = read(Framing::Length(9), b"abcdef", 4);
    assert_eq!(cut, Err("the connection ended 3 bytes early".to_owned()));
}

#[test]
fn chunks_are_joined() {
    let chunked = Framing::Chunked(Chunk::Size);
    let wire = b"3\r\nabc\r\n0A ;x=y\r\n0123456789\r\n1\nd\n0\r\na: b\r\n\r\nrest";
    for step in [1, 4, 100] {
        assert_eq!(read(chunked, wire, step), Ok(b"abc0123456789d".to_vec()));
    }
    // A cut anywhere before the last empty line makes the body incomplete.
    let end = wire.len() - b"rest".len();
    for cut in 0..end {
        assert!(read(chunked, &wire[..cut], 4).is_err(), "cut at {cut}");
    }
    for broken in [
        &b"x\r\n"[..],
        b"\r\n",
        b"+3\r\nabc\r\n0\r\n\r\n",
        b"2\r\nabc\r\n0\r\n\r\n",
        b"ffffffffffffffffff\r\n",
    ] {
        assert!(read(chunked, broken, 4).is_err(), "{broken:?}");
    }
    let endless = [b"0\r\n".to_vec(), b"a: b\r\n".repeat(20_000)].concat();
    assert_eq!(read(chunked, &endless, 4), Err("the trailer has no end".to_owned()));
    assert!(read(chunked, &[b'1'; 10_000], 4).is_err());
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(wire in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(Framing::Chunked(Chunk::Size), &wire, 7);
    }
}
