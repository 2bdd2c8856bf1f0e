//! The agents' gRPC service: any message to any of its methods.

#![no_main]

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use axum::http::Method;
use fuzz::{Input, KNOWN, ask, block_on, request};
use libfuzzer_sys::fuzz_target;
use agent_rpc::{
    ActionList, Assignment, Attributes, Credentials, Hello, ListedAction, NamedReport,
    OUTPUT_LINES, Pending, Progress, Refusal, Report, Turn, Workflows, server,
};

const METHODS: [&str; 5] = [
    "proto.WorkflowService/GetAction",
    "proto.WorkflowService/ReportActionStatus",
    "tinbox.v1.Agent/Hello",
    "tinbox.v1.Agent/ReportProgress",
    "tinbox.v1.Agent/ChooseDisk",
];
/// Methods that only older workers call.
const OLDER: [&str; 2] =
    ["proto.WorkflowService/GetWorkflowContexts", "proto.WorkflowService/GetWorkflowActions"];
/// Maximum bytes of an identifier.
const ID_MAX: usize = 512;
/// Maximum bytes of any other text.
const TEXT_MAX: usize = 4 << 10;

/// Service that checks that every identifier and text it receives is bounded.
struct Checked;

fn id(text: &str) {
    assert!(text.len() <= ID_MAX && !text.chars().any(char::is_control), "{text:?}");
}

fn text(text: &str) {
    assert!(text.len() <= TEXT_MAX);
}

impl Workflows for Checked {
    fn next<'a>(
        &'a self,
        agent_id: &'a str,
        _: Option<Attributes>,
        patience: Duration,
    ) -> Pending<'a, Result<Assignment, Refusal>> {
        id(agent_id);
        assert!(patience <= Duration::from_secs(u8::MAX.into()));
        Box::pin(async { Ok(Assignment::default()) })
    }

    fn report(&self, report: Report) -> Pending<'_, Result<(), Refusal>> {
        for one in [&report.workflow_id, &report.task_id, &report.action_id] {
            assert!(!one.is_empty());
            id(one);
        }
        for one in [&report.action_name, &report.duration, &report.message] {
            text(one);
        }
        Box::pin(async { Ok(()) })
    }

    fn progress(&self, progress: Progress) -> Pending<'_, Option<String>> {
        id(&progress.agent_id);
        text(&progress.message);
        assert!(progress.output.len() <= OUTPUT_LINES);
        progress.output.iter().for_each(|line| text(line));
        Box::pin(async { None })
    }

    fn turn<'a>(&'a self, worker_id: &'a str) -> Pending<'a, Result<Option<Turn>, Refusal>> {
        id(worker_id);
        Box::pin(async { Ok(Some(Turn::default())) })
    }

    fn actions<'a>(&'a self, workflow_id: &'a str) -> Pending<'a, Result<ActionList, Refusal>> {
        id(workflow_id);
        let list = ActionList { actions: vec![ListedAction::default()], ..ActionList::default() };
        Box::pin(async { Ok(list) })
    }

    fn named_report(&self, report: NamedReport) -> Pending<'_, Result<(), Refusal>> {
        for one in [&report.workflow_id, &report.task_name, &report.action_name] {
            assert!(!one.is_empty());
            id(one);
        }
        id(&report.worker_id);
        text(&report.message);
        assert!(report.seconds >= 0);
        Box::pin(async { Ok(()) })
    }

    fn hello(&self, hello: Hello, _: Option<SocketAddr>) {
        for one in [&hello.agent_id, &hello.agent_version, &hello.boot_id] {
            id(one);
        }
    }

    fn authenticate(&self, agent_id: &str, shown: &Credentials<'_>) -> Result<(), Refusal> {
        id(agent_id);
        assert!(shown.token.is_none_or(|token| token.len() <= ID_MAX));
        assert!(shown.boot.is_none_or(|boot| boot.len() <= ID_MAX));
        Ok(())
    }
}

static ROUTES: LazyLock<Router> = LazyLock::new(|| server::routes(Arc::new(Checked)));

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let choice = input.byte();
    let method = match choice & 16 {
        0 => METHODS[usize::from(choice % 4)],
        _ => OLDER[usize::from(choice % 2)],
    };
    let token = if choice & 4 == 0 { &[][..] } else { input.line() };
    // A frame is a flag, a length and a message (gRPC over HTTP2); some inputs contain their own
    // frames.
    let body = if choice & 8 == 0 {
        let length = u32::try_from(input.0.len()).unwrap_or(u32::MAX);
        [[0].as_slice(), &length.to_be_bytes(), input.0].concat()
    } else {
        input.0.to_vec()
    };
    let headers = [
        ("content-type", b"application/grpc".as_slice()),
        ("te", b"trailers"),
        ("authorization", token),
    ];
    let headers = if token.is_empty() { &headers[..2] } else { &headers[..] };
    if let Some(request) = request(Method::POST, method.as_bytes(), headers, &body, KNOWN) {
        let (status, _) = block_on(ask(&ROUTES, request));
        assert!(status.is_success(), "gRPC's errors travel in its own fields: {status}");
    }
});
