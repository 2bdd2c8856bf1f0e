use super::challenge::token;
use super::*;

const HEX: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[test]
fn the_file_is_the_only_layer_or_the_one_of_the_known_type() {
    let layer = |kind: &str, digest: &str| {
        format!(r#"{{"mediaType":"{kind}","digest":"{digest}","size":7}}"#)
    };
    let manifest = |layers: &[String]| format!(r#"{{"layers":[{}]}}"#, layers.join(","));
    let digest = format!("sha256:{HEX}");
    let other = format!("sha256:{}", "0".repeat(64));
    let file = Ok((Digest::of(b""), 7));
    let only = manifest(&[layer("application/octet-stream", &digest)]);
    assert_eq!(file_of(only.as_bytes()), file);
    let second = manifest(&[layer("text/plain", &other), layer(LAYER, &digest)]);
    assert_eq!(file_of(second.as_bytes()), file);
    for (text, words) in [
        ("{}".to_owned(), "of its 0 layers"),
        (r#"{"manifests":[{},{}]}"#.to_owned(), "index of 2"),
        (manifest(&[layer("a/b", &digest), layer("c/d", &digest)]), "none of its 2 layers"),
        (manifest(&[layer(LAYER, "sha512:00")]), "is not SHA-256"),
        (manifest(&[layer(LAYER, HEX)]), "is not SHA-256"),
        ("<html>".to_owned(), "is not valid"),
    ] {
        let refused = file_of(text.as_bytes()).unwrap_err();
        assert!(refused.contains(words), "{text}: {refused}");
    }
}

#[test]
fn challenges_lead_to_a_token() {
    let url = |field: &str| Challenge::parse(field).map(|it| it.url("a/b"));
    let token = "https://auth.example/token";
    let service = r#"service="registry.example",scope="repository:a/b:pull""#;
    let full = format!(r#"Bearer realm="{token}",{service}"#);
    let expected = format!("{token}?service=registry%2Eexample&scope=repository%3Aa%2Fb%3Apull");
    assert_eq!(url(&full), Some(expected));
    let scope = "scope=repository%3Aa%2Fb%3Apull";
    assert_eq!(url(&format!("bearer realm={token}")), Some(format!("{token}?{scope}")));
    let spaced = format!(r#"Bearer  realm = "{token}" , scope = "repository:a/b:pull""#);
    assert_eq!(url(&spaced), Some(format!("{token}?{scope}")));
    let second = format!(r#"Basic realm="a bearer b", Bearer realm="{token}", Digest realm="c""#);
    assert_eq!(url(&second), Some(format!("{token}?{scope}")));
    let query = format!(r#"Bearer error="a \" b, c=d", realm="{token}?x=1""#);
    assert_eq!(url(&query), Some(format!("{token}?x=1&{scope}")));
    for none in ["", "Bearer", "Basic realm=\"a\"", "Bearer service=\"x\"", "Bearer realm=\"a"] {
        assert_eq!(Challenge::parse(none), None, "{none}");
    }
}

#[test]
fn a_token_is_read_from_every_shape_of_answer() {
    for answer in [
        r#"{"token":"abc"}"#,
        r#"{"access_token":"abc","expires_in":300,"issued_at":"2026-01-01T00:00:00Z"}"#,
        r#"{"token":"abc","access_token":"abc","expires_in":"300","issued_at":1767225600}"#,
        r#"{"token":null,"access_token":"abc","expires_in":null}"#,
        r#"{"token":"","access_token":"abc","refresh_token":"other","scope":["a","b"]}"#,
        r#"{"access_token":"other","token":" abc\n","token_type":"Bearer","expires_in":1e3}"#,
    ] {
        assert_eq!(token(answer.as_bytes()).as_deref(), Some("abc"), "{answer}");
    }
    for answer in ["", "[]", "{}", r#"{"token":7}"#, r#"{"access_token":" "}"#, "<html>"] {
        assert_eq!(token(answer.as_bytes()), None, "{answer}");
    }
}
