use jiff::Timestamp;
use serde_json::{Value, json};
use stdx::Secret;

use super::signature::{Signed, sign};
use super::{Algorithm, Rpc, RpcOptions, state_of};
use crate::client::Tls;
use crate::{Error, Power};

fn options(secrets: &[(Algorithm, &str)]) -> RpcOptions {
    let secrets = secrets.iter().map(|(of, secret)| (*of, Secret::from(*secret))).collect();
    let consumer_url = "http://198.51.100.1/power".to_owned();
    RpcOptions { consumer_url, secrets, ..RpcOptions::default() }
}

#[test]
fn a_signature_is_that_of_the_stock_provider() {
    // Recorded from bmclib v2.3.5.
    let body = r#"{"id":1,"host":"192.0.2.5","method":"ping"}"#;
    let mut headers = http::HeaderMap::new();
    headers.insert("x-rufio-timestamp", "2026-01-02T03:04:05Z".parse().unwrap());
    let options = options(&[(Algorithm::Sha256, "s3cret")]);
    let signed = Signed::of(body, &headers, &options.signed_headers);
    let signature = "sha256=d9154f9c9197291d2a217bf3733edd0b16e995c4a3fdc63a3735410e7524bc9c";
    assert_eq!(sign(&options, &signed), [("X-Rufio-Signature-256".into(), signature.into())]);
}

#[test]
fn a_request_has_the_headers_and_the_body_of_the_stock_provider() {
    let secrets = [(Algorithm::Sha512, "c"), (Algorithm::Sha256, "a"), (Algorithm::Sha256, "b")];
    let rpc = Rpc::new(options(&secrets), "192.0.2.5", Tls::Verified).unwrap();
    let now = Timestamp::from_second(1_767_323_045).unwrap();
    let call = rpc.call("setPowerState", Some(json!({ "state": "cycle" })), now).unwrap();
    let body: Value = serde_json::from_slice(&call.body).unwrap();
    let expected = json!({
        "id": 1_767_323_045_000_000_000_i64, "host": "192.0.2.5", "method": "setPowerState",
        "params": { "state": "cycle" },
    });
    assert_eq!(body, expected);
    assert_eq!(call.headers["x-rufio-timestamp"], "2026-01-02T03:04:05Z");
    assert_eq!(call.headers["content-type"], "application/json");
    let text = |name: &str| call.headers[name].to_str().unwrap().to_owned();
    let both = text("x-rufio-signature-256");
    assert_eq!(both.matches("sha256=").count(), 2, "{both}");
    assert!(text("x-rufio-signature-512").starts_with("sha512="));
    assert!(!format!("{:?}", call.headers).contains("secret"));
}

#[test]
fn options_that_no_request_can_have_are_refused_at_once() {
    let wrong: [fn(&mut RpcOptions); 5] = [
        |options| options.consumer_url = "ftp://a/b".to_owned(),
        |options| options.consumer_url = "http://user:s3cret@a/b".to_owned(),
        |options| options.timestamp_format = "Mon Jan _2".to_owned(),
        |options| options.method = "G T".to_owned(),
        |options| options.static_headers.push(("a b".to_owned(), "c".to_owned())),
    ];
    for change in wrong {
        let mut options = options(&[]);
        change(&mut options);
        let refused = Rpc::new(options.clone(), "a", Tls::Verified).err();
        assert!(matches!(refused, Some(Error::Invalid { .. })), "{options:?}");
        assert!(!format!("{refused:?}").contains("s3cret"), "{refused:?}");
    }
}

#[test]
fn a_state_is_a_word_of_the_result() {
    for (text, power) in [
        ("on", Power::On),
        ("Off", Power::Off),
        ("PoweredOn", Power::On),
        ("status: running", Power::On),
        ("connecting", Power::Unknown),
        ("on or off", Power::Unknown),
        ("", Power::Unknown),
    ] {
        assert_eq!(state_of(text), power, "{text}");
    }
}
