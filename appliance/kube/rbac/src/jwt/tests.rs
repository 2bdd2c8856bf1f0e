//! Tests of claims and their limits. The tests of signatures are in `apiserver`.

use base64::Engine as _;
use jiff::Timestamp;
use serde_json::json;

use super::{
    BASE64URL, Bound, Claims, ISSUER, ObjectRef, TokenError, Unverified, configuration, is_token,
    key_set, signing_input, token,
};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn claims() -> Claims {
    let bound = Bound {
        namespace: "rack".to_owned(),
        serviceaccount: ObjectRef { name: "capt".to_owned(), uid: "u-1".to_owned() },
        ..Bound::default()
    };
    Claims::new(bound, vec![ISSUER.to_owned()], "id-1".to_owned(), at(1000), 600)
}

#[test]
fn claims_are_those_of_kubernetes() {
    let expected = json!({
        "aud": [ISSUER],
        "exp": 1600,
        "iat": 1000,
        "iss": ISSUER,
        "jti": "id-1",
        "kubernetes.io": {
            "namespace": "rack",
            "serviceaccount": { "name": "capt", "uid": "u-1" },
        },
        "nbf": 1000,
        "sub": "system:serviceaccount:rack:capt",
    });
    assert_eq!(serde_json::to_value(claims()).unwrap(), expected);
}

#[test]
fn a_token_comes_back() {
    let input = signing_input("k", &claims());
    let text = token(&input, &[7; 64]);
    assert!(is_token(&text));
    let parsed = Unverified::parse(&text).unwrap();
    assert_eq!((parsed.signing_input, parsed.key_id.as_str()), (input.as_str(), "k"));
    assert_eq!(parsed.signature, [7; 64]);
    let user = parsed.verified().user();
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("system:serviceaccount:rack:capt", "u-1"));
    let groups = ["system:serviceaccounts", "system:serviceaccounts:rack", "system:authenticated"];
    assert_eq!(user.groups, groups);
    assert_eq!(user.extra[super::CREDENTIAL], ["JTI=id-1"]);
}

#[test]
fn times_audiences_and_identity_must_fit() {
    let ours = [ISSUER.to_owned()];
    let good = claims();
    assert_eq!(good.check(at(1000), &ours), Ok(ours.to_vec()));
    assert_eq!(good.check(at(1660), &ours), Ok(ours.to_vec()));
    assert_eq!(good.check(at(1661), &ours), Err(TokenError::Expired));
    assert_eq!(good.check(at(939), &ours), Err(TokenError::Early));
    let other = ["vault".to_owned()];
    assert!(matches!(good.check(at(1000), &other), Err(TokenError::Audience { .. })));
    assert!(matches!(good.check(at(1000), &[]), Err(TokenError::Audience { .. })));
    for broken in [
        Claims { iss: "https://elsewhere".to_owned(), ..claims() },
        Claims { sub: "system:serviceaccount:rack:other".to_owned(), ..claims() },
        Claims { kubernetes: Bound::default(), ..claims() },
        Claims { sub: "admin".to_owned(), ..claims() },
    ] {
        assert_eq!(broken.check(at(1000), &ours), Err(TokenError::Malformed));
    }
}

#[test]
fn other_forms_are_refused() {
    let none = BASE64URL.encode(r#"{"alg":"none"}"#);
    let critical = BASE64URL.encode(r#"{"alg":"ES256","crit":["x"]}"#);
    let body = BASE64URL.encode("{}");
    for text in [
        "",
        ".",
        "..",
        "a.b.c",
        "eyJ",
        &format!("{none}.{body}."),
        &format!("{none}.{body}.AAAA"),
        &format!("{critical}.{body}.AAAA"),
        &format!("{body}.{body}.AAAA"),
        &format!("{}.{body}.AA=A", BASE64URL.encode(r#"{"alg":"ES256"}"#)),
        &format!("{}.{body}.é", BASE64URL.encode(r#"{"alg":"ES256"}"#)),
    ] {
        assert!(Unverified::parse(text).is_err(), "{text}");
    }
}

#[test]
fn the_key_is_published() {
    let mut point = vec![4];
    point.extend([1; 32]);
    point.extend([2; 32]);
    let key = &key_set("k", &point)["keys"][0];
    assert_eq!((key["kid"].as_str(), key["crv"].as_str()), (Some("k"), Some("P-256")));
    assert_eq!(key["x"], BASE64URL.encode([1; 32]));
    assert_eq!(key["y"], BASE64URL.encode([2; 32]));
    assert_eq!(configuration("https://box:6443/")["jwks_uri"], "https://box:6443/openid/v1/jwks");
}
