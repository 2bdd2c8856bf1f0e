//! A BMC that sends any bytes: before a session, during the handshake, and, with the right keys, in
//! the session.

#![no_main]

use bmc::ipmi::command::{
    ChassisControl, ChassisStatus, CloseSession, GetBootFlags, GetCipherSuites, GetDeviceId,
    SetPrivilege, suite_numbers,
};
use bmc::ipmi::crypto::{SessionKeys, hmac};
use bmc::ipmi::handshake::{Handshake, Login, Progress, Seed};
use bmc::ipmi::message::{Command, request, response};
use bmc::ipmi::packet::{Packet, PayloadType, plain, sealed};
use bmc::ipmi::rakp::{Answer, Exchange, NAME_ONLY_LOOKUP, open_request};
use bmc::ipmi::session::Session;
use bmc::{CipherSuite, Credentials, PowerAction};
use fuzz::Input;
use libfuzzer_sys::fuzz_target;
use zeroize::Zeroizing;

const TAG: u8 = 7;
const CONSOLE_ID: u32 = 0xA0A1_A2A3;
const CONSOLE_RANDOM: [u8; 16] = [7; 16];
const MANAGED_ID: u32 = 0x0200_4000;
const MANAGED_RANDOM: [u8; 16] = [0x5C; 16];
const GUID: [u8; 16] = [0xA1; 16];
const OPERATOR: u8 = 3;

fn handshake(suite: CipherSuite) -> Handshake {
    let credentials = Credentials { username: "admin".to_owned(), password: "secret".into() };
    let login = Login::new(&credentials).expect("a short name and password");
    let seed = Seed { tag: TAG, console_id: CONSOLE_ID, console_random: CONSOLE_RANDOM };
    Handshake::new(suite, login, seed)
}

fn exchange(suite: CipherSuite) -> Exchange {
    Exchange {
        suite,
        console_id: CONSOLE_ID,
        managed_id: MANAGED_ID,
        console_random: CONSOLE_RANDOM,
        managed_random: MANAGED_RANDOM,
        managed_guid: GUID,
        role: OPERATOR | NAME_ONLY_LOOKUP,
        username: b"admin".to_vec(),
        key: Zeroizing::new(b"secret".to_vec()),
    }
}

/// Answers of a correct BMC that has the password, and the keys of the session.
fn honest(suite: CipherSuite) -> ([Vec<u8>; 3], SessionKeys) {
    let exchange = exchange(suite);
    let head = |step: u8| [[TAG + step, 0, 0, 0].as_slice(), &CONSOLE_ID.to_le_bytes()].concat();
    let opened = [head(0), open_request(0, 0, MANAGED_ID, suite)[4..].to_vec()].concat();
    let code = exchange.managed_code();
    let proved = [head(1).as_slice(), &MANAGED_RANDOM, &GUID, &code].concat();
    let key = exchange.session_integrity_key();
    let parts: [&[u8]; 3] = [&CONSOLE_RANDOM, &MANAGED_ID.to_le_bytes(), &GUID];
    let check = hmac(suite, &key, &parts);
    let confirmed = [head(2).as_slice(), &check[..suite.check_len()]].concat();
    let answers = [
        plain(PayloadType::OpenResponse, &opened),
        plain(PayloadType::Rakp2, &proved),
        plain(PayloadType::Rakp4, &confirmed),
    ];
    (answers, SessionKeys::derive(suite, &key))
}

/// Parses the data of a reply as the reply to each command.
fn replies(data: &[u8]) {
    let _ = ChassisStatus.reply(data);
    let _ = ChassisControl(PowerAction::On).reply(data);
    let _ = GetDeviceId.reply(data);
    let _ = SetPrivilege(OPERATOR).reply(data);
    let _ = CloseSession { session_id: 1 }.reply(data);
    let _ = GetCipherSuites { slice: 0 }.reply(data);
    if let Ok(flags) = GetBootFlags.reply(data) {
        let _ = flags.in_force();
    }
    assert!(suite_numbers(data).len() <= data.len());
}

fn datagram(bytes: &[u8], suite: CipherSuite, keys: &SessionKeys) {
    let payload = match Packet::parse(bytes) {
        Ok(Packet::Legacy { payload }) => payload,
        Ok(Packet::Plus(packet)) => {
            assert!(packet.open(keys).is_err(), "a packet was signed without the key");
            packet.payload
        }
        Err(_) => return,
    };
    if let Ok(answer) = Answer::parse(payload) {
        let _ = (answer.open_response(suite), answer.rakp2(suite), answer.rakp4(suite));
    }
    let _ = response(payload, request(&ChassisStatus, 1).1);
    let _ = keys.decrypt(payload);
}

/// Sends any messages in a session, encrypted with the right keys.
fn inside(session: &mut Session, keys: &SessionKeys, input: &mut Input<'_>) {
    let outstanding = session.begin(&ChassisStatus);
    while !input.is_empty() {
        let sequence = u32::from(input.number());
        let message = input.chunk();
        let datagram = sealed(keys, CONSOLE_ID, sequence, [3; 16], message);
        let first = session.receive(&outstanding, &datagram);
        let again = session.receive(&outstanding, &datagram);
        assert!(again.is_err(), "one packet was taken twice");
        if let Ok((_, data)) = first {
            replies(&data);
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let suite = if input.byte() % 2 == 0 { CipherSuite::Three } else { CipherSuite::Seventeen };
    let (answers, keys) = honest(suite);
    let mut handshake = handshake(suite);
    // Number of correct answers before the bytes of the input.
    let steps = usize::from(input.byte() % 4);
    for answer in &answers[..steps] {
        match handshake.receive(answer) {
            Ok(Progress::Next) => {}
            Ok(Progress::Open(mut session)) => return inside(&mut session, &keys, &mut input),
            _ => panic!("an honest answer was refused"),
        }
    }
    while !input.is_empty() {
        let bytes = input.chunk();
        replies(bytes);
        datagram(bytes, suite, &keys);
        let _ = handshake.transmit();
        if let Ok(Progress::Open(_) | Progress::Refused(_)) = handshake.receive(bytes) {
            break;
        }
    }
});
