//! Tests the targets of redirects.

use super::{Refusal, redirected};

fn lead(from: &str, location: impl AsRef<[u8]>) -> Result<String, String> {
    match redirected(&from.parse().unwrap(), location.as_ref()) {
        Ok(to) => Ok(to.to_string()),
        Err(Refusal::Never(why) | Refusal::Later(why)) => Err(why),
    }
}

/// Examples of RFC 3986 section 5.4, except for schemes that the box does not fetch.
#[test]
fn redirects_are_resolved_as_the_rfc_says() {
    for (location, to) in [
        ("g", "http://a/b/c/g"),
        ("./g", "http://a/b/c/g"),
        ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"),
        ("//g", "http://g/"),
        ("?y", "http://a/b/c/d;p?y"),
        ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q"),
        ("g#s", "http://a/b/c/g"),
        (";x", "http://a/b/c/;x"),
        ("g;x?y#s", "http://a/b/c/g;x?y"),
        ("", "http://a/b/c/d;p?q"),
        (".", "http://a/b/c/"),
        ("..", "http://a/b/"),
        ("../g", "http://a/b/g"),
        ("../../../../g", "http://a/g"),
        ("g;x=1/../y", "http://a/b/c/y"),
        ("g?y/./x", "http://a/b/c/g?y/./x"),
    ] {
        assert_eq!(lead("http://a/b/c/d;p?q", location).as_deref(), Ok(to), "{location}");
    }
}

#[test]
fn a_redirect_may_have_a_url_in_its_query_and_what_servers_do_not_encode() {
    for (location, to) in [
        ("/file?from=http://mirror.example/disk.img", "/file?from=http://mirror.example/disk.img"),
        ("other?u=https://a:1/b@c#d://e", "/query/other?u=https://a:1/b@c"),
        ("my disk.img?a=b c", "/query/my%20disk.img?a=b%20c"),
        ("/a|b[c]^{d}`\"<>", "/a|b[c]^%7Bd%7D%60%22%3C%3E"),
        ("/a%2Fb%20c", "/a%2Fb%20c"),
        ("/plätze", "/pl%C3%A4tze"),
    ] {
        let to = format!("http://origin:8002{to}");
        let from = "http://origin:8002/query/disk.img";
        assert_eq!(lead(from, location), Ok(to), "{location}");
    }
    assert_eq!(lead("http://a/", b"/\xe4").as_deref(), Ok("http://a/%E4"));
    assert_eq!(lead("http://a/", "HTTPS://B:443/c").as_deref(), Ok("https://b/c"));
    assert_eq!(lead("https://a:8443/b", "//c:80/d").as_deref(), Ok("https://c:80/d"));
    assert_eq!(lead("http://[fd00::1]:81/b", "c").as_deref(), Ok("http://[fd00::1]:81/c"));
}

#[test]
fn a_redirect_elsewhere_is_refused_and_shows_no_secret() {
    for (from, location, words) in [
        ("https://a/", "http://b/c?s3cret", "it redirects to http://b/c, from https"),
        ("http://a/", "ftp://b/c", "to ftp://b/c, which is neither http nor https"),
        ("http://a/", "file:///etc/shadow", "which is neither http nor https"),
        ("http://a/", "http://me:s3cret@b/c?s3cret", "to http://b/c, with a user name"),
        ("http://a/", "//s3cret@b/c", "to http://b/c, with a user name"),
        ("http://a/", "http://b:99999/s3cret", "an invalid URL"),
    ] {
        let why = lead(from, location).unwrap_err();
        assert!(why.contains(words) && !why.contains("s3cret"), "{location}: {why}");
    }
}
