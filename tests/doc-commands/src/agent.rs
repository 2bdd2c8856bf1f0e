//! An agent of a machine that does not exist: it accepts every action, does nothing, and reports
//! the end of the action.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use agent_rpc::client::{Client, Error};
use agent_rpc::{ActionState, Assignment, Progress, Report};
use jiff::Timestamp;
use qemu::Host;
use tokio::runtime::Runtime;

/// Interval of checks, and of requests after a refusal.
const LOOK: Duration = Duration::from_millis(200);

/// Result of each action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Manner {
    /// Each action succeeds at once.
    Succeed,
    /// Each action fails at once.
    Fail,
    /// Each action runs until the manner changes, or the box stops it.
    Hold,
}

/// A running agent, which takes no more actions when dropped. The box must be open for agents
/// without a token: `permissive = true` in `[agents]`.
#[derive(Debug)]
pub struct Agent(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    manner: AtomicU8,
    is_ended: AtomicBool,
}

impl Agent {
    /// Starts the agent `id` of the box at `authority` (`host:port`) on `host`.
    pub fn start(host: &Arc<Host>, authority: &str, id: &str) -> Self {
        let manner = AtomicU8::new(Manner::Succeed as u8);
        let shared = Arc::new(Shared { manner, is_ended: AtomicBool::new(false) });
        let (inside, host) = (Arc::clone(&shared), Arc::clone(host));
        let (authority, id) = (authority.to_owned(), id.to_owned());
        std::thread::spawn(move || {
            host.enter(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let runtime = runtime.unwrap();
                let _inside = runtime.enter();
                let client = Client::connect(&authority, &id, None, None).unwrap();
                inside.work(&runtime, &client);
            })
            .unwrap();
        });
        Self(shared)
    }

    /// Sets the result of the running action and of all later ones.
    pub fn set(&self, manner: Manner) {
        self.0.manner.store(manner as u8, Ordering::Relaxed);
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.0.is_ended.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    fn work(&self, runtime: &Runtime, client: &Client) {
        while !self.is_ended.load(Ordering::Relaxed) {
            let given = runtime.block_on(client.next(None));
            // A box that restarts gives the action again.
            let done = given.and_then(|given| self.perform(runtime, client, &given));
            if done.is_err() {
                std::thread::sleep(LOOK);
            }
        }
    }

    fn perform(&self, runtime: &Runtime, client: &Client, given: &Assignment) -> Result<(), Error> {
        runtime.block_on(client.report(report(client, given, ActionState::Running)))?;
        let state = loop {
            let manner = self.manner.load(Ordering::Relaxed);
            if manner == Manner::Succeed as u8 {
                break ActionState::Success;
            }
            let stop = runtime.block_on(client.progress(progress(client, given)))?;
            if manner == Manner::Fail as u8 || stop.is_some() {
                break ActionState::Failed;
            }
            std::thread::sleep(LOOK);
        };
        runtime.block_on(client.report(report(client, given, state)))
    }
}

fn report(client: &Client, given: &Assignment, state: ActionState) -> Report {
    let now = Timestamp::now();
    Report {
        workflow_id: given.workflow_id.clone(),
        agent_id: client.agent_id().to_owned(),
        task_id: given.task_id.clone(),
        action_id: given.action_id.clone(),
        action_name: given.name.clone(),
        state,
        start: Some(now),
        stop: (state != ActionState::Running).then_some(now),
        duration: String::new(),
        message: String::new(),
    }
}

fn progress(client: &Client, given: &Assignment) -> Progress {
    Progress {
        agent_id: client.agent_id().to_owned(),
        workflow_id: given.workflow_id.clone(),
        task_id: given.task_id.clone(),
        action_id: given.action_id.clone(),
        ..Progress::default()
    }
}
