//! Client for NTP servers.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::timeout;

use crate::{Leap, Mode, Offset, Packet, ServerReport, Timestamp};

/// Maximum time to wait for a server's answer.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// Accepted strata of servers.
const STRATA: std::ops::RangeInclusive<u8> = 1..=14;
/// Maximum root distance of a server, which is its own error estimate, in 2^-16 s: 16 s, RFC 5905's
/// MAXDISP.
const DISTANCE_MAX: u64 = 16 << 16;
/// Maximum bytes of an answer that are read.
const ANSWER_MAX: usize = 512;

/// Measurement of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Offset of the server's clock from this machine's clock.
    pub offset: Offset,
    /// Round-trip delay to the server.
    pub delay: Duration,
    /// Quality of the server's clock.
    pub report: ServerReport,
}

/// Reason why a server's answer is not used.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Error of the network.
    #[error("cannot send a time request to {server}")]
    Io {
        /// Address of the server.
        server: SocketAddr,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The server did not answer within [`ANSWER_TIMEOUT`].
    #[error("no response from {0} within {secs} s", secs = ANSWER_TIMEOUT.as_secs())]
    Silent(SocketAddr),
    /// The server refuses requests (kiss-o'-death, RFC 5905 section 7.4).
    #[error("the server refuses requests (kiss code {0:?})")]
    Kiss(String),
    /// The server's clock is not synchronized.
    #[error("the server's clock is not synchronized: {0}")]
    Unsynchronized(&'static str),
}

/// Times of this machine's clock at which a request was sent and its answer received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestTimes {
    /// Time at which the request was sent.
    pub sent: Timestamp,
    /// Time at which the answer was received.
    pub received: Timestamp,
}

/// Evaluates an answer; `None` if the datagram does not answer this request.
///
/// # Errors
/// The answer cannot be trusted: [`Refusal::Kiss`] or [`Refusal::Unsynchronized`].
pub fn evaluate(
    bytes: &[u8],
    nonce: Timestamp,
    RequestTimes { sent, received }: RequestTimes,
    server: IpAddr,
) -> Option<Result<Sample, Refusal>> {
    let packet = Packet::decode(bytes)?;
    if packet.mode != Mode::Server || packet.origin != nonce {
        return None;
    }
    // ntpd and chrony send a kiss with the leap bits of a clock that does not know the time.
    let is_kiss = packet.reference_id.iter().all(u8::is_ascii_uppercase);
    if packet.stratum == 0 && (is_kiss || packet.leap != Leap::Unsynchronized) {
        let word = String::from_utf8_lossy(&packet.reference_id);
        return Some(Err(Refusal::Kiss(word.trim_end_matches('\0').to_owned())));
    }
    if packet.leap == Leap::Unsynchronized || !STRATA.contains(&packet.stratum) {
        return Some(Err(Refusal::Unsynchronized("the server reports this state")));
    }
    let distance = u64::from(packet.root_delay) / 2 + u64::from(packet.root_dispersion);
    if distance > DISTANCE_MAX || packet.transmit == Timestamp::default() {
        return Some(Err(Refusal::Unsynchronized("the time can be wrong by many seconds")));
    }
    // RFC 5905 section 8: T1 and T4 are ours, T2 and T3 the server's.
    let there = packet.receive.since(sent).0;
    let back = packet.transmit.since(received).0;
    let (away, waited) = (received.since(sent).0, packet.transmit.since(packet.receive).0);
    let delay = Duration::from_nanos(u64::try_from(away.saturating_sub(waited)).unwrap_or(0));
    let in_units =
        |time: Duration| u32::try_from((time.as_nanos() << 16) / 1_000_000_000).unwrap_or(u32::MAX);
    Some(Ok(Sample {
        offset: Offset(there.midpoint(back)),
        delay,
        report: ServerReport {
            stratum: packet.stratum,
            leap: match packet.leap {
                Leap::Known(leap) => leap,
                Leap::Unsynchronized => 0,
            },
            id: match server {
                IpAddr::V4(address) => address.octets(),
                // RFC 5905 wants a digest; what it is for, loops, the last bytes show as well.
                IpAddr::V6(address) => address.to_bits().to_le_bytes()[..4].try_into().ok()?,
            },
            at: received,
            root_delay: packet.root_delay.saturating_add(in_units(delay)),
            root_dispersion: packet.root_dispersion,
        },
    }))
}

/// Measures the clock of one server.
///
/// # Errors
/// The server cannot be reached, does not answer within [`ANSWER_TIMEOUT`], or cannot be trusted.
pub async fn query(server: SocketAddr) -> Result<Sample, Refusal> {
    let failed = |source| Refusal::Io { server, source };
    let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).await.map_err(failed)?;
    // From then on only this server's answers come here.
    socket.connect(server).await.map_err(failed)?;
    let nonce = u64::from_str_radix(&stdx::random_hex(8), 16).unwrap_or_default();
    let nonce = Timestamp(nonce);
    let sent = Timestamp::now();
    socket.send(&Packet::request(nonce).encode()).await.map_err(failed)?;
    let answer = async {
        let mut bytes = [0; ANSWER_MAX];
        loop {
            let count = socket.recv(&mut bytes).await.map_err(failed)?;
            let times = RequestTimes { sent, received: Timestamp::now() };
            let bytes = bytes.get(..count).unwrap_or_default();
            if let Some(evaluated) = evaluate(bytes, nonce, times, server.ip()) {
                return evaluated;
            }
        }
    };
    timeout(ANSWER_TIMEOUT, answer).await.unwrap_or(Err(Refusal::Silent(server)))
}

/// Returns the sample with the median offset, so that one wrong server has no effect while two
/// others are right. `servers` has the samples of each server; the one with the shortest delay
/// counts. `None` without any samples.
pub fn choose(servers: &[Vec<Sample>]) -> Option<Sample> {
    let best = |samples: &Vec<Sample>| samples.iter().min_by_key(|sample| sample.delay).copied();
    let mut candidates: Vec<Sample> = servers.iter().filter_map(best).collect();
    candidates.sort_by_key(|sample| sample.offset);
    candidates.get(candidates.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
mod tests;
