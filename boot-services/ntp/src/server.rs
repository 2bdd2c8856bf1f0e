//! NTP server for the machines of the rack.

use std::io;

use tokio::net::UdpSocket;
use tokio::sync::watch;

use crate::{BYTES, ClockState, Leap, Mode, Packet, Timestamp};

/// Maximum bytes of a request that are read. Extension fields and keys follow the message, and are
/// ignored.
const REQUEST_MAX: usize = 512;
/// Announced precision, as an exponent of 2: about a microsecond, the precision of a clock that is
/// read by a system call.
const PRECISION: i8 = -20;

/// Returns the answer to a request that arrived at `received`; `None` if the datagram is not a
/// request. The answer has the length of the shortest request, so that it cannot amplify a flood.
pub fn answer(
    bytes: &[u8],
    state: &ClockState,
    received: Timestamp,
    now: impl FnOnce() -> Timestamp,
) -> Option<[u8; BYTES]> {
    let request = Packet::decode(bytes).filter(|packet| packet.mode == Mode::Client)?;
    let mut answer = Packet {
        version: request.version,
        mode: Mode::Server,
        poll: request.poll,
        precision: PRECISION,
        origin: request.transmit,
        receive: received,
        ..Packet::request(Timestamp::default())
    };
    match state.announcement(received) {
        Some(announcement) => {
            answer.stratum = announcement.stratum;
            answer.leap = Leap::Known(announcement.leap);
            answer.reference_id = announcement.id;
            answer.reference = announcement.reference;
            answer.root_delay = announcement.root_delay;
            answer.root_dispersion = announcement.root_dispersion;
        }
        None => {
            // RFC 5905 section 7.4: not yet synchronized.
            answer.leap = Leap::Unsynchronized;
            answer.reference_id = *b"INIT";
        }
    }
    answer.transmit = now();
    Some(answer.encode())
}

/// Answers requests at `socket`, with the current quality of the clock.
///
/// # Errors
/// The socket fails.
pub async fn serve(socket: UdpSocket, state: watch::Receiver<ClockState>) -> io::Result<()> {
    let mut buffer = [0; REQUEST_MAX];
    loop {
        let (count, from) = match socket.recv_from(&mut buffer).await {
            Ok(received) => received,
            // The host of a client reports a closed port (ICMP).
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
            Err(error) => return Err(error),
        };
        let now = Timestamp::now();
        let state = *state.borrow();
        let request = buffer.get(..count).unwrap_or_default();
        if let Some(answer) = answer(request, &state, now, Timestamp::now) {
            // A client that gets no answer repeats its request.
            let _ = socket.send_to(&answer, from).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ServerReport;

    #[test]
    fn only_questions_are_answered() {
        let now = || Timestamp(5);
        let request = Packet::request(Timestamp(77)).encode();
        let unset = answer(&request, &ClockState::Unset, Timestamp(4), now).expect("an answer");
        let unset = Packet::decode(&unset).expect("a packet");
        assert_eq!((unset.leap, unset.stratum), (Leap::Unsynchronized, 0));
        assert_eq!(&unset.reference_id, b"INIT");
        let again = answer(&unset.encode(), &ClockState::Unset, Timestamp(4), now);
        assert_eq!(again, None, "two servers would talk for ever");
        assert_eq!(answer(b"", &ClockState::Unset, Timestamp(4), now), None);
    }

    #[test]
    fn an_answer_says_when_and_by_whom() {
        let report = ServerReport {
            stratum: 1,
            leap: 0,
            id: *b"GPS\0",
            at: Timestamp(3),
            root_delay: 0,
            root_dispersion: 2,
        };
        let request = Packet { version: 3, poll: 6, ..Packet::request(Timestamp(77)) };
        let state = ClockState::Synced(report);
        let bytes = answer(&request.encode(), &state, Timestamp(4), || Timestamp(5));
        let reply = Packet::decode(&bytes.expect("an answer")).expect("a packet");
        assert_eq!((reply.version, reply.poll, reply.stratum), (3, 6, 2));
        assert_eq!(reply.origin, Timestamp(77));
        assert_eq!((reply.receive, reply.transmit), (Timestamp(4), Timestamp(5)));
    }

    #[test]
    fn a_leap_second_that_upstream_announces_is_announced_to_the_rack() {
        let report =
            ServerReport { stratum: 1, leap: 1, at: Timestamp(3), ..ServerReport::default() };
        let request = Packet::request(Timestamp(77)).encode();
        for (state, leap) in [
            (ClockState::Synced(report), 1),
            (ClockState::Synced(ServerReport { leap: 2, ..report }), 2),
            (ClockState::Synced(ServerReport { leap: 0, ..report }), 0),
            (ClockState::Holdover(Some(report)), 0),
        ] {
            let bytes = answer(&request, &state, Timestamp(4), || Timestamp(5)).unwrap();
            assert_eq!(Packet::decode(&bytes).unwrap().leap, Leap::Known(leap), "{state:?}");
        }
    }
}
