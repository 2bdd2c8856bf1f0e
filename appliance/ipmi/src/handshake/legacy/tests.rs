//! Tests of the setup of an IPMI 1.5 session against a minimal BMC, and against changed bytes.

use proptest::prelude::*;

use super::*;
use crate::Credentials;
use crate::command::chassis::ChassisStatus;

const TEMPORARY_ID: u32 = 0x0102_0304;
const SESSION_ID: u32 = 0x0900_0001;
const TO_BMC: u32 = 77;
const FROM_BMC: u32 = 0x6000_0000;
const OK: u8 = 0;
const MD5: u8 = 2;

fn key(password: &str) -> LegacyKey {
    LegacyKey::new(password.as_bytes()).unwrap()
}

fn start() -> LegacyHandshake {
    let credentials = Credentials { username: "admin".to_owned(), password: "secret".into() };
    let seed = LegacySeed { sequence: 9, from_bmc: FROM_BMC };
    LegacyHandshake::new(&Login::new(&credentials).unwrap(), seed).unwrap()
}

/// Returns the message of a BMC that answers a command with this code and data.
fn message<C: Command>(sequence: u8, code: u8, data: &[u8]) -> Vec<u8> {
    let sum = |bytes: &[u8]| bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_sub(*byte));
    let head = [0x81, (C::NET_FN | 1) << 2];
    let body = [&[0x20, sequence << 2, C::CODE, code], data].concat();
    [head.as_slice(), &[sum(&head)], &body, &[sum(&body)]].concat()
}

fn challenge() -> Vec<u8> {
    let data = [TEMPORARY_ID.to_le_bytes().as_slice(), &[0xC4; 16]].concat();
    legacy(&message::<GetChallenge>(9, OK, &data))
}

fn activation(authentication: u8) -> Vec<u8> {
    let ids = [SESSION_ID.to_le_bytes(), TO_BMC.to_le_bytes()].concat();
    message::<ActivateSession>(9, OK, &[&[authentication], ids.as_slice(), &[3]].concat())
}

fn activating() -> LegacyHandshake {
    let mut handshake = start();
    assert!(matches!(handshake.receive(&challenge()), Ok(LegacyProgress::Next)));
    handshake
}

fn session() -> Session {
    let answer = signed(&key("secret"), (TEMPORARY_ID, 0), &activation(MD5));
    match activating().receive(&answer) {
        Ok(LegacyProgress::Open(session)) => *session,
        _ => panic!("the activation opens the session"),
    }
}

/// Test vector of another MD5 (Python's `hashlib`).
#[test]
fn the_authentication_code_is_that_of_the_standard() {
    let code = key("secret").code(0x0403_0201, 5, &[0x20, 0x18, 0xC8]);
    assert_eq!(stdx::hex(&code), "5e204f26e1ac3d20210708b6a3e28b4f");
    let key = key("secret");
    assert!(key.verifies(0x0403_0201, 5, &[0x20, 0x18, 0xC8], &code));
    assert!(!key.verifies(0x0403_0201, 6, &[0x20, 0x18, 0xC8], &code));
    assert!(LegacyKey::new(&[b'x'; 16]).is_some() && LegacyKey::new(&[b'x'; 17]).is_none());
}

#[test]
fn the_session_counts_packets_in_both_directions() {
    let mut session = session();
    let request = session.begin(&ChassisStatus);
    let (first, again) = (session.transmit(&request, [0; 16]), session.transmit(&request, [0; 16]));
    assert_eq!(first[4..13], [MD5, 77, 0, 0, 0, 1, 0, 0, 9]);
    assert_eq!(again[5], 78, "a retransmission is a new packet");
    let status = message::<ChassisStatus>(1, OK, &[0x21, 0, 0]);
    let answer = |sequence| signed(&key("secret"), (SESSION_ID, sequence), &status);
    for old in [0, 1, FROM_BMC - 1] {
        assert_eq!(session.receive(&request, &answer(old)), Err(Malformed::Replayed), "{old}");
    }
    let (code, data) = session.receive(&request, &answer(FROM_BMC)).unwrap();
    assert_eq!((code, data), (CompletionCode::OK, vec![0x21, 0, 0]));
    assert_eq!(session.receive(&request, &answer(FROM_BMC)), Err(Malformed::Replayed));
    let other = signed(&key("Secret"), (SESSION_ID, FROM_BMC + 1), &status);
    assert!(matches!(session.receive(&request, &other), Err(Malformed::Unverified(_))));
    let stray = signed(&key("secret"), (SESSION_ID + 1, FROM_BMC + 1), &status);
    assert!(matches!(session.receive(&request, &stray), Err(Malformed::Stray(_))));
    assert!(session.receive(&request, &legacy(&status)).is_err(), "no AuthCode");
}

#[test]
fn a_session_without_authenticated_messages_is_closed_and_not_used() {
    let answer = signed(&key("secret"), (TEMPORARY_ID, 0), &activation(0));
    let Ok(LegacyProgress::Unauthenticated { farewell }) = activating().receive(&answer) else {
        panic!("the BMC wants messages without AuthCode")
    };
    assert_eq!(farewell[35], 0x3C, "Close Session");
}

#[test]
fn a_success_needs_the_password_and_a_refusal_does_not() {
    let mut handshake = activating();
    assert!(handshake.receive(&legacy(&activation(MD5))).is_err());
    let other = signed(&key("other"), (TEMPORARY_ID, 0), &activation(MD5));
    assert!(handshake.receive(&other).is_err());
    let refusal = legacy(&message::<ActivateSession>(9, 0x81, &[]));
    let Ok(LegacyProgress::Refused(refusal)) = handshake.receive(&refusal) else {
        panic!("all sessions are in use")
    };
    assert!(refusal.is_transient() && refusal.lacks_session(), "{refusal}");
    let unknown = legacy(&message::<GetChallenge>(9, 0x81, &[]));
    let Ok(LegacyProgress::Refused(refusal)) = start().receive(&unknown) else {
        panic!("the user is unknown")
    };
    assert!(refusal.refuses_user() && !refusal.is_transient(), "{refusal}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// A changed, shortened or random answer opens no session.
    #[test]
    fn other_bytes_open_nothing(
        at in any::<prop::sample::Index>(),
        flip in 1_u8..,
        keep in any::<prop::sample::Index>(),
        noise in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut handshake = activating();
        let request = handshake.transmit();
        let good = signed(&key("secret"), (TEMPORARY_ID, 0), &activation(MD5));
        prop_assert!(handshake.receive(&good[..keep.index(good.len())]).is_err());
        prop_assert!(handshake.receive(&noise).is_err());
        let _ = start().receive(&noise);
        let mut bad = good.clone();
        let at = at.index(bad.len());
        bad[at] ^= flip;
        // All but RMCP's reserved byte and number.
        prop_assert_eq!(handshake.receive(&bad).is_ok(), at == 1 || at == 2);
        prop_assert_eq!(handshake.transmit(), request);
    }
}
