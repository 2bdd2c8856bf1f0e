//! Errors of `box claim`, with a fake page of a box.

use std::process::Stdio;

use apiserver::Pki;
use axum::Router;
use axum::body::Bytes;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use http::StatusCode;
use http::header::SET_COOKIE;
use jiff::Timestamp;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::oneshot;

use crate::place::{Outcome, end};

/// Response of the page to a claim, by the code in the form.
async fn claim(form: Bytes) -> Response {
    let form = String::from_utf8(form.into()).unwrap();
    let (status, sentence) = match form.split_once('&').unwrap().0 {
        "code=WRONG1" => (StatusCode::FORBIDDEN, "Wrong code. Tries left for this address: 4."),
        "code=SHORT1" => (StatusCode::UNPROCESSABLE_ENTITY, "A passphrase has 8 characters."),
        "code=FULL11" => (StatusCode::SERVICE_UNAVAILABLE, "The box is busy. Try again."),
        "code=OWNED1" => return Redirect::to("/login").into_response(),
        "code=EMPTY1" => (StatusCode::NOT_FOUND, ""),
        _ => return (StatusCode::SEE_OTHER, [(SET_COOKIE, "session=1")]).into_response(),
    };
    (status, sentence).into_response()
}

async fn claimed(address: &str, folder: &std::path::Path, line: &[&str], typed: &str) -> Outcome {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tinbox"));
    command.args(["box", "claim", address, "--kubeconfig", "new.kubeconfig"]).args(line);
    command.current_dir(folder).env_clear().kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // The program may end before it reads.
    let _ = stdin.write_all(typed.as_bytes()).await;
    drop(stdin);
    end(child).await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_refusal_of_a_claim_has_its_own_hint() {
    let folder = tempfile::tempdir().unwrap();
    let pki = Pki::ensure(folder.path(), &["127.0.0.1".to_owned()], Timestamp::now()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let kubeconfig = get(async || (StatusCode::INTERNAL_SERVER_ERROR, "The disk is full."));
    let page = Router::new()
        .route("/S", get(async || "claim me").post(claim))
        .route("/kubeconfig", kubeconfig);
    let (_stop, stopped) = oneshot::channel::<()>();
    let tls = pki.server_config().unwrap();
    tokio::spawn(apiserver::serve(listener, tls, page, async { drop(stopped.await) }));

    let unconfirmed = claimed(&address, folder.path(), &[], "").await;
    assert_eq!(unconfirmed.code, 2, "{unconfirmed:?}");
    let (_, pin) = unconfirmed.err.split_once("then give --pin ").unwrap();
    let pin = pin.trim().to_owned();
    let silent = claimed(&address, folder.path(), &["--pin", &pin], "").await;
    assert_eq!(silent.code, 2, "{silent:?}");
    assert!(silent.err.contains("\nhint: give --secrets-stdin, and on standard"), "{silent:?}");

    for (code, why, hint) in [
        ("WRONG1", "claim the box at ADDRESS: Wrong code.", "the code is on the box's screen"),
        ("SHORT1", "claim the box at ADDRESS: A passphrase has", "correct this and run"),
        ("FULL11", "claim the box at ADDRESS: The box is busy.", "wait a moment"),
        ("OWNED1", "claim the box at ADDRESS: it has an owner", "the owner downloads"),
        ("EMPTY1", "claim the box at ADDRESS: HTTP status 404", "check that ADDRESS is the page"),
        (
            "RIGHT1",
            "read the kubeconfig of the box at ADDRESS: The disk",
            "the box is claimed: log",
        ),
    ] {
        let line = ["--pin", &pin, "--secrets-stdin"];
        let refused =
            claimed(&address, folder.path(), &line, &format!("{code}\nword word\n")).await;
        assert_eq!(refused.code, 1, "{refused:?}");
        let expected = format!("error: cannot {}", why.replace("ADDRESS", &address));
        assert!(refused.err.starts_with(&expected), "{code}: {refused:?}");
        assert!(refused.err.contains(&format!("\nhint: {hint}")), "{code}: {refused:?}");
        assert!(!folder.path().join("new.kubeconfig").exists(), "half a file stays");
    }
}
