//! A client of QEMU's monitor (QMP): commands with numbered replies, events to a callback.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use stdx::testing::PATIENCE;

use crate::{Error, hold, poll};

/// Maximum bytes of a line; QEMU's longest line here is its greeting, which is far shorter.
const MAX_LINE: u64 = 1 << 20;

type Answer = Result<Value, String>;
/// Receiver of the answer to a posted command.
pub type Posted = Receiver<Answer>;

type Pending = Arc<Mutex<HashMap<u64, SyncSender<Answer>>>>;

/// One monitor connection. QEMU serves one client at a time, so there is one connection per run.
#[derive(Debug)]
pub struct Qmp {
    writer: Mutex<UnixStream>,
    pending: Pending,
    next: AtomicU64,
}

/// Handler of QEMU's events, called on the reader's thread: an implementation must not wait for an
/// answer of the same connection.
pub trait Events: Send + 'static {
    /// Handles an event; `name` and `data` as in QEMU's QMP reference.
    fn event(&self, name: &str, data: &Value);
    /// Handles the end of the connection: QEMU is ending or gone.
    fn closed(&self);
}

impl Qmp {
    /// Connects to the socket once it exists; gives up as soon as `alive` returns false.
    pub fn connect(path: &Path, mut alive: impl FnMut() -> bool) -> Result<Self, Error> {
        let failed =
            |answer: &str| Error::Qmp { command: "connection".into(), answer: answer.into() };
        let stream = poll("QEMU's monitor socket", PATIENCE, || {
            UnixStream::connect(path).map_or_else(|_| (!alive()).then_some(None), |s| Some(Some(s)))
        })?;
        let stream = stream.ok_or_else(|| failed("it ended before its monitor was up"))?;
        Ok(Self { writer: Mutex::new(stream), pending: Pending::default(), next: 1.into() })
    }

    /// Starts the reader thread; `events` receives QEMU's asynchronous events.
    pub fn start(&self, events: impl Events) -> Result<(), Error> {
        let reader = hold(&self.writer).try_clone().map_err(Error::io("clone monitor socket"))?;
        let pending = Arc::clone(&self.pending);
        std::thread::spawn(move || read(reader, &pending, &events));
        self.ask("qmp_capabilities", json!({})).map(drop)
    }

    /// Sends a command without waiting. QEMU executes commands in the order they were sent.
    pub fn post(&self, command: &str, arguments: Value) -> Posted {
        let (sender, receiver) = sync_channel(1);
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        hold(&self.pending).insert(id, sender);
        let line = json!({ "execute": command, "arguments": arguments, "id": id });
        let sent = hold(&self.writer).write_all(format!("{line}\n").as_bytes());
        if sent.is_err() {
            // Dropping the sender ends the wait of the receiver.
            hold(&self.pending).remove(&id);
        }
        receiver
    }

    /// Sends a command, waits for its answer and returns it.
    pub fn ask(&self, command: &str, arguments: Value) -> Result<Value, Error> {
        let receiver = self.post(command, arguments);
        self.wait(command, &receiver)
    }

    /// Waits for the answer to a posted command.
    pub fn wait(&self, command: &str, receiver: &Posted) -> Result<Value, Error> {
        let answer = match receiver.recv_timeout(PATIENCE) {
            Ok(answer) => answer,
            Err(_) => Err("no answer; the connection ended or QEMU hangs".to_owned()),
        };
        answer.map_err(|answer| Error::Qmp { command: command.to_owned(), answer })
    }
}

fn read(stream: UnixStream, pending: &Pending, events: &impl Events) {
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
            Ok(1..) => {}
            _ => break,
        }
        let Ok(message) = serde_json::from_slice::<Value>(&line) else { break };
        if let Some(name) = message["event"].as_str() {
            events.event(name, &message["data"]);
        } else if let Some(id) = message["id"].as_u64()
            && let Some(waiting) = hold(pending).remove(&id)
        {
            let answer = match message.get("error") {
                Some(error) => Err(error["desc"].as_str().unwrap_or("unknown error").to_owned()),
                None => Ok(message["return"].clone()),
            };
            // The receiver may have given up.
            let _ = waiting.send(answer);
        }
    }
    hold(pending).clear();
    events.closed();
}
