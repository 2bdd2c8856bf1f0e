//! Recorder of one machine: holds the session, records its output and shares it among the viewers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, split};
use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::ring::{Budget, Ring};
use crate::{Machines, OpenError, RecordMode};

/// Pieces of output that wait for one viewer. A slower viewer loses the oldest ones.
const OUTPUT_PIECES: usize = 256;
/// Maximum length of a piece of output, in bytes.
const PIECE_BYTES: usize = 4096;
/// Pieces of typed characters that wait for the machine, of all viewers together.
const INPUT_PIECES: usize = 64;
/// Wait before the first new attempt; each failure doubles the wait.
const BACKOFF_MIN: Duration = Duration::from_secs(1);
/// Maximum wait before an attempt that may succeed soon.
const BACKOFF_MAX: Duration = Duration::from_secs(60);
/// Wait before an attempt that needs a change of the settings first.
const BACKOFF_PERMANENT: Duration = Duration::from_secs(600);
/// Duration of a session after which the wait starts again from [`BACKOFF_MIN`].
const STABLE: Duration = Duration::from_secs(30);
/// Silence after which the recording has a time mark before the next output.
const MARK_AFTER: Duration = Duration::from_secs(300);
/// Time that a session on request stays open without viewers.
const LINGER: Duration = Duration::from_secs(10);
/// Maximum wait for the machine to accept typed characters.
const INPUT_WAIT: Duration = Duration::from_secs(10);
/// Recorded bytes that a new viewer gets first.
const HISTORY_BYTES: usize = 8 * 1024;

/// Recorder of one machine. A drop ends the session.
pub(crate) struct Recorder {
    recording: Mutex<Recording>,
    input: mpsc::Sender<Vec<u8>>,
    viewers: Arc<watch::Sender<usize>>,
    session: watch::Receiver<SessionState>,
    _task: DropGuard,
}

/// State of the session with the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SessionState {
    /// The first attempt has not ended.
    Opening,
    /// The session is open, or the next attempt may open it.
    Usable,
    /// No attempt succeeds before a person changes the machine or its settings.
    Refused(OpenError),
}

struct Recording {
    ring: Ring,
    output: broadcast::Sender<Bytes>,
    /// Time of the last output.
    last: Instant,
}

/// Viewer of a console.
pub struct Viewer {
    /// Recorded output before the viewer was attached, at most 8 KiB.
    pub history: Vec<u8>,
    /// Output since the viewer was attached.
    pub shown: ConsoleOutput,
    /// Way of typed characters to the machine.
    pub input: Input,
    /// State of the session with the machine.
    pub session: Session,
}

/// Session of a console with its machine.
#[derive(Debug, Clone)]
pub struct Session(watch::Receiver<SessionState>);

impl Session {
    /// Waits until the first attempt to open the session has ended. Returns the reason if no
    /// attempt succeeds before a person changes the machine or its settings.
    pub async fn tried(&mut self) -> Result<(), OpenError> {
        // The sender lives as long as the recorder; without it, the output ends too.
        match self.0.wait_for(|state| *state != SessionState::Opening).await.as_deref() {
            Ok(SessionState::Refused(error)) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Waits until no attempt succeeds before a person changes the machine or its settings.
    pub async fn refused(&mut self) {
        let is_refused = |state: &SessionState| matches!(state, SessionState::Refused(_));
        let _ = self.0.wait_for(is_refused).await;
    }
}

/// Output of a console for one viewer. A drop detaches the viewer.
pub struct ConsoleOutput {
    output: broadcast::Receiver<Bytes>,
    viewers: Arc<watch::Sender<usize>>,
}

/// Typed characters of one viewer.
#[derive(Clone)]
pub struct Input(mpsc::Sender<Vec<u8>>);

impl ConsoleOutput {
    /// Returns the next output; `None` when the console was removed. Safe to cancel.
    pub async fn next(&mut self) -> Option<Bytes> {
        match self.output.recv().await {
            Ok(bytes) => Some(bytes),
            Err(broadcast::error::RecvError::Lagged(pieces)) => {
                let mark = format!("\r\n[{pieces} pieces of output were skipped: slow viewer]\r\n");
                Some(mark.into())
            }
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

impl Drop for ConsoleOutput {
    fn drop(&mut self) {
        self.viewers.send_modify(|viewers| *viewers -= 1);
    }
}

impl Input {
    /// Queues typed characters. Returns false if the machine accepts none at this time.
    pub async fn send(&self, characters: &[u8]) -> bool {
        matches!(timeout(INPUT_WAIT, self.0.send(characters.to_vec())).await, Ok(Ok(())))
    }
}

impl Recorder {
    /// Starts the recorder of a machine.
    pub(crate) fn start(
        name: String,
        mode: RecordMode,
        machines: Arc<dyn Machines>,
        budget: Budget,
    ) -> Arc<Self> {
        let (input, typed) = mpsc::channel(INPUT_PIECES);
        let (output, _) = broadcast::channel(OUTPUT_PIECES);
        let (state, session) = watch::channel(SessionState::Opening);
        let ended = CancellationToken::new();
        let recorder = Arc::new(Self {
            recording: Mutex::new(Recording {
                ring: Ring::new(budget),
                output,
                last: Instant::now(),
            }),
            input,
            viewers: Arc::new(watch::Sender::new(0)),
            session,
            _task: ended.clone().drop_guard(),
        });
        let task = Task {
            // The task must not keep the recorder alive, whose drop ends the task.
            recorder: Arc::downgrade(&recorder),
            viewers: recorder.viewers.subscribe(),
            state,
            typed,
            name,
            mode,
            machines,
        };
        tokio::spawn(async move {
            ended.run_until_cancelled(task.run()).await;
        });
        recorder
    }

    /// Attaches a viewer: its history and its output have no gap and no overlap.
    pub(crate) fn attach(recorder: &Arc<Self>) -> Viewer {
        // One lock: output is either in the history or in the queue of the viewer.
        let (history, output) = {
            let recording = recorder.recording();
            (recording.ring.tail(HISTORY_BYTES), recording.output.subscribe())
        };
        recorder.viewers.send_modify(|viewers| *viewers += 1);
        let shown = ConsoleOutput { output, viewers: Arc::clone(&recorder.viewers) };
        let session = Session(recorder.session.clone());
        Viewer { history, shown, input: recorder.input(), session }
    }

    /// Returns the way of typed characters to the machine.
    pub(crate) fn input(&self) -> Input {
        Input(self.input.clone())
    }

    /// Returns all recorded output.
    pub(crate) fn recorded(&self) -> Vec<u8> {
        self.recording().ring.tail(usize::MAX)
    }

    fn recording(&self) -> MutexGuard<'_, Recording> {
        self.recording.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recording {
    fn record(&mut self, bytes: &[u8]) {
        if self.last.elapsed() > MARK_AFTER {
            self.ring.push(mark("after a silence").as_bytes());
        }
        self.last = Instant::now();
        self.ring.push(bytes);
        // Without viewers, the output has no receiver.
        let _ = self.output.send(Bytes::copy_from_slice(bytes));
    }
}

/// Returns a line with the time, which no console prints by itself.
fn mark(text: &str) -> String {
    let now = Timestamp::now().round(jiff::Unit::Second).unwrap_or_else(|_| Timestamp::now());
    format!("\r\n[{now} {text}]\r\n")
}

/// Work of a recorder.
struct Task {
    recorder: std::sync::Weak<Recorder>,
    viewers: watch::Receiver<usize>,
    state: watch::Sender<SessionState>,
    typed: mpsc::Receiver<Vec<u8>>,
    name: String,
    mode: RecordMode,
    machines: Arc<dyn Machines>,
}

impl Task {
    async fn run(mut self) {
        let mut wait = BACKOFF_MIN;
        let mut failure = None;
        loop {
            if self.mode == RecordMode::OnRequest
                && self.viewers.wait_for(|viewers| *viewers > 0).await.is_err()
            {
                return;
            }
            match self.machines.open(&self.name).await {
                Ok(stream) => {
                    failure = None;
                    self.show("connected");
                    self.state.send_replace(SessionState::Usable);
                    let start = Instant::now();
                    let reason = self.session(stream).await;
                    self.show(reason);
                    if start.elapsed() > STABLE {
                        wait = BACKOFF_MIN;
                    }
                }
                Err(error) => {
                    // One mark for each reason, not for each attempt.
                    if failure.as_ref() != Some(&error) {
                        tracing::info!(machine = self.name, error.message, "no serial console");
                        self.show(&format!("no serial console: {}", error.message));
                    }
                    // After the mark: a viewer that sees the state has the reason in its output.
                    self.state.send_replace(match error.is_transient {
                        true => SessionState::Usable,
                        false => SessionState::Refused(error.clone()),
                    });
                    if !error.is_transient {
                        wait = BACKOFF_PERMANENT;
                    }
                    failure = Some(error);
                }
            }
            sleep(jittered(wait)).await;
            wait = (wait * 2).min(BACKOFF_MAX);
        }
    }

    /// Records a session until its end. Returns the reason.
    async fn session(&mut self, stream: DuplexStream) -> &'static str {
        let (mut reader, mut writer) = split(stream);
        // Characters that were typed without a session are not for this one.
        while self.typed.try_recv().is_ok() {}
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            let is_watched = *self.viewers.borrow_and_update() > 0;
            let lingers = self.mode == RecordMode::OnRequest && !is_watched;
            tokio::select! {
                read = reader.read(&mut buffer) => match read {
                    Ok(len) if len > 0 => self.record(&buffer[..len]),
                    _ => return "disconnected",
                },
                Some(characters) = self.typed.recv() => {
                    let written = timeout(INPUT_WAIT, writer.write_all(&characters)).await;
                    if !matches!(written, Ok(Ok(()))) {
                        return "disconnected: the machine does not accept typed characters";
                    }
                }
                _ = self.viewers.changed() => {}
                () = sleep(LINGER), if lingers => return "disconnected: no viewer",
            }
        }
    }

    fn record(&self, bytes: &[u8]) {
        if let Some(recorder) = self.recorder.upgrade() {
            recorder.recording().record(bytes);
        }
    }

    fn show(&self, text: &str) {
        self.record(mark(text).as_bytes());
    }
}

/// Returns the wait, up to a quarter longer, so that many recorders do not act at once.
fn jittered(wait: Duration) -> Duration {
    let mut byte = [0];
    // Without randomness, the wait is as it is.
    let _ = getrandom::fill(&mut byte);
    wait + wait.mul_f64(f64::from(byte[0]) / 1024.0)
}

#[cfg(test)]
mod tests;
