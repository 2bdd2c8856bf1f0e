//! Tests with the lines of each program, for the bytes `abc` (examples of RFC 1321 and FIPS 180-4).

use super::super::{Algorithm, Checksum};
use super::{NoSum, decode, find_sum};

const MD5: &str = "900150983cd24fb0d6963f7d28e17f72";
const SHA256: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const SHA512: &str = "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
                      2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f";

fn sha256() -> Checksum {
    Checksum::parse(Algorithm::Sha256, SHA256).unwrap()
}

fn sha512() -> Checksum {
    Checksum::parse(Algorithm::Sha512, SHA512).unwrap()
}

/// Returns `length` hexadecimal digits that are not a checksum of any test data.
fn other(length: usize) -> String {
    "0".repeat(length)
}

#[test]
fn sums_are_found_in_every_usual_file() {
    let wrong = other(64);
    for text in [
        format!("{wrong}  other.img\n{SHA256}  a.img\n"),
        format!("{wrong} *a.img.xz\n{SHA256} *./a.img\n"),
        format!("{wrong}\ta\n{SHA256}\ta.img"),
        format!("{wrong} *b.img\r\n{SHA256} *a.img\r\n"),
        format!("{wrong}  b.img\0{SHA256}  a.img\0"),
        format!("{}  a.img\n", SHA256.to_uppercase()),
        format!("sha256:{SHA256}  a.img\n"),
        format!("{SHA256}  /home/builder/upload/a.img\n"),
        format!("{SHA256}  C:\\builds\\a.img\n"),
        format!(" {SHA256} 8388608 images/a.img\n {wrong} 12 b.img\n"),
        format!(
            "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\n{SHA256}  images/a.img\n\
            -----BEGIN PGP SIGNATURE-----\n\niQIz=\n-----END PGP SIGNATURE-----\n"
        ),
        format!("# a.img: 8388608 bytes\nMD5 (a.img) = {MD5}\nSHA256 (a.img) = {SHA256}\n"),
        format!("SHA256(a.img)= {SHA256}\n"),
        format!("SHA2-256(a.img)= {SHA256}\nSHA2-256(b.img)= {wrong}\n"),
        format!("SHA1(./a.img)= {}\r\nSHA2-256(./a.img)= {SHA256}\r\n", other(40)),
        format!("a.img  {SHA256}\n"),
        format!("a.img: {SHA256}\nb.img: {wrong}\n"),
        format!("a.img = {SHA256}\n"),
        format!("Algorithm  Hash  Path\n---------  ----  ----\nSHA256  {SHA256}  C:\\x\\a.img\n"),
    ] {
        assert_eq!(find_sum(&text, "/images/a.img"), Ok(sha256()), "{text}");
    }
    for text in [format!("{SHA256}  b.img\n"), "a.img\n".into(), String::new(), "<html>".into()] {
        assert_eq!(find_sum(&text, "/a.img"), Err(NoSum::Missing), "{text}");
    }
}

#[test]
fn a_sum_in_groups_is_read_over_its_lines() {
    let groups = |hex: &str| -> Vec<String> {
        let bytes = hex.to_uppercase().into_bytes();
        bytes.chunks(8).map(|group| String::from_utf8(group.to_vec()).unwrap()).collect()
    };
    let short = groups(SHA256).join(" ");
    let long = groups(SHA512).chunks(6).map(|line| line.join(" ")).collect::<Vec<_>>();
    let long = long.join("\n       ");
    assert_eq!(find_sum(&format!("a.img: {short}\n"), "/a.img"), Ok(sha256()));
    assert_eq!(find_sum(&format!("a.img: {long}\n"), "/a.img"), Ok(sha512()));
    assert_eq!(find_sum(&format!("b: {long}\na.img:\n {short}\n"), "/a.img"), Ok(sha256()));
    let tagged = format!("a.img:    MD5 = {MD5}\na.img: SHA256 = {short}\n");
    assert_eq!(find_sum(&tagged, "/a.img"), Ok(sha256()));
}

#[test]
fn a_file_for_one_image_need_not_name_it() {
    for text in [
        format!("{SHA256}\n"),
        format!("{}\r\n", SHA256.to_uppercase()),
        format!("sha256:{SHA256}"),
        format!("SHA256: {SHA256}\n"),
        format!("{SHA256}  -\n"),
        format!("SHA2-256(stdin)= {SHA256}\n"),
        format!("(stdin)= {SHA256}\n"),
        format!("# made by a builder\n\n{SHA256}\n"),
        format!("SHA256 hash of C:\\a.img:\n{SHA256}\nCertUtil: it is done.\n"),
        format!("Algorithm : SHA256\r\nHash      : {SHA256}\r\nPath      : C:\\a.img\r\n"),
    ] {
        assert_eq!(find_sum(&text, "/a.img"), Ok(sha256()), "{text}");
    }
    let two = format!("{SHA256}\n{}\n", other(64));
    assert_eq!(find_sum(&two, "/a.img"), Err(NoSum::Missing));
}

#[test]
fn files_of_windows_are_read() {
    let text = format!("{}  disk.img\r\n{SHA256}  plätze.img\r\n", other(64));
    let wide = |of: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(of).collect::<Vec<u8>>();
    let (little, big) = (wide(u16::to_le_bytes), wide(u16::to_be_bytes));
    for bytes in [
        [&b"\xef\xbb\xbf"[..], text.as_bytes()].concat(),
        [&b"\xff\xfe"[..], &little].concat(),
        [&b"\xfe\xff"[..], &big].concat(),
        little,
        big,
        text.clone().into_bytes(),
    ] {
        assert_eq!(find_sum(&decode(&bytes), "/pl%C3%A4tze.img"), Ok(sha256()));
    }
    let first = [&b"\xef\xbb\xbf"[..], format!("{SHA256}  a\n").as_bytes()].concat();
    assert_eq!(find_sum(&decode(&first), "/a"), Ok(sha256()));
}

#[test]
fn names_are_read_as_they_are_escaped() {
    for (line, path) in [
        (format!("\\{SHA256}  a\\nb\\\\c\n"), "/a%0Ab%5Cc"),
        (format!("\\SHA256 (a\\rb) = {SHA256}\n"), "/a%0db"),
        (format!("{SHA256}  my disk.img\n"), "/my%20disk.img"),
        (format!("{SHA256}  my%20disk.img\n"), "/my%20disk.img"),
        (format!("SHA256 (a (1).img) = {SHA256}\n"), "/a%20(1).img"),
        (format!("{SHA256}  a=b).img\n"), "/a=b).img"),
    ] {
        assert_eq!(find_sum(&line, path), Ok(sha256()), "{line}");
    }
}

#[test]
fn a_sum_is_known_by_as_much_of_its_path_as_fits() {
    let list = |names: &[&str]| {
        let line = |(at, name): (usize, &&str)| format!("{at:064}  {name}\n");
        names.iter().enumerate().map(line).collect::<String>()
    };
    let is = |names: &[&str], path: &str, wanted: usize| {
        let sum = find_sum(&list(names), path).map(|sum| sum.to_string());
        assert_eq!(sum, Ok(format!("{wanted:064}")), "{names:?} {path}");
    };
    is(&["./amd64/d.img", "./arm64/d.img"], "/amd64/d.img", 0);
    is(&["./amd64/d.img", "./arm64/d.img"], "/cache/0123/v1/arm64/d.img", 1);
    is(&["hd/gtk/d.img", "net/gtk/d.img", "net/d.img"], "/x/net/gtk/d.img", 1);
    is(&["old/d.img", "d.img"], "/x/d.img", 1);
    is(&["/srv/a/d.img", "/srv/b/d.img"], "/b/d.img", 1);
    is(&["a\\d.img", "b\\d.img"], "/b/d.img", 1);
    is(&["12 a/d.img", "12 b/d.img"], "/b/d.img", 1);
    let several = |first: &str, second: &str| NoSum::Several(first.into(), second.into());
    for (first, second, path) in [
        ("amd64/d.img", "arm64/d.img", "/images/d.img"),
        ("a/d.img", "b/c/d.img", "/d.img"),
        ("d.img", "./d.img", "/x/d.img"),
    ] {
        let found = find_sum(&list(&[first, second]), path);
        assert_eq!(found, Err(several(first, second)), "{path}");
    }
    let twice = format!("{SHA256}  a/d.img\n{SHA256}  b/d.img\n");
    assert_eq!(find_sum(&twice, "/d.img"), Ok(sha256()));
}

#[test]
fn sums_of_other_algorithms_are_left_alone() {
    let (short, long) = (other(64), other(128));
    let gentoo =
        |first: &str, second: &str| format!("# {first} HASH\n{long}  a\n# {second} HASH\n");
    let text = gentoo("BLAKE2B", "SHA512") + &format!("{SHA512}  a\n");
    assert_eq!(find_sum(&text, "/a"), Ok(sha512()));
    let text = format!("# SHA512 HASH\n{SHA512}  a\n") + &gentoo("BLAKE2B", "SHA256");
    let text = text + &format!("{SHA256}  a\n");
    assert_eq!(find_sum(&text, "/a"), Ok(sha512()));
    let tags = format!("BLAKE2b (a) = {long}\nSHA3-256(a)= {short}\nSM3 (a) = {short}\n");
    assert_eq!(find_sum(&format!("{tags}SHA256 (a) = {SHA256}\n"), "/a"), Ok(sha256()));
    assert_eq!(find_sum(&tags, "/a"), Err(NoSum::Missing));
    assert_eq!(find_sum(&format!("SHA512 (a) = {SHA256}\n"), "/a"), Err(NoSum::Missing));
    let strongest = find_sum(&format!("{SHA256}  a\n{SHA512}  a\n{MD5}  a\n"), "/a");
    assert_eq!(strongest, Ok(sha512()));
}
