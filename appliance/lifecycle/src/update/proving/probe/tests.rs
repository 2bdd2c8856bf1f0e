//! Tests of the responses that a checker accepts.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use agent_rpc::Pin;
use apiserver::Pki;
use config::Config;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket};
use tokio_rustls::TlsAcceptor;

use super::{Probe, early, missing, unbound};

fn pki(folder: &std::path::Path) -> Pki {
    Pki::ensure(folder, &["tinbox".to_owned()], jiff::Timestamp::now()).unwrap()
}

fn config() -> Arc<Config> {
    Arc::new(Config::untold())
}

#[tokio::test]
async fn only_an_answer_under_the_own_key_counts() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let store = folders[0].path().join("objects.redb");
    let store = store::Store::open(&store, store::Options::default()).unwrap();
    let [own, other] = [pki(folders[0].path()), pki(folders[1].path())];
    // A clock that is years wrong makes the certificate look invalid.
    let folder = tempfile::tempdir().unwrap();
    let past = jiff::Timestamp::from_second(1_000_000_000).unwrap();
    let old = Pki::ensure(folder.path(), &["tinbox".to_owned()], past).unwrap();
    let pin = |pki: &Pki| Pin::of(&pki.server_certificate().unwrap()).unwrap();
    for (pki, answer, good) in [
        (&own, "HTTP/1.1 401 ", true),
        (&old, "HTTP/1.1 401 ", true),
        (&own, "SSH-2.0-x", false),
        (&other, "HTTP/1.1 ", false),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = TlsAcceptor::from(pki.server_config().unwrap());
        let serving = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            // A client that does not trust the server disconnects.
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            let _ = stream.read(&mut [0; 256]).await;
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        });
        let known = if std::ptr::eq(pki, &old) { &old } else { &own };
        let probe = Probe::new(config(), pin(known), address, store.clone()).unwrap();
        let asked = probe.api().await;
        assert_eq!(asked.is_ok(), good, "{answer}: {asked:?}");
        serving.await.unwrap();
    }
    // The port is bound without a listener, so that no other program can get it.
    let closed = TcpSocket::new_v4().unwrap();
    closed.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address = closed.local_addr().unwrap();
    let probe = Probe::new(config(), pin(&own), address, store).unwrap();
    assert!(probe.api().await.is_err());
}

#[test]
fn a_clock_behind_the_system_is_a_lack() {
    let at = |secs| SystemTime::UNIX_EPOCH + Duration::from_secs(secs);
    assert!(early(at(5), Some(at(6))).is_some());
    assert_eq!(early(at(6), Some(at(6))), None);
    assert_eq!(early(at(0), None), None);
}

#[test]
fn a_card_that_is_not_there_is_a_lack() {
    let gone = [("eth1", [10, 0, 0, 1].into())];
    assert_eq!(missing(gone.into_iter(), &[]), ["eth1 is missing"]);
    let lack = unbound("eth1", [10, 0, 0, 1].into(), &[]);
    assert_eq!(lack.as_deref(), Some("eth1 is missing"));
}
