use proptest::prelude::*;

use super::{Algorithm, Challenge, ChallengeError};

/// Header of AMT 12.0.24, with the realm of the vectors.
const RECORDED: &str = "Digest realm=\"Digest:4BB90000000000000000000000000000\", \
     nonce=\"zicaAAAAAAAAAAAAa8tMnB1xbyLK5UFG\",stale=\"false\",qop=\"auth\"";

fn response(header: &str) -> &str {
    let start = header.find("response=\"").unwrap() + 10;
    &header[start..start + 32]
}

#[test]
fn answers_have_the_computed_vectors() {
    let challenge = Challenge::find(["Negotiate", RECORDED]).unwrap();
    assert_eq!(challenge.realm, "Digest:4BB90000000000000000000000000000");
    assert!(!challenge.is_stale);
    let login = ("admin", &"P@ssw0rd1".into());
    let answer = |count| challenge.authorization(login, ("POST", "/wsman"), "0a4f113b", count);
    assert_eq!(
        Algorithm::Md5.hash(&["admin", &challenge.realm, "P@ssw0rd1"]),
        "2ae64e3f8ef9abfec5cdb75ea8b5a337"
    );
    assert_eq!(response(&answer(1)), "642e59e3c272395e7283ac203ec4a8d7");
    assert_eq!(response(&answer(2)), "d824cfa4fcbe71049d26a3772f966b02");
    assert!(answer(2).contains("nc=00000002,"), "{}", answer(2));
    assert!(!answer(1).contains("P@ssw0rd1"));
    let redirection = challenge.response(login, ("POST", "/RedirectionService"), "0a4f113b", 2);
    assert_eq!(redirection, "371b2cfd20c9686e7a6ff94add3871bb");
}

/// Example of RFC 7616 §3.9.1.
#[test]
fn the_example_of_the_rfc_is_answered() {
    let header = "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm=MD5, \
        nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", \
        opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\"";
    let challenge = Challenge::find([header]).unwrap();
    let login = ("Mufasa", &"Circle of Life".into());
    let cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ";
    let answer = challenge.authorization(login, ("GET", "/dir/index.html"), cnonce, 1);
    assert_eq!(response(&answer), "8ca523f5e9506fed4657c9700eebdbec");
    assert!(answer.contains("opaque=\"FQhe"), "{answer}");
}

/// Example of RFC 7616 §3.9.1 with SHA-256, after a challenge that cannot be answered.
#[test]
fn a_challenge_with_sha_256_is_answered() {
    let header = "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", \
        algorithm=SHA-256, nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", \
        opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\"";
    let other = header.replace("SHA-256", "SHA-512-256");
    let challenge = Challenge::find([other.as_str(), header]).unwrap();
    let login = ("Mufasa", &"Circle of Life".into());
    let cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ";
    let answer = challenge.authorization(login, ("GET", "/dir/index.html"), cnonce, 1);
    let expected = "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1";
    assert!(answer.contains(&format!("response=\"{expected}\",algorithm=SHA-256")), "{answer}");
}

/// Vector of a plug of the second generation of Shelly.
#[test]
fn a_plug_is_answered() {
    let header = "Digest qop=\"auth\", realm=\"shellyplusplugs-aabbccddeeff\", \
        nonce=\"1625038762\", algorithm=SHA-256";
    let challenge = Challenge::find([header]).unwrap();
    let login = ("admin", &"secret".into());
    let answer = challenge.authorization(login, ("POST", "/rpc"), "313273957", 1);
    let expected = "918ee5ca1d007e786e5f07b7ae594df7acc1ea41b11297604431fae08eb421eb";
    assert!(answer.contains(expected), "{answer}");
}

#[test]
fn challenges_of_other_kinds_are_refused() {
    for (header, expected) in [
        ("Basic realm=\"x\"", ChallengeError::Absent),
        ("Digest realm=\"x\",qop=\"auth\"", ChallengeError::Invalid("nonce")),
        ("Digest nonce=\"x\",qop=auth", ChallengeError::Invalid("realm")),
        ("Digest realm=\"a\",nonce=\"b\"", ChallengeError::Quality(String::new())),
        (
            "Digest realm=\"a\",nonce=\"b\",qop=\"auth-int\"",
            ChallengeError::Quality("auth-int".into()),
        ),
        (
            "Digest realm=\"a\",nonce=\"b\",qop=\"auth\",algorithm=SHA-512-256",
            ChallengeError::Algorithm("SHA-512-256".into()),
        ),
    ] {
        assert_eq!(Challenge::find([header]), Err(expected), "{header}");
    }
    let stale = "digest stale=TRUE, qop=\"auth-int,auth\", realm=\"a\\\"b\", nonce=\"n\"";
    let stale = Challenge::find([stale]).unwrap();
    assert_eq!((stale.is_stale, stale.realm.as_str()), (true, "a\"b"));
    let long = format!("Digest nonce=\"{}\"", "x".repeat(4000));
    assert_eq!(Challenge::find([long.as_str()]), Err(ChallengeError::Invalid("length")));
}

proptest! {
    #[test]
    fn any_header_is_read_without_panic(header in "(Digest )?[ -~é]{0,80}") {
        let _ = Challenge::find([header.as_str()]);
    }
}
