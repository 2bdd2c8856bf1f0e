use proptest::prelude::*;
use stdx::Secret;

use super::message::{self, InvalidMessage, Message};
use super::{Reaction, RedirectionError, Session};
use crate::Login;

const REALM: &str = "Digest:4BB90000000000000000000000000000";
const NONCE: &str = "zicaAAAAAAAAAAAAa8tMnB1xbyLK5UFG";
const STARTED: [u8; 13] = [0x11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

fn session(is_private: bool) -> Session {
    let login = Login { username: "admin".into(), password: Secret::from("P@ssw0rd1") };
    Session::new(login, "0a4f113b".into(), is_private)
}

/// Answer to a login, as the firmware sends.
fn login(status: u8, kind: u8, data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap().to_le_bytes();
    [&[0x14, status, 0, 0, kind], length.as_slice(), data].concat()
}

fn sol_started(status: u8) -> Vec<u8> {
    let mut answer = vec![0; 23];
    (answer[0], answer[1]) = (0x21, status);
    answer
}

fn output(characters: &[u8]) -> Vec<u8> {
    let length = u16::try_from(characters.len()).unwrap().to_le_bytes();
    [&[0x2A, 0, 0, 0, 0, 0, 0, 0], length.as_slice(), characters].concat()
}

fn challenge() -> Vec<u8> {
    login(1, 4, &message::texts(&[REALM, NONCE, "auth"]).unwrap())
}

/// Session that waits for the answer to its digest.
fn answered() -> Session {
    let mut session = session(false);
    for bytes in [&STARTED[..], &login(0, 0, &[1, 4]), &challenge()] {
        session.receive(bytes).unwrap();
    }
    session
}

/// The first message of the login was recorded from amtterm 1.8, and the response was computed
/// apart from this crate.
#[test]
fn the_login_has_the_recorded_form() {
    let mut session = session(false);
    assert_eq!(session.receive(&STARTED).unwrap().reply, message::QUERY_LOGINS);
    let first = session.receive(&login(0, 0, &[1, 4])).unwrap().reply;
    let recorded = b"\x13\0\0\0\x04\x20\0\0\0\x05admin\0\0\x13/RedirectionService\0\0\0\0";
    assert_eq!(first, recorded);
    let second = session.receive(&challenge()).unwrap().reply;
    let text = String::from_utf8_lossy(&second);
    assert!(text.contains("\x0800000002\x20371b2cfd20c9686e7a6ff94add3871bb\x04auth"), "{text}");
    assert!(!text.contains("P@ssw0rd1"));
    assert_eq!(session.receive(&login(0, 4, &[])).unwrap().reply, message::START_SOL);
    assert!(!session.is_open());
    session.receive(&sol_started(0)).unwrap();
    assert!(session.is_open());
}

#[test]
fn the_password_is_never_sent_in_the_clear_without_tls() {
    let mut open = session(false);
    open.receive(&STARTED).unwrap();
    let refused = open.receive(&login(0, 0, &[1])).unwrap_err();
    assert_eq!(refused, RedirectionError::NoDigest);
    assert!(!refused.is_transient());
    let mut private = session(true);
    private.receive(&STARTED).unwrap();
    let clear = private.receive(&login(0, 0, &[1])).unwrap().reply;
    // Recorded from amtterm 1.4.
    assert_eq!(clear, b"\x13\0\0\0\x01\x10\0\0\0\x05admin\x09P@ssw0rd1");
}

#[test]
fn each_refusal_has_its_words() {
    let mut busy = session(false);
    assert_eq!(busy.receive(&[0x11, 2, 0, 0]).unwrap_err(), RedirectionError::Busy);
    let mut absent = session(false);
    let refused = absent.receive(&[0x11, 3, 0, 0]).unwrap_err();
    assert_eq!(refused.to_string(), "the firmware refused a session with status 3");
    let wrong = answered().receive(&login(1, 4, &[])).unwrap_err();
    assert!(wrong == RedirectionError::WrongPassword && !wrong.is_transient());
    let mut late = answered();
    late.receive(&login(0, 4, &[])).unwrap();
    let refused = late.receive(&sol_started(1)).unwrap_err();
    assert_eq!(refused.to_string(), "the firmware refused serial-over-LAN with status 1");
    let unknown = session(false).receive(b"HTTP/1.1 400").unwrap_err();
    assert_eq!(unknown, RedirectionError::Invalid(InvalidMessage::Type(b'H')));
    let long = session(false).receive(&[0x14, 1, 0, 0, 4, 0xff, 0xff, 0, 0]).unwrap_err();
    assert_eq!(long, RedirectionError::Invalid(InvalidMessage::Length(0xffff)));
    let mut cut = session(false);
    cut.receive(&STARTED).unwrap();
    cut.receive(&login(0, 0, &[4])).unwrap();
    let invalid = cut.receive(&login(1, 4, b"\x27Digest:4BB9")).unwrap_err();
    assert_eq!(invalid, RedirectionError::Invalid(InvalidMessage::Challenge));
}

#[test]
fn an_open_console_answers_pings_and_marks_lost_output() {
    let mut open = answered();
    open.receive(&login(0, 4, &[])).unwrap();
    open.receive(&sol_started(0)).unwrap();
    let ping = open.receive(&[0x24, 0, 0, 0, 7, 0, 0, 0]).unwrap();
    assert_eq!(ping.reply, message::PONG);
    let power = [0x29, 0, 0, 0, 0, 0, 0, 0, 0, 4];
    assert_eq!(open.receive(&power).unwrap(), Reaction::default());
    let overflow = [0x29, 0, 0, 0, 0, 0, 0, 0, 0, 5];
    let marked = open.receive(&[&overflow[..], &output(b"login: ")].concat()).unwrap();
    let text = String::from_utf8(marked.characters).unwrap();
    assert!(text.contains("lost characters") && text.ends_with("login: "), "{text}");
    assert!(open.receive(&[0x23, 0, 0, 0, 0, 0, 0, 0]).unwrap().is_ended);
}

/// The first message was recorded from amtterm.
#[test]
fn typed_characters_have_the_recorded_form() {
    assert_eq!(message::typed(b"root\r"), b"\x28\0\0\0\0\0\0\0\x05\0root\r");
    assert_eq!(message::typed(&[b'x'; 300]).len(), 300 + 2 * 10);
    assert_eq!(message::typed(b""), b"");
}

proptest! {
    /// TCP may cut a stream of messages anywhere.
    #[test]
    fn pieces_of_messages_are_joined(size in 1_usize..40, text in "[a-z]{0,200}") {
        let stream = [
            STARTED.to_vec(), login(0, 0, &[4]), challenge(), login(0, 4, &[]), sol_started(0),
            vec![0x2B, 0, 0, 0, 0, 0, 0, 0], output(text.as_bytes()), output(b"!"),
        ]
        .concat();
        let mut session = session(false);
        let mut shown = Vec::new();
        for piece in stream.chunks(size) {
            shown.extend(session.receive(piece).unwrap().characters);
        }
        prop_assert!(session.is_open());
        prop_assert_eq!(String::from_utf8(shown).unwrap(), text + "!");
    }

    #[test]
    fn a_message_is_never_longer_than_its_bytes(bytes: Vec<u8>) {
        if let Ok(Some((_, length))) = Message::read(&bytes) {
            prop_assert!(length > 0 && length <= bytes.len());
        }
    }
}
