//! A BMC that sends any bytes: before a session, during the handshake, and, with the right keys, in
//! the session.

#![no_main]

use std::time::Duration;

use fuzz::Input;
use ipmi::command::GetDeviceId;
use ipmi::command::boot::GetBootFlags;
use ipmi::command::chassis::{ChassisControl, ChassisStatus};
use ipmi::command::payload::{ActivateSol, DeactivateSol, GetSolActivation};
use ipmi::command::sdr::{GetSdr, GetSdrInfo, ReserveSdr, SdrHeader, SensorRecord};
use ipmi::command::sel::{GetSelEntry, GetSelInfo, ReserveSel};
use ipmi::command::sensor::{GetReadingFactors, GetSensorReading};
use ipmi::command::session::{
    ActivateSession, CloseSession, GetAuthCapabilities, GetChallenge, GetCipherSuites,
    SetPrivilege, suite_numbers,
};
use ipmi::crypto::{LegacyKey, SessionKeys, hmac};
use ipmi::handshake::legacy::{LegacyHandshake, LegacyProgress, LegacySeed};
use ipmi::handshake::rakp::{Answer, Exchange, NAME_ONLY_LOOKUP, open_request};
use ipmi::handshake::{Handshake, Login, Progress, Seed};
use ipmi::message::{Command, request, response};
use ipmi::packet::{Packet, PayloadType, legacy, plain, sealed, signed};
use ipmi::session::Session;
use ipmi::session::sol::{INPUT_LIMIT, Sol, Transmission};
use ipmi::{CipherSuite, Credentials, PowerRequest};
use libfuzzer_sys::fuzz_target;
use tokio::time::Instant;
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
    let _ = ChassisControl(PowerRequest::On).reply(data);
    let _ = GetDeviceId.reply(data);
    let _ = SetPrivilege(OPERATOR).reply(data);
    let _ = CloseSession { session_id: 1 }.reply(data);
    let _ = GetCipherSuites { slice: 0 }.reply(data);
    let _ = GetAuthCapabilities { is_extended: true }.reply(data);
    let _ = GetChallenge { username: [0; 16] }.reply(data);
    let _ = ActivateSession { challenge: [0; 16], from_bmc: 1 }.reply(data);
    if let Ok(flags) = GetBootFlags.reply(data) {
        let _ = flags.in_force();
    }
    assert!(suite_numbers(data).len() <= data.len());
    records(data);
    let _ = ActivateSol.reply(data);
    let _ = GetSolActivation.reply(data);
    let _ = DeactivateSol.reply(data);
}

/// Parses the data of a reply as a record of the event log or of the sensor repository.
fn records(data: &[u8]) {
    let _ = (GetSelInfo.reply(data), ReserveSel.reply(data));
    if let Ok((next, record)) = GetSelEntry::first(0).reply(data) {
        assert_ne!(next, Some(record.id), "a record is its own successor");
        assert!(!record.content.to_string().contains('\n'), "an event is one line");
    }
    let _ = (GetSdrInfo.reply(data), ReserveSdr.reply(data));
    let _ = GetSdr::header(0, None).reply(data);
    let _ = SdrHeader::parse(data).map(SdrHeader::is_sensor);
    let (kind, body) = data.split_first().unwrap_or((&0, &[]));
    let conversion = SensorRecord::parse(*kind, body).ok().and_then(|record| {
        assert!(!record.name.contains(char::is_control), "a name is text");
        record.conversion
    });
    let _ = GetReadingFactors { number: 0, raw: 0 }.reply(data);
    if let Ok(reading) = (GetSensorReading { number: 0 }).reply(data) {
        let _ = reading.threshold_state();
        let value = conversion.zip(reading.raw).and_then(|(it, raw)| it.value(raw));
        assert!(value.is_none_or(f64::is_finite));
    }
}

/// Serial-over-LAN with a BMC that sends any payloads, with any acknowledgments.
fn sol(input: &mut Input<'_>) {
    let mut now = Instant::now();
    let mut sol = Sol::new(u16::from(input.byte()));
    while !input.is_empty() {
        sol.type_in(input.chunk());
        now += Duration::from_millis(input.byte().into());
        while let Transmission::Send(payload) = sol.transmit(now) {
            assert!(payload.len() <= 204, "a payload is too long");
        }
        let payload = input.chunk();
        if let Ok(received) = sol.receive(payload, now) {
            assert!(received.characters.len() <= payload.len());
        }
        assert!(sol.room() <= INPUT_LIMIT);
    }
}

fn datagram(bytes: &[u8], suite: CipherSuite, keys: &SessionKeys) {
    let payload = match Packet::parse(bytes) {
        Ok(Packet::Legacy(packet)) => {
            let key = LegacyKey::new(b"secret").expect("a short password");
            assert!(packet.verified(&key).is_err(), "a packet was signed without the key");
            packet.open(0).unwrap_or_default()
        }
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

/// Session of IPMI 1.5 with a BMC that has the password and sends any messages, in the setup and in
/// the session.
fn version_1_5(input: &mut Input<'_>) {
    const TEMPORARY_ID: u32 = 7;
    let key = LegacyKey::new(b"secret").expect("a short password");
    let credentials = Credentials { username: "admin".to_owned(), password: "secret".into() };
    let login = Login::new(&credentials).expect("a short name and password");
    let seed = LegacySeed { sequence: TAG, from_bmc: 1 };
    let mut handshake = LegacyHandshake::new(&login, seed).expect("a short password");
    let mut opened = None;
    while !input.is_empty() && opened.is_none() {
        let kind = input.byte();
        let message = input.chunk();
        let datagram = match kind % 4 {
            0 => message.to_vec(),
            1 => legacy(&message[..message.len().min(255)]),
            2 => answered::<GetChallenge>(message, |bytes| legacy(bytes)),
            _ => {
                answered::<ActivateSession>(message, |bytes| signed(&key, (TEMPORARY_ID, 0), bytes))
            }
        };
        let _ = handshake.transmit();
        if let Ok(LegacyProgress::Open(session)) = handshake.receive(&datagram) {
            assert!(handshake.is_activating(), "a session without a challenge");
            opened = Some(session);
        }
    }
    let Some(mut session) = opened else { return };
    let outstanding = session.begin(&ChassisStatus);
    while !input.is_empty() {
        let (id, sequence) = (u32::from(input.number()), u32::from(input.number()));
        let message = input.chunk();
        let datagram = signed(&key, (id, sequence), &message[..message.len().min(255)]);
        let first = session.receive(&outstanding, &datagram);
        let again = session.receive(&outstanding, &datagram);
        assert!(again.is_err(), "one packet was taken twice");
        if let Ok((_, data)) = first {
            replies(&data);
        }
    }
}

/// Frames bytes as the response to a command, with its completion code, and wraps them.
fn answered<C: Command>(data: &[u8], wrap: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let sum = |bytes: &[u8]| bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_sub(*byte));
    let head = [0x81, (C::NET_FN | 1) << 2];
    let body = [[0x20, TAG << 2, C::CODE].as_slice(), &data[..data.len().min(200)]].concat();
    wrap(&[head.as_slice(), &[sum(&head)], &body, &[sum(&body)]].concat())
}

/// Sends any messages in a session, encrypted with the right keys.
fn inside(session: &mut Session, keys: &SessionKeys, input: &mut Input<'_>) {
    let outstanding = session.begin(&ChassisStatus);
    while !input.is_empty() {
        let sequence = u32::from(input.number());
        let message = input.chunk();
        let datagram = sealed(keys, (CONSOLE_ID, sequence), [3; 16], PayloadType::Message, message);
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
    // Number of correct answers before the bytes of the input; 4 is a session with a console, and 5
    // is IPMI 1.5.
    let steps = usize::from(input.byte() % 6);
    match steps {
        4 => return sol(&mut input),
        5 => return version_1_5(&mut input),
        _ => {}
    }
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
