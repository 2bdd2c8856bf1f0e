//! Serial console of a BMC: serial-over-LAN in a session of its own, as a stream of bytes.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf, split};
use tokio::time::{Instant, sleep_until, timeout};

use super::Ipmi;
use crate::command::payload::{ActivateSol, DeactivateSol, GetSolActivation};
use crate::line::connect::Live;
use crate::line::link::{QUICK, SHORT};
use crate::message::Command as _;
use crate::packet::PayloadType;
use crate::session::Outstanding;
use crate::session::sol::{Received, Sol, Transmission};
use crate::{Address, Error};

/// Buffer of the stream in each direction, in bytes.
const STREAM_BYTES: usize = 16 * 1024;
/// Interval of requests that keep the session open, and notice an end that the BMC did not report.
/// A BMC drops an idle session after 60 s (IPMI 2.0 §6.12.15).
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Time without a packet from the BMC after which the session is lost.
const SILENCE_LIMIT: Duration = Duration::from_secs(50);
/// Maximum wait for the owner of the stream to read.
const STALL_LIMIT: Duration = Duration::from_secs(10);
/// Line that the stream has in place of characters that the BMC lost.
const OVERRUN_MARK: &[u8] = b"\r\n[the BMC lost characters here]\r\n";

impl Ipmi {
    /// Opens the serial console (serial-over-LAN). The stream ends when the BMC ends the session; a
    /// drop of the stream ends the session.
    ///
    /// # Errors
    /// The BMC does not respond, refuses the login, or has no serial console free.
    pub async fn console(&self) -> Result<DuplexStream, Error> {
        let open = self.line.turn(&self.endpoint, async |turn| turn.open_separate().await);
        let mut live = open.await?;
        if live.suite().is_none() {
            live.close().await;
            return Err(Error::ConsoleMissing { address: self.endpoint.address.clone() });
        }
        let limits = match live.call(&ActivateSol, QUICK).await {
            Ok(limits) => limits,
            Err(error) => {
                live.close().await;
                return Err(refused(&self.endpoint.address, error));
            }
        };
        if limits.port != self.endpoint.address.port {
            // Behind a forwarded port the BMC reports its own. A BMC with another port for the
            // payload does not answer here, and the session is lost.
            let port = limits.port;
            tracing::debug!(bmc = %self.endpoint.address, port, "another port for the payload");
        }
        let (ours, theirs) = tokio::io::duplex(STREAM_BYTES);
        let address = self.endpoint.address.clone();
        let (reader, writer) = split(ours);
        let sol = Sol::new(limits.to_bmc);
        let console = Console { live, sol, pending: None, last_packet: Instant::now() };
        tokio::spawn(async move {
            match console.run(reader, writer).await {
                Ok(reason) => tracing::debug!(bmc = %address, reason, "serial-over-LAN ended"),
                Err(error) => {
                    let error = stdx::chain(&error);
                    tracing::debug!(bmc = %address, %error, "serial-over-LAN lost");
                }
            }
        });
        Ok(theirs)
    }
}

/// Converts a refused activation.
fn refused(address: &Address, error: Error) -> Error {
    let address = address.clone();
    match error {
        Error::CommandRefused { command: ActivateSol::NAME, refusal, .. }
            if refusal.code.0 == ActivateSol::ALREADY_ACTIVE =>
        {
            Error::ConsoleBusy { address }
        }
        Error::CommandRefused { command: ActivateSol::NAME, refusal, .. }
            if refusal.code.0 == ActivateSol::DISABLED =>
        {
            Error::ConsoleDisabled { address }
        }
        error => error,
    }
}

/// Session with active serial-over-LAN.
struct Console {
    live: Live,
    sol: Sol,
    /// Keep-alive request without a response so far.
    pending: Option<Outstanding>,
    /// Time of the last valid packet from the BMC.
    last_packet: Instant,
}

impl Console {
    /// Moves characters in both directions until one side ends. Returns the reason of the end.
    async fn run(
        mut self,
        mut typed: ReadHalf<DuplexStream>,
        mut shown: WriteHalf<DuplexStream>,
    ) -> Result<&'static str, Error> {
        let mut buffer = [0; 1024];
        let mut keep_alive = Instant::now() + KEEP_ALIVE;
        loop {
            let Some(due) = self.send_all().await? else {
                return Ok("the BMC acknowledges no typed characters");
            };
            let wake = due.map_or(keep_alive, |due| due.min(keep_alive));
            let room = self.sol.room().min(buffer.len());
            tokio::select! {
                datagram = self.live.datagram() => {
                    let received = self.received(&datagram?);
                    if !show(&received, &mut shown).await {
                        self.close().await;
                        return Ok("the console is not read");
                    }
                    if received.is_ended {
                        self.live.close().await;
                        return Ok("the BMC ended it");
                    }
                }
                read = typed.read(&mut buffer[..room]), if room > 0 => match read {
                    Ok(len) if len > 0 => self.sol.type_in(&buffer[..len]),
                    _ => {
                        self.close().await;
                        return Ok("the console was closed");
                    }
                },
                () = sleep_until(wake) => {}
            }
            let now = Instant::now();
            if now >= keep_alive {
                if now - self.last_packet > SILENCE_LIMIT {
                    return Ok("the BMC stopped responding");
                }
                self.pending = Some(self.live.post(&GetSolActivation).await?);
                keep_alive = now + KEEP_ALIVE;
            }
        }
    }

    /// Sends all that is due. Returns the time of the next transmission; `None` if the BMC did not
    /// acknowledge the last one.
    async fn send_all(&mut self) -> Result<Option<Option<Instant>>, Error> {
        loop {
            match self.sol.transmit(Instant::now()) {
                Transmission::Send(payload) => {
                    self.live.send_payload(PayloadType::Sol, &payload).await?;
                }
                Transmission::Wait(due) => return Ok(Some(due)),
                Transmission::Lost => return Ok(None),
            }
        }
    }

    /// Processes a datagram. A datagram that is not valid has no effect.
    fn received(&mut self, datagram: &[u8]) -> Received {
        let now = Instant::now();
        if let Some(pending) = &self.pending
            && let Ok(is_active) = self.live.answer(&GetSolActivation, pending, datagram)
        {
            self.pending = None;
            self.last_packet = now;
            // A BMC without the command gives no answer to the question.
            let is_ended = is_active == Some(false);
            return Received { is_ended, ..Received::default() };
        }
        let payload = self.live.open_payload(PayloadType::Sol, datagram);
        match payload.and_then(|payload| self.sol.receive(&payload, now)) {
            Ok(received) => {
                self.last_packet = now;
                received
            }
            Err(malformed) => {
                tracing::debug!(%malformed, "datagram dropped");
                Received::default()
            }
        }
    }

    async fn close(mut self) {
        if let Err(error) = self.live.call(&DeactivateSol, SHORT).await {
            tracing::debug!(%error, "serial-over-LAN not deactivated");
        }
        self.live.close().await;
    }
}

/// Writes new characters to the stream. Returns false if its owner has gone or does not read.
async fn show(received: &Received, shown: &mut WriteHalf<DuplexStream>) -> bool {
    let write = async {
        if received.is_overrun {
            shown.write_all(OVERRUN_MARK).await?;
        }
        shown.write_all(&received.characters).await
    };
    matches!(timeout(STALL_LIMIT, write).await, Ok(Ok(())))
}
