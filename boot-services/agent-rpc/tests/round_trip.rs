//! Tests of the client against the server over real TCP connections.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_rpc::client::{Client, Error};
use agent_rpc::{
    ActionState, Assignment, Attributes, Credentials, DiskChoice, Hello, Inventory, Network,
    Pending, Pin, Progress, Refusal, Report, Workflows, server,
};
use stdx::Secret;

#[derive(Default)]
struct Tinbox {
    answer: Mutex<Option<Result<Assignment, Refusal>>>,
    seen: Mutex<Vec<String>>,
    reports: Mutex<Vec<Report>>,
    choices: Mutex<Vec<DiskChoice>>,
    hellos: Mutex<Vec<Hello>>,
    peers: Mutex<Vec<Option<SocketAddr>>>,
}

impl Workflows for Tinbox {
    fn next<'a>(
        &'a self,
        agent_id: &'a str,
        attributes: Option<Attributes>,
        patience: Duration,
    ) -> Pending<'a, Result<Assignment, Refusal>> {
        assert_eq!(patience, Duration::from_secs(20));
        let names = attributes.map(|all| all.network.len()).unwrap_or_default();
        self.seen.lock().unwrap().push(format!("next {agent_id} {names}"));
        let answer = self.answer.lock().unwrap().clone().unwrap();
        Box::pin(async move { answer })
    }

    fn report(&self, report: Report) -> Pending<'_, Result<(), Refusal>> {
        self.reports.lock().unwrap().push(report);
        Box::pin(async { Ok(()) })
    }

    fn progress(&self, progress: Progress) -> Pending<'_, Option<String>> {
        let Progress { bytes_done, bytes_total, message, output, .. } = progress;
        let line = format!("progress {bytes_done}/{bytes_total} {message} {output:?}");
        self.seen.lock().unwrap().push(line);
        let stop = (bytes_done == bytes_total).then(|| "it was cancelled".to_owned());
        Box::pin(async { stop })
    }

    fn choose_disk(&self, choice: DiskChoice) -> Pending<'_, Result<(), Refusal>> {
        let wwn = choice.wwn.clone();
        self.choices.lock().unwrap().push(choice);
        let refusal = Refusal::Precondition("another disk".to_owned());
        Box::pin(async move { if wwn.is_empty() { Err(refusal) } else { Ok(()) } })
    }

    fn power_off_request<'a>(
        &'a self,
        agent_id: &'a str,
        boot: &'a str,
        patience: Duration,
    ) -> Pending<'a, Result<Option<String>, Refusal>> {
        let line = format!("wait of {agent_id} in {boot:?}, {} s", patience.as_secs());
        self.seen.lock().unwrap().push(line);
        Box::pin(async move { Ok((boot == "boot-2").then(|| "r1".to_owned())) })
    }

    fn confirm_power_off(&self, agent_id: &str, boot: &str, request_id: &str) -> bool {
        self.seen.lock().unwrap().push(format!("{agent_id} in {boot:?} confirms {request_id}"));
        request_id == "r1"
    }

    fn hello(&self, hello: Hello, peer: Option<SocketAddr>) {
        self.hellos.lock().unwrap().push(hello);
        self.peers.lock().unwrap().push(peer);
    }

    fn authenticate(&self, agent_id: &str, shown: &Credentials<'_>) -> Result<(), Refusal> {
        if shown.token == Some(&format!("token-of-{agent_id}")) {
            Ok(())
        } else {
            Err(Refusal::Unauthenticated("the token is not this agent's".into()))
        }
    }
}

async fn serve(tinbox: &Arc<Tinbox>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let routes = server::routes(tinbox.clone());
    let service = routes.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    address
}

/// Listener for TLS connections, with a self-signed certificate.
struct TlsListener(tokio::net::TcpListener, tokio_rustls::TlsAcceptor);

impl axum::serve::Listener for TlsListener {
    type Io = tokio_rustls::server::TlsStream<tokio::net::TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, peer) = self.0.accept().await.unwrap();
            if let Ok(stream) = self.1.accept(stream).await {
                return (stream, peer);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// Starts the server with TLS. Returns its address and the pin of its key.
async fn serve_tls(tinbox: &Arc<Tinbox>) -> (String, Pin) {
    let made = rcgen::generate_simple_self_signed(["tinbox.local".to_owned()]).unwrap();
    let pin = Pin::of(made.cert.der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let listener = TlsListener(listener, tokio_rustls::TlsAcceptor::from(Arc::new(config)));
    let routes = server::routes(tinbox.clone());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    (address, pin)
}

#[tokio::test]
async fn over_tls_one_key_is_trusted_and_no_other() {
    let tinbox = Arc::new(Tinbox::default());
    *tinbox.answer.lock().unwrap() = Some(Ok(Assignment::default()));
    let (address, pin) = serve_tls(&tinbox).await;
    let token = Secret::from("token-of-agent-1");
    let to = |pin| Client::connect(&address, "agent-1", Some(&token), pin).unwrap();
    assert_eq!(to(Some(pin)).next(None).await.unwrap(), Assignment::default());

    let (_, another) = serve_tls(&tinbox).await;
    assert_ne!(pin, another);
    let error = to(Some(another)).next(None).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    let error = to(None).next(None).await.unwrap_err();
    assert!(!error.is_permanent() && !error.is_no_action(), "it is asked again: {error:?}");
}

fn client(address: &str, token: &str) -> Client {
    Client::connect(address, "agent-1", Some(&Secret::from(token)), None).unwrap()
}

#[tokio::test]
async fn everything_arrives_as_it_was_sent() {
    let tinbox = Arc::new(Tinbox::default());
    let client = client(&serve(&tinbox).await, "token-of-agent-1");

    let assignment = Assignment {
        workflow_id: "default/wf".into(),
        task_id: "t".into(),
        agent_id: "agent-1".into(),
        action_id: "a".into(),
        name: "stream".into(),
        image: "image2disk".into(),
        timeout_secs: 600,
        environment: vec!["A=1".into()],
        on_failure: vec!["tell".into(), "somebody".into()],
        on_timeout: vec!["tell".into()],
        ..Assignment::default()
    };
    *tinbox.answer.lock().unwrap() = Some(Ok(assignment.clone()));
    let attributes = Attributes { network: vec![Network::default()], ..Attributes::default() };
    assert_eq!(client.next(Some(attributes.clone())).await.unwrap(), assignment);

    let hello = Hello {
        agent_id: "agent-1".into(),
        agent_version: "0.1.0".into(),
        boot_id: "b".into(),
        attributes: Some(attributes),
        inventory: Some(Inventory { management_engine: true, ..Inventory::default() }),
    };
    client.hello(hello.clone()).await.unwrap();
    assert_eq!(*tinbox.hellos.lock().unwrap(), [hello]);
    let peer = tinbox.peers.lock().unwrap()[0].unwrap();
    assert_eq!(peer.ip().to_string(), "127.0.0.1");

    let report = Report {
        workflow_id: "default/wf".into(),
        agent_id: "agent-1".into(),
        task_id: "t".into(),
        action_id: "a".into(),
        action_name: "stream".into(),
        state: ActionState::Failed,
        start: Some("2026-11-21T10:00:00.000000001Z".parse().unwrap()),
        stop: Some("2026-11-21T10:01:02Z".parse().unwrap()),
        duration: "1m2s".into(),
        message: "sha256 of the image is X, expected Y".into(),
    };
    client.report(report.clone()).await.unwrap();
    assert_eq!(*tinbox.reports.lock().unwrap(), [report]);

    let progress = Progress {
        agent_id: "agent-1".into(),
        workflow_id: "default/wf".into(),
        task_id: "t".into(),
        action_id: "a".into(),
        bytes_done: 5,
        bytes_total: 1 << 40,
        output: vec!["one".into(), "two".into()],
        message: "writing".into(),
    };
    assert_eq!(client.progress(progress.clone()).await.unwrap(), None);
    let done = Progress { bytes_done: 1 << 40, ..progress };
    assert_eq!(client.progress(done).await.unwrap().as_deref(), Some("it was cancelled"));
    tinbox.seen.lock().unwrap().pop();
    assert_eq!(
        *tinbox.seen.lock().unwrap(),
        ["next agent-1 1", "progress 5/1099511627776 writing [\"one\", \"two\"]"]
    );
}

#[tokio::test]
async fn refusals_keep_their_kind_and_words() {
    let tinbox = Arc::new(Tinbox::default());
    let client = client(&serve(&tinbox).await, "token-of-agent-1");
    for (refusal, permanent, no_action) in [
        (Refusal::NotFound("no workflow".into()), true, true),
        (Refusal::Precondition("not yet".into()), true, true),
        (Refusal::InvalidArgument("nonsense".into()), true, false),
        (Refusal::Unauthenticated("who".into()), false, false),
        (Refusal::Internal("broken".into()), false, false),
    ] {
        *tinbox.answer.lock().unwrap() = Some(Err(refusal.clone()));
        let error = client.next(None).await.unwrap_err();
        assert_eq!(error.is_permanent(), permanent, "{error:?}");
        assert_eq!(error.is_no_action(), no_action, "{error:?}");
        let Error::Refused { refusal: received, .. } = error else { panic!("{error:?}") };
        assert_eq!(received, refusal);
    }
    *tinbox.answer.lock().unwrap() = Some(Err(Refusal::Unavailable("starting".into())));
    let error = client.next(None).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }) && !error.is_permanent());
}

#[tokio::test]
async fn no_call_passes_with_a_wrong_token() {
    let tinbox = Arc::new(Tinbox::default());
    let address = serve(&tinbox).await;
    let stranger = client(&address, "guess");
    let nobody = Client::connect(&address, "agent-1", None, None).unwrap();
    for client in [&stranger, &nobody] {
        let hello = Hello {
            agent_id: "agent-1".into(),
            agent_version: String::new(),
            boot_id: String::new(),
            attributes: None,
            inventory: None,
        };
        for error in [client.next(None).await.unwrap_err(), client.hello(hello).await.unwrap_err()]
        {
            let Error::Refused { refusal: Refusal::Unauthenticated(_), .. } = error else {
                panic!("{error:?}")
            };
        }
    }
    assert!(tinbox.seen.lock().unwrap().is_empty() && tinbox.hellos.lock().unwrap().is_empty());
}

#[tokio::test]
async fn nobody_at_home_is_said_so() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let error = client(&address, "x").next(None).await.unwrap_err();
    assert_eq!(error.to_string(), format!("no response to GetAction from {address}"));
    assert!(!error.is_permanent());
    assert!(Client::connect("not an authority", "a", None, None).is_err());
}

#[tokio::test]
async fn a_choice_of_a_disk_arrives_and_is_refused_for_good() {
    let tinbox = Arc::new(Tinbox::default());
    let client = client(&serve(&tinbox).await, "token-of-agent-1");
    let choice = DiskChoice {
        agent_id: "agent-1".into(),
        workflow_id: "default/wf".into(),
        task_id: "t".into(),
        action_id: "a".into(),
        hint: "model=x".into(),
        wwn: "naa.5".into(),
        serial: "S3Z".into(),
        model: "X 860".into(),
        bytes: 1 << 40,
    };
    client.choose_disk(choice.clone()).await.unwrap();
    let another = DiskChoice { wwn: String::new(), ..choice.clone() };
    let error = client.choose_disk(another.clone()).await.unwrap_err();
    assert!(matches!(&error, Error::Refused { refusal, .. } if refusal.is_permanent()), "{error}");
    assert_eq!(*tinbox.choices.lock().unwrap(), [choice, another]);
}

#[tokio::test]
async fn a_request_to_power_off_arrives_and_is_confirmed() {
    let tinbox = Arc::new(Tinbox::default());
    let address = serve(&tinbox).await;
    let first = client(&address, "token-of-agent-1").in_boot("boot-1");
    assert_eq!(first.power_off_request().await.unwrap(), None);
    let second = client(&address, "token-of-agent-1").in_boot("boot-2");
    assert_eq!(second.power_off_request().await.unwrap().as_deref(), Some("r1"));
    assert!(second.confirm_power_off("r1").await.unwrap());
    assert!(!second.confirm_power_off("r0").await.unwrap(), "it has ended");
    let expected = [
        "wait of agent-1 in \"boot-1\", 20 s",
        "wait of agent-1 in \"boot-2\", 20 s",
        "agent-1 in \"boot-2\" confirms r1",
        "agent-1 in \"boot-2\" confirms r0",
    ];
    assert_eq!(*tinbox.seen.lock().unwrap(), expected);
    let other = client(&address, "token-of-agent-2").in_boot("boot-1");
    let refused = [
        other.power_off_request().await.map(drop).unwrap_err(),
        other.confirm_power_off("r1").await.map(drop).unwrap_err(),
    ];
    for error in refused {
        let is_refused =
            matches!(&error, Error::Refused { refusal: Refusal::Unauthenticated(_), .. });
        assert!(is_refused, "{error}");
    }
    assert_eq!(tinbox.seen.lock().unwrap().len(), expected.len());
}

#[tokio::test]
async fn a_good_token_is_shown_to_the_listener_and_no_other() {
    for (token, good) in [("token-of-agent-2", false), ("token-of-agent-1", true)] {
        let tinbox = Arc::new(Tinbox::default());
        *tinbox.answer.lock().unwrap() = Some(Ok(Assignment::default()));
        let proof = http_edge::Proof::within(stdx::testing::PATIENCE);
        let routes = server::routes(tinbox.clone()).layer(axum::Extension(proof.clone()));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move { axum::serve(listener, routes).await });
        assert_eq!(client(&address, token).next(None).await.is_ok(), good);
        assert_eq!(proof.is_shown(), good);
    }
}
