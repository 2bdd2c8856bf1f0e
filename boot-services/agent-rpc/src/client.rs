//! Client of the workflow service, used by the agent.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use stdx::Secret;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint, Uri};
use tonic::{Code, Request, Status};

use crate::message::{Assignment, DiskChoice, Hello, Progress, Refusal, Report};
use crate::server::{BOOT, PATIENCE};
use crate::wire::proto::workflow_service_client::WorkflowServiceClient;
use crate::wire::proto::{ActionRequest, ActionStatusRequest};
use crate::wire::tinbox::v1::agent_client::AgentClient;
use crate::wire::tinbox::v1::{PowerOffConfirmation, PowerOffWait};
use crate::wire::{AnyActionStatus, MESSAGE_BYTES, text};
use crate::{Attributes, Pin};

/// Maximum time to establish a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of a call. Upstream's server may delay the response to GetAction by up to a minute.
const CALL_TIMEOUT: Duration = Duration::from_secs(75);
/// Maximum time in seconds that the box may delay the response to GetAction until there is an
/// action.
const PATIENCE_SECS: u64 = 20;
/// Interval of HTTP/2 PING frames. A dead connection is detected within this interval plus
/// [`KEEPALIVE_TIMEOUT`].
const KEEPALIVE: Duration = Duration::from_secs(10);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Error of a call, or of the client's setup.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address of the server is not a valid `host:port`.
    #[error("{authority:?} is not a valid address of the workflow service")]
    Authority {
        /// Invalid authority, as passed by the caller.
        authority: String,
        /// Error from the parser of the URL.
        #[source]
        source: tonic::transport::Error,
    },
    /// The TLS client cannot be configured.
    #[error("cannot set up TLS")]
    Tls(#[source] rustls::Error),
    /// The token has a character that is not valid in gRPC metadata (RFC 9110 section 5.5).
    #[error("the agent's token has a character that is not allowed in a header")]
    Token,
    /// The server responded with an error status.
    #[error("the server refused {call}")]
    Refused {
        /// Name of the gRPC method.
        call: &'static str,
        /// Status of the response.
        #[source]
        refusal: Refusal,
    },
    /// The server does not have this method: it is a stock Tinkerbell server.
    #[error("the server does not support {call}")]
    Unsupported {
        /// Name of the gRPC method.
        call: &'static str,
    },
    /// No response: the connection was refused or lost, or the call timed out.
    #[error("no response to {call} from {authority}")]
    Unreachable {
        /// Name of the gRPC method.
        call: &'static str,
        /// `host:port` of the server.
        authority: String,
        /// gRPC status that the transport produced.
        #[source]
        source: Box<Status>,
    },
}

impl Error {
    /// Returns true if a retry cannot succeed: NOT_FOUND, INVALID_ARGUMENT, FAILED_PRECONDITION.
    /// Tinkerbell's agent stops repeating a report after the same codes.
    pub fn is_permanent(&self) -> bool {
        matches!(self, Self::Refused { refusal, .. } if refusal.is_permanent())
    }

    /// Returns true if the service has no action for this agent at present: NOT_FOUND,
    /// FAILED_PRECONDITION.
    pub fn is_no_action(&self) -> bool {
        matches!(
            self,
            Self::Refused { refusal: Refusal::NotFound(_) | Refusal::Precondition(_), .. }
        )
    }
}

/// Client for the calls of one agent. Connects at the first call, and again after a lost
/// connection. Clones share the connection.
#[derive(Clone)]
pub struct Client {
    authority: String,
    agent_id: String,
    token: Option<MetadataValue<Ascii>>,
    boot: Option<MetadataValue<Ascii>>,
    tinkerbell: WorkflowServiceClient<Channel>,
    tinbox: AgentClient<Channel>,
}

impl Client {
    /// Creates a client of the server `authority` (`host:port`) for the agent `agent_id`. With
    /// `pin`, the client uses TLS and trusts only the owner of the pinned key; without, HTTP
    /// without TLS. Needs a tokio runtime; does no I/O yet.
    pub fn connect(
        authority: &str,
        agent_id: &str,
        token: Option<&Secret>,
        pin: Option<Pin>,
    ) -> Result<Self, Error> {
        let endpoint = endpoint(authority)?;
        let channel = match pin {
            Some(pin) => {
                let tls = TlsConnector::from(Arc::new(pin.client_config().map_err(Error::Tls)?));
                endpoint.connect_with_connector_lazy(tower::service_fn(move |to| {
                    connect_tls(to, tls.clone())
                }))
            }
            None => endpoint.connect_lazy(),
        };
        Self::over(channel, authority, agent_id, token)
    }

    /// Creates a client whose connections come from `connector` instead of TCP.
    pub fn connect_with<C, S>(
        connector: C,
        authority: &str,
        agent_id: &str,
        token: Option<&Secret>,
    ) -> Result<Self, Error>
    where
        C: Fn() -> S + Send + Sync + 'static,
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let connecting =
            move |_: Uri| std::future::ready(io::Result::Ok(TokioIo::new(connector())));
        let channel =
            endpoint(authority)?.connect_with_connector_lazy(tower::service_fn(connecting));
        Self::over(channel, authority, agent_id, token)
    }

    fn over(
        channel: Channel,
        authority: &str,
        agent_id: &str,
        token: Option<&Secret>,
    ) -> Result<Self, Error> {
        Ok(Self {
            authority: authority.to_owned(),
            agent_id: agent_id.to_owned(),
            token: token.map(bearer).transpose()?,
            boot: None,
            tinkerbell: WorkflowServiceClient::new(channel.clone())
                .max_decoding_message_size(MESSAGE_BYTES),
            tinbox: AgentClient::new(channel).max_decoding_message_size(MESSAGE_BYTES),
        })
    }

    /// Adds the machine's boot id to every call, as metadata. An id that is not a valid header
    /// value is omitted.
    #[must_use]
    pub fn in_boot(mut self, boot_id: &str) -> Self {
        self.boot = boot_id.parse().ok().filter(|_| !boot_id.is_empty());
        self
    }

    /// Returns the id of this client's agent.
    pub fn agent_id(&self) -> &str {
        &self.agent_id
    }

    /// Requests the next action (GetAction). Without an action, the box may delay the response by
    /// up to 20 s.
    pub async fn next(&self, attributes: Option<Attributes>) -> Result<Assignment, Error> {
        let message =
            ActionRequest { agent_id: Some(self.agent_id.clone()), agent_attributes: attributes };
        let mut request = self.request(message);
        request.metadata_mut().insert(PATIENCE, PATIENCE_SECS.into());
        let answer = self.tinkerbell.clone().get_action(request).await;
        answer
            .map(|answer| answer.into_inner().into())
            .map_err(|status| self.error("GetAction", status))
    }

    /// Reports the state of an action (ReportActionStatus).
    pub async fn report(&self, report: Report) -> Result<(), Error> {
        let report = AnyActionStatus::from(ActionStatusRequest::from(report));
        let request = self.request(report);
        let answer = self.tinkerbell.clone().report_action_status(request).await;
        answer.map(|_| ()).map_err(|status| self.error("ReportActionStatus", status))
    }

    /// Reports the progress of an action (ReportProgress). Returns the reason if the action must be
    /// stopped, else `None`. A stock server returns [`Error::Unsupported`].
    pub async fn progress(&self, progress: Progress) -> Result<Option<String>, Error> {
        let answer = self.tinbox.clone().report_progress(self.request(progress.into())).await;
        let answer = answer.map_err(|status| self.error("ReportProgress", status))?;
        Ok(Some(text(answer.into_inner().stop)).filter(|stop| !stop.is_empty()))
    }

    /// Records the disk that a hint selected (ChooseDisk). A stock server returns
    /// [`Error::Unsupported`].
    pub async fn choose_disk(&self, choice: DiskChoice) -> Result<(), Error> {
        let answer = self.tinbox.clone().choose_disk(self.request(choice.into())).await;
        answer.map(|_| ()).map_err(|status| self.error("ChooseDisk", status))
    }

    /// Waits up to 20 s for a request of the box to power the machine off (AwaitPowerOff), and
    /// returns its ID. A stock server returns [`Error::Unsupported`].
    pub async fn power_off_request(&self) -> Result<Option<String>, Error> {
        let mut request = self.request(PowerOffWait { agent_id: self.agent_id.clone() });
        request.metadata_mut().insert(PATIENCE, PATIENCE_SECS.into());
        let answer = self.tinbox.clone().await_power_off(request).await;
        let answer = answer.map_err(|status| self.error("AwaitPowerOff", status))?;
        Ok(Some(text(answer.into_inner().request_id)).filter(|id| !id.is_empty()))
    }

    /// Confirms a request to power off, before the machine powers off (ConfirmPowerOff). Returns
    /// false if the request has ended, so that the machine must stay on.
    pub async fn confirm_power_off(&self, request_id: &str) -> Result<bool, Error> {
        let (agent_id, request_id) = (self.agent_id.clone(), request_id.to_owned());
        let request = self.request(PowerOffConfirmation { agent_id, request_id });
        let answer = self.tinbox.clone().confirm_power_off(request).await;
        answer
            .map(|answer| answer.into_inner().granted)
            .map_err(|status| self.error("ConfirmPowerOff", status))
    }

    /// Reports the agent's start (Hello). A stock server returns [`Error::Unsupported`].
    pub async fn hello(&self, hello: Hello) -> Result<(), Error> {
        let answer = self.tinbox.clone().hello(self.request(hello.into())).await;
        answer.map(|_| ()).map_err(|status| self.error("Hello", status))
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = &self.token {
            request.metadata_mut().insert("authorization", token.clone());
        }
        if let Some(boot) = &self.boot {
            request.metadata_mut().insert(BOOT, boot.clone());
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

fn endpoint(authority: &str) -> Result<Endpoint, Error> {
    let endpoint = Endpoint::from_shared(format!("http://{authority}"))
        .map_err(|source| Error::Authority { authority: authority.to_owned(), source })?;
    Ok(endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(CALL_TIMEOUT)
        .http2_keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .tcp_nodelay(true))
}

async fn connect_tls(to: Uri, tls: TlsConnector) -> io::Result<TokioIo<TlsStream<TcpStream>>> {
    let host = to.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let stream = TcpStream::connect((host.as_str(), to.port_u16().unwrap_or(443))).await?;
    stream.set_nodelay(true)?;
    let name = ServerName::try_from(host).map_err(io::Error::other)?;
    Ok(TokioIo::new(tls.connect(name, stream).await?))
}

fn bearer(token: &Secret) -> Result<MetadataValue<Ascii>, Error> {
    let mut value: MetadataValue<Ascii> =
        format!("Bearer {}", token.expose()).parse().map_err(|_| Error::Token)?;
    value.set_sensitive(true);
    Ok(value)
}
