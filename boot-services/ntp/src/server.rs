//! Time server for the rack.

use std::io;

use tokio::net::UdpSocket;
use tokio::sync::watch;

use crate::{BYTES, Leap, Mode, Packet, Standing, Timestamp};

/// The longest question read; extensions and keys follow the message, and are not used.
const QUESTION_MAX: usize = 512;
/// Microseconds: what a clock that is read through a system call can tell.
const PRECISION: i8 = -20;

/// Answer to a request that arrived at `received`; `None` if it is not a request. It is as long as
/// the shortest request, so that it cannot amplify a flood.
pub fn answer(
    question: &[u8],
    standing: &Standing,
    received: Timestamp,
    now: impl FnOnce() -> Timestamp,
) -> Option<[u8; BYTES]> {
    let asked = Packet::decode(question).filter(|packet| packet.mode == Mode::Client)?;
    let mut answer = Packet {
        version: asked.version,
        mode: Mode::Server,
        poll: asked.poll,
        precision: PRECISION,
        origin: asked.transmit,
        receive: received,
        ..Packet::question(Timestamp::default())
    };
    match standing.claims(received) {
        Some(claims) => {
            answer.stratum = claims.stratum;
            answer.leap = Leap::Known(claims.leap);
            answer.reference_id = claims.id;
            answer.reference = claims.reference;
            answer.root_delay = claims.root_delay;
            answer.root_dispersion = claims.root_dispersion;
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
pub async fn serve(socket: UdpSocket, standing: watch::Receiver<Standing>) -> io::Result<()> {
    let mut question = [0; QUESTION_MAX];
    loop {
        let (count, from) = match socket.recv_from(&mut question).await {
            Ok(received) => received,
            // Somebody who asked is gone, and said so (ICMP).
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
            Err(error) => return Err(error),
        };
        let now = Timestamp::now();
        let standing = *standing.borrow();
        let question = question.get(..count).unwrap_or_default();
        if let Some(answer) = answer(question, &standing, now, Timestamp::now) {
            // Whoever cannot be reached asks again.
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
        let question = Packet::question(Timestamp(77)).encode();
        let unset = answer(&question, &Standing::Unset, Timestamp(4), now).expect("an answer");
        let unset = Packet::decode(&unset).expect("a packet");
        assert_eq!((unset.leap, unset.stratum), (Leap::Unsynchronized, 0));
        assert_eq!(&unset.reference_id, b"INIT");
        let again = answer(&unset.encode(), &Standing::Unset, Timestamp(4), now);
        assert_eq!(again, None, "two servers would talk for ever");
        assert_eq!(answer(b"", &Standing::Unset, Timestamp(4), now), None);
    }

    #[test]
    fn an_answer_says_when_and_by_whom() {
        let told = ServerReport {
            stratum: 1,
            leap: 0,
            id: *b"GPS\0",
            at: Timestamp(3),
            root_delay: 0,
            root_dispersion: 2,
        };
        let question = Packet { version: 3, poll: 6, ..Packet::question(Timestamp(77)) };
        let standing = Standing::Synced(told);
        let bytes = answer(&question.encode(), &standing, Timestamp(4), || Timestamp(5));
        let said = Packet::decode(&bytes.expect("an answer")).expect("a packet");
        assert_eq!((said.version, said.poll, said.stratum), (3, 6, 2));
        assert_eq!(said.origin, Timestamp(77));
        assert_eq!((said.receive, said.transmit), (Timestamp(4), Timestamp(5)));
    }

    #[test]
    fn a_leap_second_that_upstream_announces_is_announced_to_the_rack() {
        let told =
            ServerReport { stratum: 1, leap: 1, at: Timestamp(3), ..ServerReport::default() };
        let question = Packet::question(Timestamp(77)).encode();
        for (standing, leap) in [
            (Standing::Synced(told), 1),
            (Standing::Synced(ServerReport { leap: 2, ..told }), 2),
            (Standing::Synced(ServerReport { leap: 0, ..told }), 0),
            (Standing::Holdover(Some(told)), 0),
        ] {
            let bytes = answer(&question, &standing, Timestamp(4), || Timestamp(5)).unwrap();
            assert_eq!(Packet::decode(&bytes).unwrap().leap, Leap::Known(leap), "{standing:?}");
        }
    }
}
