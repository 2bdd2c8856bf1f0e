use super::{ClientError, ReachFailure};

fn refused(code: u16, reason: &str, message: &str) -> ClientError {
    let (what, reason) = ("create workflow".to_owned(), reason.to_owned());
    ClientError::Refused { what, code, reason, message: message.to_owned(), hint: None }
}

fn reach(trouble: ReachFailure) -> ClientError {
    ClientError::Reach { server: "https://10.77.0.1:6443".to_owned(), trouble, why: "x".to_owned() }
}

#[test]
fn only_a_temporary_failure_is_tried_again() {
    for code in 400..600 {
        let expected = matches!(code, 410 | 429 | 500 | 502 | 503 | 504);
        assert_eq!(refused(code, "", "x").is_passing(), expected, "{code}");
    }
    for (trouble, expected) in [
        (ReachFailure::Refused, true),
        (ReachFailure::Silent, true),
        (ReachFailure::Broken, true),
        (ReachFailure::Address, false),
        (ReachFailure::Name, false),
        (ReachFailure::UnknownCa, false),
        (ReachFailure::OtherName, false),
        (ReachFailure::Expired, false),
        (ReachFailure::Tls, false),
    ] {
        assert_eq!(reach(trouble).is_passing(), expected, "{trouble:?}");
    }
    let answer = ClientError::Answer { what: "read".to_owned(), why: "x".to_owned() };
    assert!(!answer.is_passing());
}

#[test]
fn a_missing_file_has_no_hint_about_kinds() {
    let missing = refused(404, "NotFound", "http://10.0.0.1:7080/a.raw: the image does not exist");
    assert_eq!(missing.hint("tinbox"), None);
    let kind = refused(404, "NotFound", "the server could not find the requested resource");
    assert!(kind.hint("tinbox").is_some_and(|hint| hint.contains("namespace")));
    let guest = "this box is a program on a host: edit its configuration, then restart tinboxd";
    assert_eq!(refused(404, "NotFound", guest).hint("tinbox"), None, "the message is the advice");
    let namespace = refused(404, "NotFound", "namespaces \"nowhere\" not found");
    assert!(namespace.hint("tinbox").is_some());
}
