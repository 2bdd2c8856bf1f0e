//! gRPC server: decodes and authenticates each request, and calls [`Workflows`].

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ConnectInfo;
use futures_util::stream;
use http_edge::Proof;
use tonic::codegen::BoxStream;
use tonic::metadata::MetadataMap;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

use crate::message::{DiskChoice, Hello, Progress, Refusal};
use crate::service::{Call, Credentials, Workflows};
use crate::wire::proto::workflow_service_server::{WorkflowService, WorkflowServiceServer};
use crate::wire::proto::{
    ActionRequest, ActionResponse, ActionStatusResponse, WorkflowActionList,
    WorkflowActionsRequest, WorkflowContext, WorkflowContextRequest,
};
use crate::wire::tinbox::v1::agent_server::{Agent, AgentServer};
use crate::wire::tinbox::v1::{
    DiskChoiceReply, DiskChoiceRequest, HelloReply, HelloRequest, PowerOffConfirmation,
    PowerOffGrant, PowerOffRequest, PowerOffWait, ProgressReply, ProgressReport,
};
use crate::wire::{self, AnyActionStatus, AnyReport, MESSAGE_BYTES};

/// gRPC metadata key: seconds that GetAction may wait for an action, 0 to 255. Absent is 0.
pub(crate) const PATIENCE: &str = "tinbox-patience";
/// gRPC metadata key: boot id of the agent's machine.
pub(crate) const BOOT: &str = "tinbox-boot";
/// Maximum length of a token or boot id in bytes; a longer value counts as absent.
const TOKEN_BYTES: usize = 512;

/// Builds the routes of port 42113, for an HTTP/2 server (prior knowledge). The caller must use
/// `into_make_service_with_connect_info::<SocketAddr>()`, so that [`Workflows`] receives the
/// client's address. After a successful [`Workflows::authenticate`], the server calls
/// [`Proof::show`] on the [`Proof`] in the request's extensions.
pub fn routes(workflows: Arc<dyn Workflows>) -> axum::Router {
    let edge = Edge(workflows);
    let tinkerbell =
        WorkflowServiceServer::new(edge.clone()).max_decoding_message_size(MESSAGE_BYTES);
    let tinbox = AgentServer::new(edge).max_decoding_message_size(MESSAGE_BYTES);
    Routes::new(tinkerbell).add_service(tinbox).prepare().into_axum_router()
}

#[derive(Clone)]
struct Edge(Arc<dyn Workflows>);

/// Client of a call: its address and metadata, and the connection's authentication state.
struct Caller {
    peer: Option<SocketAddr>,
    metadata: MetadataMap,
    proof: Option<Proof>,
}

impl Caller {
    fn split<T>(request: Request<T>) -> (Self, T) {
        let peer = request
            .extensions()
            .get::<ConnectInfo<SocketAddr>>()
            .map(|info| info.0)
            .or_else(|| request.remote_addr());
        let (metadata, mut extensions, message) = request.into_parts();
        (Self { peer, metadata, proof: extensions.remove() }, message)
    }

    /// Returns the bearer token (RFC 6750 section 2.1). The scheme is case-insensitive.
    fn token(&self) -> Option<&str> {
        let value = self.metadata.get("authorization")?.to_str().ok()?;
        let (scheme, token) = value.split_once(' ')?;
        let token = token.trim();
        (scheme.eq_ignore_ascii_case("bearer") && token.len() <= TOKEN_BYTES).then_some(token)
    }

    /// Returns the boot id of the agent's machine; `None` from a stock agent.
    fn boot(&self) -> Option<&str> {
        let boot = self.metadata.get(BOOT)?.to_str().ok()?;
        (!boot.is_empty() && boot.len() <= TOKEN_BYTES).then_some(boot)
    }

    /// Returns the time that GetAction may wait for an action; zero for a stock agent.
    fn patience(&self) -> Duration {
        let value = self.metadata.get(PATIENCE).and_then(|value| value.to_str().ok());
        Duration::from_secs(value.and_then(|value| value.parse().ok()).map_or(0, u8::into))
    }
}

impl Edge {
    fn admit(&self, agent_id: &str, caller: &Caller, call: Call<'_>) -> Result<(), Status> {
        let (token, boot, peer) = (caller.token(), caller.boot(), caller.peer);
        let shown = Credentials { token, boot, peer, call };
        self.0.authenticate(agent_id, &shown).map_err(|refusal| {
            match refusal {
                // An agent that waits for work asks every other second.
                Refusal::NotFound(_) => tracing::debug!(agent_id, %refusal, "nothing to do"),
                _ => tracing::warn!(agent_id, peer = ?caller.peer, %refusal, "agent refused"),
            }
            Status::from(refusal)
        })?;
        if let Some(proof) = &caller.proof {
            proof.show();
        }
        Ok(())
    }
}

/// Converts a refusal to a gRPC status. Logs the reason of an internal error.
fn status(refusal: Refusal, call: &'static str, agent_id: &str) -> Status {
    if let Refusal::Internal(reason) = &refusal {
        tracing::error!(call, agent_id, reason, "agent call failed");
    }
    refusal.into()
}

#[tonic::async_trait]
impl WorkflowService for Edge {
    async fn get_action(
        &self,
        request: Request<ActionRequest>,
    ) -> Result<Response<ActionResponse>, Status> {
        let (caller, message) = Caller::split(request);
        let agent_id = wire::id("agent id", message.agent_id)?;
        let attributes = wire::attributes(message.agent_attributes)?;
        self.admit(&agent_id, &caller, Call::Next)?;
        match self.0.next(&agent_id, attributes, caller.patience()).await {
            Ok(assignment) => Ok(Response::new(assignment.into())),
            Err(refusal) => Err(status(refusal, "GetAction", &agent_id)),
        }
    }

    async fn report_action_status(
        &self,
        request: Request<AnyActionStatus>,
    ) -> Result<Response<ActionStatusResponse>, Status> {
        let (caller, message) = Caller::split(request);
        let report = message.identify()?;
        let (agent_id, workflow_id) = match &report {
            AnyReport::Agent(report) => (report.agent_id.clone(), &report.workflow_id),
            AnyReport::Worker(report) => (report.worker_id.clone(), &report.workflow_id),
        };
        self.admit(&agent_id, &caller, Call::Workflow(workflow_id))?;
        let taken = match report {
            AnyReport::Agent(report) => self.0.report(report).await,
            AnyReport::Worker(report) => self.0.named_report(report).await,
        };
        match taken {
            Ok(()) => Ok(Response::new(ActionStatusResponse {})),
            Err(refusal) => Err(status(refusal, "ReportActionStatus", &agent_id)),
        }
    }

    type GetWorkflowContextsStream = BoxStream<WorkflowContext>;

    async fn get_workflow_contexts(
        &self,
        request: Request<WorkflowContextRequest>,
    ) -> Result<Response<Self::GetWorkflowContextsStream>, Status> {
        let (caller, message) = Caller::split(request);
        let worker_id = wire::id("worker id", Some(message.worker_id))?;
        self.admit(&worker_id, &caller, Call::Next)?;
        match self.0.turn(&worker_id).await {
            // One workflow a worker at a time; it asks again every other second.
            Ok(turn) => {
                let turns = turn.into_iter().map(|turn| Ok(turn.into()));
                Ok(Response::new(Box::pin(stream::iter(turns))))
            }
            Err(refusal) => Err(status(refusal, "GetWorkflowContexts", &worker_id)),
        }
    }

    async fn get_workflow_actions(
        &self,
        request: Request<WorkflowActionsRequest>,
    ) -> Result<Response<WorkflowActionList>, Status> {
        let (caller, message) = Caller::split(request);
        let workflow_id = wire::id("workflow id", Some(message.workflow_id))?;
        match self.0.actions(&workflow_id).await {
            Ok(list) => {
                self.admit(&list.worker_id, &caller, Call::Workflow(&workflow_id))?;
                Ok(Response::new(list.into()))
            }
            Err(refusal) => Err(status(refusal, "GetWorkflowActions", "")),
        }
    }
}

#[tonic::async_trait]
impl Agent for Edge {
    async fn hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloReply>, Status> {
        let (caller, message) = Caller::split(request);
        let hello = Hello::try_from(message)?;
        self.admit(&hello.agent_id, &caller, Call::Hello(&hello.boot_id))?;
        self.0.hello(hello, caller.peer);
        Ok(Response::new(HelloReply {}))
    }

    async fn report_progress(
        &self,
        request: Request<ProgressReport>,
    ) -> Result<Response<ProgressReply>, Status> {
        let (caller, message) = Caller::split(request);
        let progress = Progress::try_from(message)?;
        self.admit(&progress.agent_id, &caller, Call::Workflow(&progress.workflow_id))?;
        let stop = self.0.progress(progress).await.unwrap_or_default();
        Ok(Response::new(ProgressReply { stop }))
    }

    async fn choose_disk(
        &self,
        request: Request<DiskChoiceRequest>,
    ) -> Result<Response<DiskChoiceReply>, Status> {
        let (caller, message) = Caller::split(request);
        let choice = DiskChoice::try_from(message)?;
        let agent_id = choice.agent_id.clone();
        self.admit(&agent_id, &caller, Call::Workflow(&choice.workflow_id))?;
        match self.0.choose_disk(choice).await {
            Ok(()) => Ok(Response::new(DiskChoiceReply {})),
            Err(refusal) => Err(status(refusal, "ChooseDisk", &agent_id)),
        }
    }

    async fn await_power_off(
        &self,
        request: Request<PowerOffWait>,
    ) -> Result<Response<PowerOffRequest>, Status> {
        let (caller, message) = Caller::split(request);
        let agent_id = wire::id("agent id", Some(message.agent_id))?;
        self.admit(&agent_id, &caller, Call::Next)?;
        let boot = caller.boot().unwrap_or_default();
        match self.0.power_off_request(&agent_id, boot, caller.patience()).await {
            Ok(id) => Ok(Response::new(PowerOffRequest { request_id: id.unwrap_or_default() })),
            Err(refusal) => Err(status(refusal, "AwaitPowerOff", &agent_id)),
        }
    }

    async fn confirm_power_off(
        &self,
        request: Request<PowerOffConfirmation>,
    ) -> Result<Response<PowerOffGrant>, Status> {
        let (caller, message) = Caller::split(request);
        let agent_id = wire::id("agent id", Some(message.agent_id))?;
        let request_id = wire::id("request id", Some(message.request_id))?;
        self.admit(&agent_id, &caller, Call::Next)?;
        let boot = caller.boot().unwrap_or_default();
        let granted = self.0.confirm_power_off(&agent_id, boot, &request_id);
        Ok(Response::new(PowerOffGrant { granted }))
    }
}
