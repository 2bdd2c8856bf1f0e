//! The agent's side of the service.

use std::time::Duration;

use stdx::Secret;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

use crate::Attributes;
use crate::message::{Assignment, Hello, Progress, Refusal, Report};
use crate::wire::proto::ActionRequest;
use crate::wire::proto::workflow_service_client::WorkflowServiceClient;
use crate::wire::tinbox::v1::agent_client::AgentClient;
use crate::wire::{MESSAGE_BYTES, text};

/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for an answer. Upstream's server may hold a GetAction for a minute.
const CALL_TIMEOUT: Duration = Duration::from_secs(75);
/// A connection whose box lost power is noticed within this and [`KEEPALIVE_TIMEOUT`].
const KEEPALIVE: Duration = Duration::from_secs(10);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a call brought nothing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The authority cannot be part of a URL.
    #[error("cannot use {authority:?} as the address of the workflow service")]
    Authority {
        /// What was given.
        authority: String,
        /// Why not.
        #[source]
        source: tonic::transport::Error,
    },
    /// The token cannot be a metadata value (RFC 9110 section 5.5).
    #[error("the agent's token has a character that a header cannot carry")]
    Token,
    /// The server answered, with a refusal.
    #[error("{call} was refused")]
    Refused {
        /// The gRPC method.
        call: &'static str,
        /// What the server said.
        #[source]
        refusal: Refusal,
    },
    /// The server does not have this method: it is a stock Tinkerbell server.
    #[error("{call} is not known to the server")]
    Unsupported {
        /// The gRPC method.
        call: &'static str,
    },
    /// No answer: connection refused, lost or timed out.
    #[error("{call} got no answer from {authority}")]
    Unreachable {
        /// The gRPC method.
        call: &'static str,
        /// Where it was sent.
        authority: String,
        /// What the transport said.
        #[source]
        source: Box<Status>,
    },
}

impl Error {
    /// Whether asking again cannot help: NOT_FOUND, INVALID_ARGUMENT, FAILED_PRECONDITION, the
    /// codes on which Tinkerbell's agent gives up a report.
    pub fn is_permanent(&self) -> bool {
        matches!(
            self,
            Self::Refused {
                refusal: Refusal::NotFound(_)
                    | Refusal::InvalidArgument(_)
                    | Refusal::Precondition(_),
                ..
            }
        )
    }

    /// Whether the service has nothing for this agent to do at present.
    pub fn is_no_action(&self) -> bool {
        matches!(
            self,
            Self::Refused { refusal: Refusal::NotFound(_) | Refusal::Precondition(_), .. }
        )
    }
}

/// Calls the service for one agent. Connects when first used and again whenever it must.
#[derive(Clone)]
pub struct Client {
    authority: String,
    agent_id: String,
    token: Option<MetadataValue<Ascii>>,
    tinkerbell: WorkflowServiceClient<Channel>,
    tinbox: AgentClient<Channel>,
}

impl Client {
    /// A client of `authority` (`host:port`) that speaks for `agent_id`. Needs a tokio runtime,
    /// does no I/O yet.
    pub fn connect(authority: &str, agent_id: &str, token: Option<&Secret>) -> Result<Self, Error> {
        let endpoint = Endpoint::from_shared(format!("http://{authority}"))
            .map_err(|source| Error::Authority { authority: authority.to_owned(), source })?
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(CALL_TIMEOUT)
            .http2_keep_alive_interval(KEEPALIVE)
            .keep_alive_timeout(KEEPALIVE_TIMEOUT)
            .tcp_nodelay(true);
        let channel = endpoint.connect_lazy();
        let token = token.map(bearer).transpose()?;
        Ok(Self {
            authority: authority.to_owned(),
            agent_id: agent_id.to_owned(),
            token,
            tinkerbell: WorkflowServiceClient::new(channel.clone())
                .max_decoding_message_size(MESSAGE_BYTES),
            tinbox: AgentClient::new(channel).max_decoding_message_size(MESSAGE_BYTES),
        })
    }

    /// Who this client speaks for.
    pub fn agent_id(&self) -> &str {
        &self.agent_id
    }

    /// Ask for the action to run now.
    pub async fn next(&self, attributes: Option<Attributes>) -> Result<Assignment, Error> {
        let message =
            ActionRequest { agent_id: Some(self.agent_id.clone()), agent_attributes: attributes };
        let answer = self.tinkerbell.clone().get_action(self.request(message)).await;
        answer
            .map(|answer| answer.into_inner().into())
            .map_err(|status| self.error("GetAction", status))
    }

    /// Report what became of an action.
    pub async fn report(&self, report: Report) -> Result<(), Error> {
        let request = self.request(report.into());
        let answer = self.tinkerbell.clone().report_action_status(request).await;
        answer.map(|_| ()).map_err(|status| self.error("ReportActionStatus", status))
    }

    /// Tell how far an action has come; the answer is why it must be stopped, if it must. A stock
    /// server answers [`Error::Unsupported`].
    pub async fn progress(&self, progress: Progress) -> Result<Option<String>, Error> {
        let answer = self.tinbox.clone().report_progress(self.request(progress.into())).await;
        let answer = answer.map_err(|status| self.error("ReportProgress", status))?;
        Ok(Some(text(answer.into_inner().stop)).filter(|stop| !stop.is_empty()))
    }

    /// Greet the box. A stock server answers [`Error::Unsupported`].
    pub async fn hello(&self, hello: Hello) -> Result<(), Error> {
        let answer = self.tinbox.clone().hello(self.request(hello.into())).await;
        answer.map(|_| ()).map_err(|status| self.error("Hello", status))
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = &self.token {
            request.metadata_mut().insert("authorization", token.clone());
        }
        request
    }

    fn error(&self, call: &'static str, status: Status) -> Error {
        if status.code() == Code::Unimplemented {
            return Error::Unsupported { call };
        }
        let silent = matches!(
            status.code(),
            Code::Unavailable | Code::Unknown | Code::Cancelled | Code::DeadlineExceeded
        );
        if silent {
            Error::Unreachable { call, authority: self.authority.clone(), source: Box::new(status) }
        } else {
            Error::Refused { call, refusal: status.into() }
        }
    }
}

fn bearer(token: &Secret) -> Result<MetadataValue<Ascii>, Error> {
    let mut value: MetadataValue<Ascii> =
        format!("Bearer {}", token.expose()).parse().map_err(|_| Error::Token)?;
    value.set_sensitive(true);
    Ok(value)
}
