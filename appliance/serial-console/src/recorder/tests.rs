use std::sync::atomic::{AtomicUsize, Ordering};

use stdx::testing::PATIENCE;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;
use crate::{Consoles, Pending, Recorded};

/// Sessions that a test opens before it takes one; more mean a loop of the recorder.
const SESSIONS_MAX: usize = 16;

/// One machine whose sessions the test holds.
struct OneMachine {
    mode: RecordMode,
    sessions: mpsc::Sender<DuplexStream>,
    opened: AtomicUsize,
}

impl Machines for OneMachine {
    fn list(&self) -> Pending<'_, Option<Vec<Recorded>>> {
        let recorded = Recorded { name: "node".into(), mode: self.mode };
        Box::pin(async { Some(vec![recorded]) })
    }

    fn open<'a>(&'a self, _: &'a str) -> Pending<'a, Result<DuplexStream, OpenError>> {
        Box::pin(async {
            if self.opened.fetch_add(1, Ordering::Relaxed) == 0 {
                let message = "in use by another client".to_owned();
                return Err(OpenError { message, is_transient: true });
            }
            let (ours, theirs) = tokio::io::duplex(64);
            self.sessions.try_send(theirs).unwrap();
            Ok(ours)
        })
    }

    fn keys<'a>(&'a self, _: &'a str) -> Pending<'a, Vec<String>> {
        Box::pin(async { Vec::new() })
    }
}

type Sessions = mpsc::Receiver<DuplexStream>;

fn start(mode: RecordMode) -> (Consoles, Sessions, DropGuard) {
    let (sessions, opened) = mpsc::channel(SESSIONS_MAX);
    let consoles = Consoles::new(Arc::new(OneMachine { mode, sessions, opened: 0.into() }));
    let shutdown = CancellationToken::new();
    let (running, until) = (consoles.clone(), shutdown.clone());
    tokio::spawn(async move { running.run(until).await });
    (consoles, opened, shutdown.drop_guard())
}

async fn see(shown: &mut ConsoleOutput, wanted: &str) {
    let mut text = String::new();
    let read = async {
        while !text.contains(wanted) {
            text.push_str(&String::from_utf8_lossy(&shown.next().await.unwrap()));
        }
    };
    timeout(PATIENCE, read).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn output_before_the_first_viewer_is_recorded_with_marks() {
    let (consoles, mut sessions, _running) = start(RecordMode::Always);
    let mut machine = sessions.recv().await.unwrap();
    let mut first = consoles.attach("node").await.unwrap();
    machine.write_all(b"Booting Linux\r\n").await.unwrap();
    see(&mut first.shown, "Booting Linux").await;
    let second = consoles.attach("node").await.unwrap();
    let history = String::from_utf8(second.history).unwrap();
    let order = ["in use by another client]", "connected]", "Booting Linux"];
    let places: Vec<_> = order.iter().map(|text| history.find(text).expect(text)).collect();
    assert!(places.is_sorted(), "{history}");

    // The session ends, and the next one follows by itself.
    drop(machine);
    let mut machine = sessions.recv().await.unwrap();
    machine.write_all(b"again\r\n").await.unwrap();
    see(&mut first.shown, "disconnected]").await;
    see(&mut first.shown, "again").await;
    let recorded = String::from_utf8(consoles.recorded("node").await.unwrap()).unwrap();
    assert_eq!(recorded.matches("connected]").count(), 3, "{recorded}");
    assert!(consoles.attach("other").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn viewers_share_one_session_and_a_slow_one_loses_output_only_for_itself() {
    let (consoles, mut sessions, _running) = start(RecordMode::Always);
    let mut machine = sessions.recv().await.unwrap();
    let mut slow = consoles.attach("node").await.unwrap();
    let mut quick = consoles.attach("node").await.unwrap();
    for number in 0..OUTPUT_PIECES + 10 {
        let line = format!("line {number}.\r\n");
        machine.write_all(line.as_bytes()).await.unwrap();
        see(&mut quick.shown, &format!("line {number}.")).await;
    }
    see(&mut slow.shown, "pieces of output were skipped").await;
    see(&mut slow.shown, "line 265.").await;
    for viewer in [&slow, &quick] {
        assert!(viewer.input.send(b"ok").await);
    }
    let mut typed = [0; 4];
    machine.read_exact(&mut typed).await.unwrap();
    assert_eq!(&typed, b"okok");
    assert!(sessions.try_recv().is_err(), "one session serves both");
}

#[tokio::test(start_paused = true)]
async fn a_console_on_request_has_a_session_only_with_viewers() {
    let (consoles, mut sessions, _running) = start(RecordMode::OnRequest);
    sleep(Duration::from_secs(120)).await;
    assert!(sessions.try_recv().is_err(), "no session without a viewer");
    let viewer = consoles.attach("node").await.unwrap();
    let mut machine = timeout(PATIENCE, sessions.recv()).await.unwrap().unwrap();
    drop(viewer);
    let mut rest = Vec::new();
    timeout(PATIENCE, machine.read_to_end(&mut rest)).await.unwrap().unwrap();
}

/// Machine whose BMC has no console.
struct NoConsole;

impl Machines for NoConsole {
    fn list(&self) -> Pending<'_, Option<Vec<Recorded>>> {
        let recorded = Recorded { name: "node".into(), mode: RecordMode::OnRequest };
        Box::pin(async { Some(vec![recorded]) })
    }

    fn open<'a>(&'a self, _: &'a str) -> Pending<'a, Result<DuplexStream, OpenError>> {
        let message = "the BMC has no serial-over-LAN".to_owned();
        Box::pin(async { Err(OpenError { message, is_transient: false }) })
    }

    fn keys<'a>(&'a self, _: &'a str) -> Pending<'a, Vec<String>> {
        Box::pin(async { Vec::new() })
    }
}

#[tokio::test(start_paused = true)]
async fn a_viewer_learns_that_no_session_can_be_opened() {
    let consoles = Consoles::new(Arc::new(NoConsole));
    let mut viewer = consoles.attach("node").await.unwrap();
    let refused = timeout(PATIENCE, viewer.session.tried()).await.unwrap().unwrap_err();
    assert_eq!(refused.message, "the BMC has no serial-over-LAN");
    see(&mut viewer.shown, "no serial console: the BMC has no serial-over-LAN]").await;
    timeout(PATIENCE, viewer.session.refused()).await.unwrap();

    let (consoles, mut sessions, _running) = start(RecordMode::Always);
    let mut viewer = consoles.attach("node").await.unwrap();
    timeout(PATIENCE, viewer.session.tried()).await.unwrap().unwrap();
    sessions.recv().await.unwrap();
    let refused = timeout(Duration::from_secs(60), viewer.session.refused()).await;
    assert!(refused.is_err(), "a failure that passes ends no viewer");
}
