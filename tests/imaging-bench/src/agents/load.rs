//! Simulated agents: each sends Hello, runs its actions with progress reports, and requests the
//! next action until all are done.

use std::time::{Duration, Instant};

use agent_rpc::client::{Client, Error};
use agent_rpc::{ActionState, Assignment, Hello, Pin, Progress, Report};
use anyhow::{Context as _, Result, bail, ensure};
use jiff::Timestamp;
use stdx::Secret;
use tokio::task::JoinSet;

use crate::calls::{Call, Calls};

/// Actions of a workflow.
pub const ACTIONS: usize = 5;
/// Progress reports of each action.
const TOLD: u32 = 2;
/// Interval of progress reports, as in the agent's runner.
const TELL: Duration = Duration::from_secs(1);
/// Interval of requests from an agent without work, as in the runner.
const ASK: Duration = Duration::from_secs(2);
/// Time for which an agent without work sends requests: about as long as the other agents work.
const WAITS: Duration = Duration::from_secs(12);

/// An agent with its token.
#[derive(Debug, Clone)]
pub struct Member {
    pub id: String,
    pub token: Option<Secret>,
    /// True when a workflow exists for the agent.
    pub works: bool,
}

/// Timing of the agents' calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// As real machines: each call after some work, and each agent started a little after the
    /// previous agent.
    Machines,
    /// Without pauses: each call right after the answer to the previous call, and all agents
    /// started at once.
    Rush,
}

/// Runs all agents to their end.
///
/// # Errors
/// A call failed, or an agent got an unexpected action.
pub async fn run(members: &[Member], authority: &str, pin: Pin, pace: Pace) -> Result<Calls> {
    let mut working = JoinSet::new();
    for (number, member) in members.iter().enumerate() {
        let token = member.token.as_ref();
        let client = Client::connect(authority, &member.id, token, Some(pin))?;
        let late = match pace {
            Pace::Machines => TELL * u32::try_from(number)? / u32::try_from(members.len())?,
            Pace::Rush => Duration::ZERO,
        };
        let agent = Agent { client, pace, calls: Calls::default() };
        let works = member.works;
        working.spawn(async move {
            tokio::time::sleep(late).await;
            agent.live(works).await
        });
    }
    let mut calls = Calls::default();
    while let Some(done) = working.join_next().await {
        calls.merge(done??);
    }
    Ok(calls)
}

struct Agent {
    client: Client,
    pace: Pace,
    calls: Calls,
}

impl Agent {
    async fn live(mut self, works: bool) -> Result<Calls> {
        let hello = Hello {
            agent_id: self.client.agent_id().to_owned(),
            agent_version: env!("CARGO_PKG_VERSION").to_owned(),
            boot_id: format!("boot of {}", self.client.agent_id()),
            attributes: Some(inventory::inventory()),
            inventory: None,
        };
        let begun = Instant::now();
        self.client.hello(hello).await.context("hello")?;
        self.calls.add(Call::Hello, begun.elapsed());
        let mut done = 0;
        while works && done < ACTIONS {
            let begun = Instant::now();
            match self.client.next(None).await {
                Ok(assignment) => {
                    self.calls.add(Call::Work, begun.elapsed());
                    self.perform(&assignment).await?;
                    done += 1;
                }
                Err(error) => bail!("{} of {ACTIONS} actions: {}", done, stdx::chain(&error)),
            }
        }
        if self.pace == Pace::Machines {
            let span = if works { ASK } else { WAITS };
            // The box delays its answer when an action is missing, so the last request may time
            // out.
            tokio::time::timeout(span, self.wait()).await.unwrap_or(Ok(()))?;
        }
        Ok(self.calls)
    }

    /// Requests actions in a loop, as an agent without work; the box may delay each answer.
    async fn wait(&self) -> Result<()> {
        loop {
            let answer = self.client.next(None).await;
            let nothing = answer.as_ref().err().is_some_and(Error::is_no_action);
            ensure!(nothing, "there is nothing left to do, but the answer was {answer:?}");
            tokio::time::sleep(ASK).await;
        }
    }

    async fn perform(&mut self, given: &Assignment) -> Result<()> {
        self.report(given, ActionState::Running).await?;
        for told in 0..TOLD {
            self.rest(TELL).await;
            let progress = Progress {
                agent_id: self.client.agent_id().to_owned(),
                workflow_id: given.workflow_id.clone(),
                task_id: given.task_id.clone(),
                action_id: given.action_id.clone(),
                bytes_done: u64::from(told) << 28,
                bytes_total: u64::from(TOLD) << 28,
                message: "writing http://10.77.0.1:7080/images/debian.raw.zst".to_owned(),
                output: Vec::new(),
            };
            let begun = Instant::now();
            let stop = self.client.progress(progress).await.context("progress")?;
            self.calls.add(Call::Progress, begun.elapsed());
            ensure!(stop.is_none(), "told to stop: {stop:?}");
        }
        self.rest(TELL / 2).await;
        self.report(given, ActionState::Success).await
    }

    async fn report(&mut self, given: &Assignment, state: ActionState) -> Result<()> {
        let now = Timestamp::now();
        let report = Report {
            workflow_id: given.workflow_id.clone(),
            agent_id: self.client.agent_id().to_owned(),
            task_id: given.task_id.clone(),
            action_id: given.action_id.clone(),
            action_name: given.name.clone(),
            state,
            start: Some(now),
            stop: (state == ActionState::Success).then_some(now),
            duration: String::new(),
            message: "wrote 4.0 GiB from 612 MiB in 36.1 s (113 MiB/s), SHA-256 verified".into(),
        };
        let begun = Instant::now();
        self.client.report(report).await.context("report")?;
        self.calls.add(Call::Report, begun.elapsed());
        Ok(())
    }

    async fn rest(&self, time: Duration) {
        if self.pace == Pace::Machines {
            tokio::time::sleep(time).await;
        }
    }
}
