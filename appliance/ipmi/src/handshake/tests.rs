//! Tests of the handshake against a minimal BMC, and against random and changed bytes.

use proptest::prelude::*;

use super::*;
use crate::command::chassis::ChassisStatus;
use crate::crypto::hmac;
use crate::packet::{PayloadType, sealed};

const GUID: [u8; 16] = [0xA1; 16];
const MANAGED_ID: u32 = 0x0200_4000;
const MANAGED_RANDOM: [u8; 16] = [0x5C; 16];

fn login(password: &str) -> Login {
    let username = "admin".to_owned();
    Login::new(&Credentials { username, password: password.into() }).unwrap()
}

fn start(suite: CipherSuite) -> Handshake {
    let seed = Seed { tag: 0xFE, console_id: 0xA0A1_A2A3, console_random: [7; 16] };
    Handshake::new(suite, login("secret"), seed)
}

/// Returns the response of a BMC with the password `password` to the pending message.
fn answer(handshake: &Handshake, password: &str) -> Vec<u8> {
    let suite = handshake.suite;
    let console_id = handshake.seed.console_id;
    let head = [&[handshake.tag(), 0, 0, 0], console_id.to_le_bytes().as_slice()].concat();
    let exchange = Exchange {
        suite,
        console_id,
        managed_id: MANAGED_ID,
        console_random: handshake.seed.console_random,
        managed_random: MANAGED_RANDOM,
        managed_guid: GUID,
        role: ROLE,
        username: b"admin".to_vec(),
        key: Zeroizing::new(password.as_bytes().to_vec()),
    };
    match &handshake.state {
        State::Opening => {
            let request = open_request(0, 0, MANAGED_ID, suite);
            let payload = [head.as_slice(), &request[4..]].concat();
            plain(PayloadType::OpenResponse, &payload)
        }
        State::Proving { managed_id } => {
            assert_eq!(*managed_id, MANAGED_ID);
            let code = exchange.managed_code();
            let payload = [head.as_slice(), &MANAGED_RANDOM, &GUID, &code].concat();
            plain(PayloadType::Rakp2, &payload)
        }
        State::Confirming { .. } => {
            let sik = exchange.session_integrity_key();
            let managed_id = MANAGED_ID.to_le_bytes();
            let parts: [&[u8]; 3] = [&exchange.console_random, &managed_id, &GUID];
            let check = hmac(suite, &sik, &parts);
            let payload = [head.as_slice(), &check[..suite.check_len()]].concat();
            plain(PayloadType::Rakp4, &payload)
        }
    }
}

/// Creates a handshake after 0, 1 or 2 completed steps.
fn at_step(suite: CipherSuite, step: usize) -> Handshake {
    let mut handshake = start(suite);
    for _ in 0..step {
        let datagram = answer(&handshake, "secret");
        assert!(matches!(handshake.receive(&datagram), Ok(Progress::Next)));
    }
    handshake
}

fn session(suite: CipherSuite) -> Session {
    let mut handshake = at_step(suite, 2);
    let datagram = answer(&handshake, "secret");
    match handshake.receive(&datagram) {
        Ok(Progress::Open(session)) => *session,
        _ => panic!("RAKP message 4 opens the session"),
    }
}

fn bmc_keys(suite: CipherSuite) -> SessionKeys {
    let State::Confirming { session_integrity_key, .. } = at_step(suite, 2).state else {
        panic!("the third step")
    };
    SessionKeys::derive(suite, &session_integrity_key)
}

/// Returns a BMC's response to Get Chassis Status of a machine that is on.
fn status_reply(suite: CipherSuite, request_number: u8, sequence: u32) -> Vec<u8> {
    let mut message = vec![0x81, 0x04, 0x7B, 0x20, request_number << 2, 0x01, 0x00, 0x21, 0, 0];
    let sum = message[3..].iter().fold(0_u8, |sum, byte| sum.wrapping_sub(*byte));
    message.push(sum);
    sealed(&bmc_keys(suite), (0xA0A1_A2A3, sequence), [3; 16], PayloadType::Message, &message)
}

#[test]
fn opens_with_both_suites_and_asks() {
    for suite in CipherSuite::PREFERRED {
        let mut session = session(suite);
        let asked = session.begin(&ChassisStatus);
        let (code, data) = session.receive(&asked, &status_reply(suite, 1, 1)).unwrap();
        assert_eq!((code.0, data), (0, vec![0x21, 0, 0]));
        let again = session.receive(&asked, &status_reply(suite, 1, 1));
        assert_eq!(again, Err(Malformed::Replayed));
        let stray = session.receive(&asked, &status_reply(suite, 2, 2));
        assert!(matches!(stray, Err(Malformed::Stray(_))));
    }
}

#[test]
fn a_message_sent_again_is_the_same_message() {
    for step in 0..3 {
        let handshake = at_step(CipherSuite::Seventeen, step);
        assert_eq!(handshake.transmit(), handshake.transmit());
    }
    let mut session = session(CipherSuite::Seventeen);
    let asked = session.begin(&ChassisStatus);
    let (first, second) = (session.transmit(&asked, [1; 16]), session.transmit(&asked, [1; 16]));
    assert_eq!((&first[10..14], &second[10..14]), (&[1, 0, 0, 0][..], &[2, 0, 0, 0][..]));
    assert_eq!(first[16..48], second[16..48], "same request, same number");
}

#[test]
fn another_password_is_told_by_the_proof() {
    let mut handshake = at_step(CipherSuite::Three, 1);
    let datagram = answer(&handshake, "secreT");
    let Ok(Progress::Refused(SessionRefusal::OtherPassword { farewell })) =
        handshake.receive(&datagram)
    else {
        panic!("the BMC's proof was made with another password")
    };
    let Ok(Packet::Plus(packet)) = Packet::parse(&farewell) else { panic!("RMCP+") };
    assert_eq!(packet.payload_type, PayloadType::Rakp3);
    assert_eq!(packet.payload[..2], [0x00, 0x0F], "invalid integrity check value");
    assert_eq!(packet.payload.len(), 8, "and no proof of ours");
}

#[test]
fn a_status_ends_it_at_every_step() {
    for step in 0..3 {
        let mut handshake = at_step(CipherSuite::Seventeen, step);
        let mut datagram = answer(&handshake, "secret");
        datagram[17] = 0x11;
        let whole = handshake.receive(&datagram);
        assert!(matches!(
            whole,
            Ok(Progress::Refused(SessionRefusal::Status(status))) if status.refuses_suite()
        ));
    }
    // Some BMCs refuse in two bytes.
    let mut handshake = start(CipherSuite::Seventeen);
    let refusal = plain(PayloadType::OpenResponse, &[0xFE, 0x04]);
    assert!(matches!(
        handshake.receive(&refusal),
        Ok(Progress::Refused(SessionRefusal::Status(_)))
    ));
}

#[test]
fn a_weaker_suite_than_proposed_is_not_taken() {
    let mut handshake = start(CipherSuite::Seventeen);
    let mut other = start(CipherSuite::Three);
    other.seed = handshake.seed.clone();
    let datagram = answer(&other, "secret");
    assert!(matches!(handshake.receive(&datagram), Err(Malformed::Field(_))));
    assert_eq!(handshake.step(), "Open Session");
}

#[test]
fn credentials_that_do_not_fit_are_refused() {
    let login = |username: usize, password: usize| {
        let credentials =
            Credentials { username: "u".repeat(username), password: "p".repeat(password).into() };
        Login::new(&credentials).is_ok()
    };
    assert!(login(16, 20) && login(0, 0));
    assert!(!login(17, 20) && !login(16, 21));
}

fn suites() -> impl Strategy<Value = CipherSuite> {
    prop::sample::select(CipherSuite::PREFERRED.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Random bytes, bare or in a valid frame, do not change the state.
    #[test]
    fn noise_is_dropped(
        suite in suites(),
        step in 0_usize..3,
        noise in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut handshake = at_step(suite, step);
        let out = handshake.transmit();
        prop_assert!(handshake.receive(&noise).is_err());
        let awaited = [PayloadType::OpenResponse, PayloadType::Rakp2, PayloadType::Rakp4][step];
        let framed = handshake.receive(&plain(awaited, &noise));
        prop_assert!(!matches!(framed, Ok(Progress::Open(_))));
        if framed.is_err() {
            prop_assert_eq!(handshake.transmit(), out);
        }
        let mut session = session(suite);
        let asked = session.begin(&ChassisStatus);
        prop_assert!(session.receive(&asked, &noise).is_err());
    }

    /// A valid response with changed, missing or added bytes never opens a session, unless the
    /// changed bytes have no meaning.
    #[test]
    fn mutations_open_nothing(
        suite in suites(),
        step in 0_usize..3,
        at in any::<prop::sample::Index>(),
        flip in 1_u8..,
        keep in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let mut handshake = at_step(suite, step);
        let mut datagram = answer(&handshake, "secret");
        if cut {
            datagram.truncate(keep.index(datagram.len()));
        } else {
            let at = at.index(datagram.len());
            datagram[at] ^= flip;
        }
        let taken = handshake.receive(&datagram);
        if cut {
            prop_assert!(taken.is_err());
        }
        if let Ok(Progress::Open(_)) = taken {
            // RMCP's reserved byte and number, the header's sequence number, RAKP's reserved bytes.
            let original = answer(&at_step(suite, step), "secret");
            let differs: Vec<_> =
                (0..original.len()).filter(|at| original[*at] != datagram[*at]).collect();
            let meaningless = [1, 2, 10, 11, 12, 13, 18, 19];
            prop_assert!(differs.iter().all(|at| meaningless.contains(at)), "{differs:?}");
        }
    }

    /// Session packets with any changed signed byte are rejected.
    #[test]
    fn mutations_of_a_reply_are_dropped(
        suite in suites(),
        at in any::<prop::sample::Index>(),
        flip in 1_u8..,
        keep in any::<prop::sample::Index>(),
    ) {
        let mut session = session(suite);
        let asked = session.begin(&ChassisStatus);
        let good = status_reply(suite, 1, 1);
        prop_assert!(session.receive(&asked, &good[..keep.index(good.len())]).is_err());
        let mut bad = good.clone();
        let at = at.index(bad.len());
        bad[at] ^= flip;
        // All but RMCP's reserved byte and number.
        prop_assert_eq!(session.receive(&asked, &bad).is_ok(), at == 1 || at == 2);
        if at != 1 && at != 2 {
            prop_assert!(session.receive(&asked, &good).is_ok(), "the forgery used nothing up");
        }
    }
}
