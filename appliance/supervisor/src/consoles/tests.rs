//! Tests of consoles over the API, with a fake BMC.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use objects::fake::Memory;
use serial_console::{Machines, Pending, RecordMode, Recorded};
use stdx::testing::PATIENCE;
use tokio::io::{AsyncWriteExt as _, DuplexStream};
use tokio::time::timeout;

use super::*;

/// Machine `nuc1`, whose console can be opened `sessions` times.
struct Rack {
    sessions: AtomicUsize,
}

impl Machines for Rack {
    fn list(&self) -> Pending<'_, Option<Vec<Recorded>>> {
        let recorded = Recorded { name: "nuc1".into(), mode: RecordMode::Always };
        Box::pin(async { Some(vec![recorded]) })
    }

    fn open<'a>(&'a self, _: &'a str) -> Pending<'a, Result<DuplexStream, OpenError>> {
        Box::pin(async {
            if self.sessions.load(Ordering::Relaxed) == 0 {
                let message = "serial-over-LAN is disabled".to_owned();
                return Err(OpenError { message, is_transient: false });
            }
            self.sessions.fetch_sub(1, Ordering::Relaxed);
            let (ours, mut theirs) = tokio::io::duplex(64);
            tokio::spawn(async move { theirs.write_all(b"login: ").await });
            Ok(ours)
        })
    }

    fn keys<'a>(&'a self, _: &'a str) -> Pending<'a, Vec<String>> {
        Box::pin(async { Vec::new() })
    }
}

/// Follows the console. The recorders live as long as the returned access.
async fn follow(sessions: usize) -> (Access, Result<Response, Response>) {
    let objects = Memory::default();
    let hardware = json!({ "metadata": { "name": "nuc1", "namespace": "default" }, "spec": {} });
    objects.put(HARDWARE, hardware);
    let consoles = Consoles::new(Arc::new(Rack { sessions: sessions.into() }));
    let access = Access { objects: Arc::new(objects), consoles: Arc::default() };
    access.consoles.set(consoles).ok().unwrap();
    let path = Path(("default".to_owned(), "nuc1".to_owned()));
    let query = Query(OutputQuery { follow: true });
    let response = output(State(access.clone()), path, query).await;
    (access, response)
}

async fn text(response: Response) -> String {
    let whole = axum::body::to_bytes(response.into_body(), usize::MAX);
    let bytes = timeout(PATIENCE, whole).await.expect("the output ends").unwrap();
    String::from_utf8(bytes.into()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_machine_without_a_console_gets_an_error_with_the_reason() {
    let (_access, refused) = follow(0).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.status(), StatusCode::CONFLICT);
    let refused = text(refused).await;
    assert!(refused.contains("no serial console now: serial-over-LAN is disabled"), "{refused}");
    assert!(refused.contains("--recorded"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn output_ends_with_the_reason_when_the_console_is_gone() {
    let (_access, shown) = follow(1).await;
    let shown = text(shown.unwrap()).await;
    let order = ["connected]", "login: ", "disconnected]", "serial-over-LAN is disabled]"];
    let places: Vec<_> = order.iter().map(|it| shown.find(it).expect(&shown)).collect();
    assert!(places.is_sorted() && shown.ends_with("is disabled]\r\n"), "{shown}");
}
