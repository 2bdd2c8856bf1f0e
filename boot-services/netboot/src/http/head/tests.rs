//! Tests heads as boot ROMs send them, and invalid heads.

use super::{Head, MAX_HEAD, Parsed, parse};
use proptest::prelude::{any, proptest};

fn request(line: &str, fields: &str) -> Vec<u8> {
    format!("{line}\r\nHost: box\r\n{fields}\r\n").into_bytes()
}

#[track_caller]
fn head(bytes: &[u8]) -> Head<'_> {
    match parse(bytes) {
        Parsed::Request(head) => head,
        other => panic!("{other:?}"),
    }
}

#[test]
fn reads_what_boot_roms_and_curl_send() {
    let bytes = request("GET /images/a%20b?x=1 HTTP/1.1", "Range: bytes=0-1\r\nAccept: */*\r\n");
    let read = head(&bytes);
    assert_eq!((read.path.as_ref(), read.wants_body, read.keep_alive), ("/images/a b", true, true));
    assert_eq!((read.conditions.range, read.length), (Some("bytes=0-1"), bytes.len()));
    let bytes = request("HEAD /a HTTP/1.1", "connection: x, Close\r\nIf-None-Match: \"t\"\r\n");
    let read = head(&bytes);
    assert_eq!((read.wants_body, read.keep_alive), (false, false));
    assert_eq!(read.conditions.if_none_match, Some("\"t\""));
    for target in ["http://box/a/b", "https://box:7443/a/b#c", "/a/b"] {
        let bytes = request(&format!("GET {target} HTTP/1.1"), "");
        assert_eq!(head(&bytes).path, "/a/b", "{target}");
    }
}

#[test]
fn one_head_ends_where_the_next_begins() {
    let first = request("GET /a HTTP/1.1", "");
    let both = [&first[..], &request("GET /b HTTP/1.1", "")].concat();
    assert_eq!(head(&both).length, first.len());
    for end in 0..first.len() {
        assert_eq!(parse(&first[..end]), Parsed::Partial, "{end}");
    }
}

#[test]
fn what_is_not_plainly_a_request_for_a_file_is_left_alone() {
    for (line, fields) in [
        ("POST /a HTTP/1.1", ""),
        ("GET /a HTTP/1.0", ""),
        ("PRI * HTTP/2.0", ""),
        ("OPTIONS * HTTP/1.1", ""),
        ("GET * HTTP/1.1", ""),
        ("GET box:80 HTTP/1.1", ""),
        ("GET http://box HTTP/1.1", ""),
        ("GET ftp://box/a HTTP/1.1", ""),
        ("GET /%ff HTTP/1.1", ""),
        ("GET /a HTTP/1.1", "Content-Length: 0\r\n"),
        ("GET /a HTTP/1.1", "Transfer-Encoding: chunked\r\n"),
        ("GET /a HTTP/1.1", "transfer-encoding: identity\r\nContent-Length: 5\r\n"),
        ("GET /a HTTP/1.1", "Expect: 100-continue\r\n"),
        ("GET /a HTTP/1.1", "Connection: upgrade\r\nUpgrade: h2c\r\n"),
        ("GET /a HTTP/1.1", "Range: bytes=0-1\r\nRange: bytes=2-3\r\n"),
        ("GET /a HTTP/1.1", "Host: other\r\n"),
        ("GET /a HTTP/1.1", "Range: bytes=\u{e9}\r\nbroken\r\n"),
        ("GET /a HTTP/1.1", "a : b\r\n"),
        ("GET /a HTTP/1.1", "a: b\r\n folded\r\n"),
    ] {
        assert_eq!(parse(&request(line, fields)), Parsed::Other, "{line} {fields}");
    }
    assert_eq!(parse(b"GET /a HTTP/1.1\r\n\r\n"), Parsed::Other, "no host");
    assert_eq!(parse(&request("GET /a HTTP/1.1", &"a: b\r\n".repeat(64))), Parsed::Other);
    let long = request("GET /a HTTP/1.1", &format!("a: {}", "b".repeat(MAX_HEAD)));
    assert_eq!(parse(&long), Parsed::Other);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic_or_read_behind_their_end(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        fields in "([a-zA-Z-]{1,20}: [ -~]{0,20}\r\n){0,4}",
    ) {
        for bytes in [bytes, request("GET /images/a HTTP/1.1", &fields)] {
            if let Parsed::Request(head) = parse(&bytes) {
                assert!(head.length <= bytes.len() && head.path.starts_with('/'));
                assert!(bytes[..head.length].ends_with(b"\n"));
            }
        }
    }
}
