//! Connection of serial-over-LAN: opens the session, then moves characters in both directions.

use std::sync::Arc;
use std::time::Duration;

use socket2::SockRef;
use stdx::random_hex;
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, split,
};
use tokio::time::{Instant, interval_at, timeout};

use super::message;
use super::session::{RedirectionError, Session};
use crate::line::{Endpoint, Security, connect};
use crate::{Error, Fingerprint, tls};

/// Maximum time from the first packet to the open console. The management engine of a machine that
/// is off needs seconds to wake up.
const OPEN_LIMIT: Duration = Duration::from_secs(20);
/// Interval of heartbeats. The firmware ends a session after 10 s without a message.
const HEARTBEAT: Duration = Duration::from_secs(4);
/// Time without the TCP acknowledgment of a heartbeat after which the connection is lost.
const UNACKNOWLEDGED_LIMIT: Duration = Duration::from_secs(20);
/// Maximum wait for the owner of the console to read, and for the machine to accept characters.
const STALL_LIMIT: Duration = Duration::from_secs(10);
/// Buffer of the console in each direction, in bytes.
const STREAM_BYTES: usize = 16 * 1024;
/// Maximum bytes of one reading from the connection.
const READ_BYTES: usize = 4096;
/// Bytes of the random client nonce: 32 characters, as real clients send.
const CNONCE_BYTES: usize = 16;

/// Connection with or without TLS.
trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// Opens serial-over-LAN. `pin` is the expected certificate. `owned` is dropped with the console.
pub async fn open(
    endpoint: &Endpoint,
    pin: Option<Fingerprint>,
    owned: Arc<()>,
) -> Result<DuplexStream, Error> {
    let opened = timeout(OPEN_LIMIT, Console::open(endpoint, pin)).await;
    let (console, first) = opened.unwrap_or_else(|_| Err(RedirectionError::Timeout.into()))?;
    let (ours, theirs) = tokio::io::duplex(STREAM_BYTES);
    let host = endpoint.host.clone();
    tokio::spawn(async move {
        match console.run(first, ours).await {
            Ok(reason) => tracing::debug!(host, reason, "serial-over-LAN ended"),
            Err(error) => {
                tracing::debug!(host, error = stdx::chain(&error), "serial-over-LAN lost");
            }
        }
        drop(owned);
    });
    Ok(theirs)
}

struct Console {
    connection: Box<dyn Connection>,
    session: Session,
}

impl Console {
    /// Connects and logs in. Returns the console and its first output.
    async fn open(endpoint: &Endpoint, pin: Option<Fingerprint>) -> Result<(Self, Vec<u8>), Error> {
        let port = endpoint.redirection_port();
        let stream = connect(endpoint, port).await.map_err(|error| match error {
            Error::Closed { .. } => RedirectionError::Closed { port }.into(),
            error => error,
        })?;
        let broken = |source| Error::Connect { source };
        let socket = SockRef::from(&stream);
        socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED_LIMIT)).map_err(broken)?;
        stream.set_nodelay(true).map_err(broken)?;
        let (connection, is_private): (Box<dyn Connection>, bool) = match endpoint.security {
            Security::Plain => (Box::new(stream), false),
            Security::Tls(_) => (Box::new(tls::start(stream, pin).await?.0), true),
        };
        let session = Session::new(endpoint.login.clone(), random_hex(CNONCE_BYTES), is_private);
        let mut console = Self { connection, session };
        console.connection.write_all(&message::START_SESSION).await.map_err(broken)?;
        let (mut first, mut buffer) = (Vec::new(), vec![0; READ_BYTES]);
        while !console.session.is_open() {
            let length = console.connection.read(&mut buffer).await.map_err(broken)?;
            if length == 0 {
                return Err(RedirectionError::Ended.into());
            }
            let reaction = console.session.receive(&buffer[..length])?;
            first.extend(reaction.characters);
            console.connection.write_all(&reaction.reply).await.map_err(broken)?;
        }
        Ok((console, first))
    }

    /// Moves characters until one side ends. Returns the reason of the end.
    async fn run(self, first: Vec<u8>, stream: DuplexStream) -> Result<&'static str, Error> {
        let Self { connection, mut session } = self;
        let (mut reader, mut writer) = split(connection);
        let (mut typed, mut shown) = split(stream);
        let (mut buffer, mut keys) = (vec![0; READ_BYTES], [0; 1024]);
        let mut heartbeat = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
        if !write(&mut shown, &first).await {
            return Ok("the console is not read");
        }
        loop {
            let (sent, end) = tokio::select! {
                read = reader.read(&mut buffer) => match read {
                    Ok(0) => return Ok("the firmware ended the connection"),
                    Err(source) => return Err(Error::Connect { source }),
                    Ok(length) => {
                        let reaction = session.receive(&buffer[..length])?;
                        let is_shown = write(&mut shown, &reaction.characters).await;
                        match (is_shown, reaction.is_ended) {
                            (false, _) => {
                                (message::END_SOL.to_vec(), Some("the console is not read"))
                            }
                            (true, true) => (reaction.reply, Some("the firmware ended it")),
                            (true, false) => (reaction.reply, None),
                        }
                    }
                },
                read = typed.read(&mut keys) => match read {
                    Ok(length) if length > 0 => (message::typed(&keys[..length]), None),
                    _ => (message::END_SOL.to_vec(), Some("the console was closed")),
                },
                _ = heartbeat.tick() => (message::HEARTBEAT.to_vec(), None),
            };
            if !write(&mut writer, &sent).await {
                return Ok("the machine accepts no characters");
            }
            if let Some(reason) = end {
                // The end of the connection also ends the session.
                let _ = timeout(STALL_LIMIT, writer.shutdown()).await;
                return Ok(reason);
            }
        }
    }
}

/// Writes all bytes in time. Returns false if the other side has gone or does not read.
async fn write(writer: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> bool {
    matches!(timeout(STALL_LIMIT, writer.write_all(bytes)).await, Ok(Ok(())))
}
