use std::time::Duration;

use api::bmc::MACHINE;
use api::network::NETWORK;
use api::tinkerbell::HARDWARE;
use box_client::{ClientError, ReachFailure};

use super::Error;
use crate::report;

fn refused(code: u16, reason: &str, message: &str) -> Error {
    let (what, reason) = ("create workflow".to_owned(), reason.to_owned());
    ClientError::Refused { what, code, reason, message: message.to_owned(), hint: None }.into()
}

fn reach(trouble: ReachFailure, why: &str) -> Error {
    let (server, why) = ("https://10.77.0.1:6443".to_owned(), why.to_owned());
    ClientError::Reach { server, trouble, why }.into()
}

fn all() -> Vec<Error> {
    vec![
        Error::Usage("--hardware contains no machine".into()),
        ClientError::NoKubeconfig("/root/.tinbox/admin.kubeconfig".into()).into(),
        ClientError::Kubeconfig {
            path: "a.kubeconfig".into(),
            why: "its user has no token".into(),
        }
        .into(),
        Error::Read { file: "hardware.yaml".into(), source: std::io::Error::from_raw_os_error(2) },
        Error::Content { file: "hardware.yaml".into(), why: "it contains no object".into() },
        ClientError::Unusable {
            server: "https://10.77.0.1:6443".into(),
            why: "the token is not valid in a header".into(),
        }
        .into(),
        reach(ReachFailure::Refused, "connection refused"),
        reach(ReachFailure::Address, "connection refused"),
        reach(ReachFailure::Silent, "no answer"),
        reach(ReachFailure::Name, "its name does not resolve"),
        reach(ReachFailure::UnknownCa, "its certificate is not signed by the kubeconfig's CA"),
        reach(ReachFailure::OtherName, "its certificate is for another name or address"),
        reach(ReachFailure::Expired, "its certificate is not valid at this time"),
        reach(ReachFailure::Tls, "received corrupt message"),
        reach(ReachFailure::Broken, "it closed the connection"),
        refused(401, "Unauthorized", "Unauthorized"),
        refused(403, "Forbidden", "namespaces \"default\" is forbidden: it is permanent"),
        refused(404, "NotFound", "the server could not find the requested resource"),
        refused(409, "AlreadyExists", "workflows.tinkerbell.org \"a\" already exists"),
        refused(409, "Conflict", "the object has been modified"),
        refused(422, "Invalid", "Hardware \"a\" is invalid: spec.interfaces[0].dhcp.mac: x"),
        refused(413, "RequestEntityTooLarge", "limit is 3145728"),
        refused(429, "TooManyRequests", "too many requests"),
        refused(500, "InternalError", "Internal error occurred: write the store"),
        ClientError::Answer { what: "read hardware/a".into(), why: "expected value".into() }.into(),
        ClientError::Unknown {
            resource: HARDWARE,
            text: "nuc9".into(),
            namespace: "default".into(),
        }
        .into(),
        ClientError::Unknown { resource: NETWORK, text: "eth9".into(), namespace: String::new() }
            .into(),
        Error::Argument {
            why: "/root/a.kubeconfig already exists".into(),
            hint: "name a new file with --kubeconfig".into(),
        },
        ClientError::Ambiguous { resource: MACHINE, text: "x".into(), names: "a, b".into() }.into(),
        Error::Unable {
            what: "switch nuc1".into(),
            why: "it has no bmcRef".into(),
            hint: "name its BMC Machine in spec.bmcRef",
        },
        Error::Failed {
            what: "workflow nuc1-x7k2p".into(),
            how: "failed",
            why: "action stream-image: sha256 of the image is 00, expected ff".into(),
            look: "workflow events nuc1-x7k2p".into(),
        },
        Error::too_late(
            "workflow nuc1-x7k2p".into(),
            Duration::from_secs(3600),
            Some("workflow events nuc1-x7k2p --follow".into()),
        ),
        Error::too_late("the history of nuc1".into(), Duration::from_secs(3600), None),
        Error::Output(std::io::Error::from_raw_os_error(28)),
    ]
}

#[test]
fn every_error_as_it_is_read() {
    let lines = |error: &Error| format!("[{}] {}", error.exit_code(), report(error, "tinbox"));
    let text: String = all().iter().map(lines).collect();
    golden::check("errors.txt", &text);
}

#[test]
fn a_reader_that_left_is_no_error() {
    assert!(Error::Output(std::io::Error::from_raw_os_error(32)).is_broken_pipe());
    assert!(!Error::Output(std::io::Error::from_raw_os_error(28)).is_broken_pipe());
}
