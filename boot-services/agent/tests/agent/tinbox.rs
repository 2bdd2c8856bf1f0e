//! Test doubles: a box with a scripted workflow, and a file server that can pause a download.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_rpc::{
    ActionState, Assignment, Attributes, Credentials, DiskChoice, Hello, Pending, Progress,
    Refusal, Report, Workflows, server,
};
use sha2::{Digest as _, Sha256};
use stdx::testing::{Wait, wait_for};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// Waits until the condition is true.
pub async fn until(what: &str, condition: impl Fn() -> bool) {
    let wait = Wait::new(what);
    while !condition() {
        tokio::time::sleep(wait.pause()).await;
    }
}

/// Returns a loopback address that only this process uses, so that no other program gets its port
/// while the box is stopped.
fn own_address() -> SocketAddr {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    SocketAddr::from(([127, 64 + high, middle, low], 0))
}

/// Builds an action of the scripted workflow.
pub fn action(name: &str, image: &str, environment: &[String]) -> Assignment {
    Assignment {
        workflow_id: "default/wf".into(),
        task_id: "task".into(),
        agent_id: "agent-1".into(),
        action_id: format!("id-of-{name}"),
        name: name.into(),
        image: image.into(),
        environment: environment.to_vec(),
        ..Assignment::default()
    }
}

/// Messages that the box has received, shared by clones.
#[derive(Clone, Default)]
pub struct CallLog(Arc<Calls>);

#[derive(Default)]
struct Calls {
    script: Mutex<VecDeque<Assignment>>,
    refusals: Mutex<VecDeque<Option<Refusal>>>,
    reports: Mutex<Vec<Report>>,
    progress: Mutex<Vec<Progress>>,
    hellos: Mutex<Vec<Hello>>,
    choices: Mutex<Vec<DiskChoice>>,
    choice_refusals: Mutex<VecDeque<Refusal>>,
    questions: AtomicUsize,
    stop: Mutex<Option<String>>,
    /// Requests to power off, each with the answer to its confirmation.
    power_offs: Mutex<VecDeque<(String, bool)>>,
    confirmed: Mutex<Vec<String>>,
}

impl CallLog {
    /// Returns the reports that the box has accepted.
    pub fn reports(&self) -> Vec<Report> {
        self.0.reports.lock().unwrap().clone()
    }
}

impl Workflows for CallLog {
    fn next<'a>(
        &'a self,
        _: &'a str,
        _: Option<Attributes>,
        _: Duration,
    ) -> Pending<'a, Result<Assignment, Refusal>> {
        self.0.questions.fetch_add(1, Ordering::Relaxed);
        let next = self.0.script.lock().unwrap().front().cloned();
        Box::pin(async move { next.ok_or(Refusal::NotFound("no workflow".into())) })
    }

    fn report(&self, report: Report) -> Pending<'_, Result<(), Refusal>> {
        let refusal = self.0.refusals.lock().unwrap().pop_front().flatten();
        if refusal.is_none() {
            if !matches!(report.state, ActionState::Running) {
                self.0.script.lock().unwrap().pop_front();
            }
            self.0.reports.lock().unwrap().push(report);
        }
        Box::pin(async move { refusal.map_or(Ok(()), Err) })
    }

    fn progress(&self, progress: Progress) -> Pending<'_, Option<String>> {
        self.0.progress.lock().unwrap().push(progress);
        let stop = self.0.stop.lock().unwrap().clone();
        Box::pin(async { stop })
    }

    fn choose_disk(&self, choice: DiskChoice) -> Pending<'_, Result<(), Refusal>> {
        self.0.choices.lock().unwrap().push(choice);
        let refusal = self.0.choice_refusals.lock().unwrap().pop_front();
        Box::pin(async move { refusal.map_or(Ok(()), Err) })
    }

    fn power_off_request<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        _: Duration,
    ) -> Pending<'a, Result<Option<String>, Refusal>> {
        let request = self.0.power_offs.lock().unwrap().front().map(|(id, _)| id.clone());
        Box::pin(async { request.ok_or(Refusal::Unavailable("later".into())).map(Some) })
    }

    fn confirm_power_off(&self, _: &str, _: &str, request_id: &str) -> bool {
        self.0.confirmed.lock().unwrap().push(request_id.to_owned());
        let request = self.0.power_offs.lock().unwrap().pop_front();
        request.is_some_and(|(id, granted)| id == request_id && granted)
    }

    fn hello(&self, hello: Hello, _: Option<SocketAddr>) {
        self.0.hellos.lock().unwrap().push(hello);
    }

    fn authenticate(&self, agent_id: &str, shown: &Credentials<'_>) -> Result<(), Refusal> {
        match (agent_id, shown.token) {
            ("agent-1", Some("token")) => Ok(()),
            _ => Err(Refusal::Unauthenticated("no".into())),
        }
    }
}

/// Service of a scripted box, on its own runtime: a stop cuts all connections, as a crash would.
pub struct Tinbox {
    seen: CallLog,
    address: SocketAddr,
    runtime: Option<Runtime>,
}

impl Tinbox {
    /// Requests that the machine powers off; `granted` is the answer to the confirmation.
    pub fn request_power_off(&self, id: &str, granted: bool) {
        self.seen.0.power_offs.lock().unwrap().push_back((id.to_owned(), granted));
    }

    /// Returns the requests to power off that the agent has confirmed.
    pub fn confirmed(&self) -> Vec<String> {
        self.seen.0.confirmed.lock().unwrap().clone()
    }

    /// Sets the refusals for the next disk choices, in order.
    pub fn refuse_choices(&self, refusals: Vec<Refusal>) {
        *self.seen.0.choice_refusals.lock().unwrap() = refusals.into();
    }

    /// Returns the disk choices that agents have reported.
    pub fn choices(&self) -> Vec<DiskChoice> {
        self.seen.0.choices.lock().unwrap().clone()
    }

    pub fn start(script: Vec<Assignment>) -> Self {
        let seen = CallLog::default();
        *seen.0.script.lock().unwrap() = script.into();
        let mut tinbox = Self { seen, address: own_address(), runtime: None };
        tinbox.restart();
        tinbox
    }

    /// Starts the service again on the same port.
    pub fn restart(&mut self) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        // The previous runtime may not have released the port yet.
        let bind = || std::net::TcpListener::bind(self.address).ok();
        let socket = wait_for("the port", bind);
        socket.set_nonblocking(true).unwrap();
        self.address = socket.local_addr().unwrap();
        let routes = server::routes(Arc::new(self.seen.clone()));
        runtime.spawn(async move {
            let listener = TcpListener::from_std(socket).unwrap();
            let service = routes.into_make_service_with_connect_info::<SocketAddr>();
            axum::serve(listener, service).await.unwrap();
        });
        self.runtime = Some(runtime);
    }

    pub fn stop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    pub fn authority(&self) -> String {
        self.address.to_string()
    }

    pub fn seen(&self) -> CallLog {
        self.seen.clone()
    }

    pub fn reports(&self) -> Vec<Report> {
        self.seen.reports()
    }

    pub fn progress(&self) -> Vec<Progress> {
        self.seen.0.progress.lock().unwrap().clone()
    }

    pub fn hellos(&self) -> Vec<Hello> {
        self.seen.0.hellos.lock().unwrap().clone()
    }

    pub fn questions(&self) -> usize {
        self.seen.0.questions.load(Ordering::Relaxed)
    }

    /// Makes all later responses to progress stop the action with the reason `why`.
    pub fn stop_actions(&self, why: &str) {
        *self.seen.0.stop.lock().unwrap() = Some(why.to_owned());
    }

    /// Sets the responses to the next reports, in order; `None` accepts a report.
    pub fn refuse_reports(&self, refusals: Vec<Option<Refusal>>) {
        *self.seen.0.refusals.lock().unwrap() = refusals.into();
    }
}

impl Drop for Tinbox {
    fn drop(&mut self) {
        self.stop();
    }
}

/// HTTP server with one file.
pub struct Files {
    body: Arc<Vec<u8>>,
    address: SocketAddr,
    hold: watch::Sender<usize>,
    requests: Arc<AtomicUsize>,
}

impl Files {
    pub async fn start(body: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let body = Arc::new(body);
        let requests = Arc::new(AtomicUsize::new(0));
        let (hold, held) = watch::channel(usize::MAX);
        tokio::spawn({
            let (body, requests) = (body.clone(), requests.clone());
            async move {
                while let Ok((mut stream, _)) = listener.accept().await {
                    requests.fetch_add(1, Ordering::Relaxed);
                    let (body, mut held) = (body.clone(), held.clone());
                    tokio::spawn(async move {
                        let mut head = [0; 4096];
                        let _ = stream.read(&mut head).await;
                        let length = body.len();
                        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
                        let _ = stream.write_all(head.as_bytes()).await;
                        let first = length.min(*held.borrow());
                        let _ = stream.write_all(&body[..first]).await;
                        let _ = held.wait_for(|limit| *limit >= length).await;
                        let _ = stream.write_all(&body[first..]).await;
                    });
                }
            }
        });
        Self { body, address, hold, requests }
    }

    pub fn url(&self) -> String {
        format!("http://{}/image", self.address)
    }

    pub fn sha256(&self) -> String {
        stdx::hex(&Sha256::digest(self.body.as_slice()))
    }

    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// Pauses each download after `bytes` bytes.
    pub fn hold_at(&self, bytes: usize) {
        self.hold.send_replace(bytes);
    }

    pub fn release(&self) {
        self.hold.send_replace(usize::MAX);
    }
}
