//! Tests of every parser of this module against random bytes: no parser may panic.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tokio::time::Instant;

use crate::command::GetDeviceId;
use crate::command::boot::{GetBootFlags, SetBootOption};
use crate::command::chassis::{ChassisControl, ChassisStatus, PowerRequest};
use crate::command::payload::{ActivateSol, DeactivateSol, GetSolActivation};
use crate::command::sdr::{GetSdr, GetSdrInfo, SensorRecord};
use crate::command::sel::{GetSelEntry, GetSelInfo, ReserveSel};
use crate::command::sensor::{GetReadingFactors, GetSensorReading};
use crate::command::session::{
    ActivateSession, CloseSession, GetAuthCapabilities, GetChallenge, GetCipherSuites,
    SetPrivilege, suite_numbers,
};
use crate::crypto::SessionKeys;
use crate::error::refusal::OF_COMMANDS;
use crate::handshake::rakp::Answer;
use crate::message::{Command, request, response};
use crate::packet::{MAX_DATAGRAM, Packet, PayloadType, legacy, plain, sealed};
use crate::session::sol::Sol;
use crate::{CipherSuite, CompletionCode, Malformed, Refusal, SessionStatus};

#[test]
fn frames_on_the_wire() {
    assert_eq!(legacy(&[0xAA, 0xBB]), [6, 0, 0xFF, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0xAA, 0xBB]);
    assert_eq!(
        plain(PayloadType::Rakp1, &[0xAA]),
        [6, 0, 0xFF, 7, 6, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0xAA]
    );
    let keys = SessionKeys::derive(CipherSuite::Three, b"sik");
    let packet = sealed(&keys, (0x0403_0201, 5), [9; 16], PayloadType::Message, b"0123456");
    assert_eq!(packet[4..16], [6, 0xC0, 1, 2, 3, 4, 5, 0, 0, 0, 32, 0]);
    // 12 bytes of header and 32 of ciphertext want two of pad before the pad length and 07.
    assert_eq!(packet[48..52], [0xFF, 0xFF, 2, 7]);
    assert_eq!(packet.len(), 52 + 12);
}

#[test]
fn sealed_packets_open_with_their_keys_only() {
    for suite in CipherSuite::PREFERRED {
        let keys = SessionKeys::derive(suite, b"sik");
        let datagram = sealed(&keys, (1, 2), [9; 16], PayloadType::Message, b"payload");
        let Ok(Packet::Plus(packet)) = Packet::parse(&datagram) else { panic!("RMCP+") };
        assert_eq!(packet.open(&keys).unwrap(), b"payload");
        let others = SessionKeys::derive(suite, b"other");
        assert_eq!(packet.open(&others), Err(Malformed::Unverified("authentication code")));
        let datagram = plain(PayloadType::Message, b"payload");
        let Ok(Packet::Plus(bare)) = Packet::parse(&datagram) else { panic!("RMCP+") };
        assert!(matches!(bare.open(&keys), Err(Malformed::Unverified(_))));
    }
}

#[test]
fn every_status_has_words_and_one_class() {
    for code in 0..=u8::MAX {
        let status = SessionStatus(code);
        assert!(status.to_string().len() > 8);
        let classes = [
            status.is_transient(),
            status.refuses_suite(),
            status.refuses_user(),
            status.refuses_privilege(),
        ];
        assert!(classes.iter().filter(|is| **is).count() <= 1, "{status}");
    }
}

fn refusal<C: Command>(code: u8) -> Refusal {
    Refusal { net_fn: C::NET_FN, command: C::CODE, code: CompletionCode(code) }
}

/// One number, as the tables of five commands define it.
#[test]
fn a_completion_code_has_the_words_of_its_command() {
    let rows = [
        (refusal::<SetBootOption>(0x81), "another client is changing the boot options", true),
        (
            refusal::<SetPrivilege>(0x81),
            "requested level exceeds the privilege limit of the user or channel",
            false,
        ),
        (refusal::<ActivateSol>(0x81), "payload type disabled", false),
        (refusal::<GetSelEntry>(0x81), "the event log is being erased", true),
        (refusal::<ChassisStatus>(0x81), "code of the command without a standard meaning", false),
        (refusal::<SetPrivilege>(0xC0), "busy", true),
        (refusal::<ChassisStatus>(0xC0), "busy", true),
    ];
    for (refusal, words, is_transient) in rows {
        assert_eq!(refusal.to_string(), format!("{words} (0x{:02x})", refusal.code.0));
        assert_eq!(refusal.is_transient(), is_transient, "{refusal:?}");
    }
    for code in 0..=u8::MAX {
        let words = refusal::<ChassisStatus>(code).to_string();
        assert!(words.ends_with(&format!("(0x{code:02x})")) && words.len() > 8, "{words}");
    }
}

/// A row with a mistyped number would never be used.
#[test]
fn every_code_of_the_table_is_of_a_command_that_is_sent() {
    fn number<C: Command>() -> (u8, u8) {
        (C::NET_FN, C::CODE)
    }
    let sent = [
        number::<SetBootOption>(),
        number::<GetBootFlags>(),
        number::<GetChallenge>(),
        number::<ActivateSession>(),
        number::<SetPrivilege>(),
        number::<CloseSession>(),
        number::<ActivateSol>(),
        number::<DeactivateSol>(),
        number::<GetSelInfo>(),
        number::<ReserveSel>(),
        number::<GetSelEntry>(),
    ];
    let of_table: BTreeSet<_> = OF_COMMANDS.iter().map(|((net, cmd, _), _)| (*net, *cmd)).collect();
    assert_eq!(of_table, BTreeSet::from(sent));
}

fn replies<C: Command>(command: C, data: &[u8]) {
    let _ = command.reply(data);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..MAX_DATAGRAM + 8)) {
        if let Ok(Packet::Plus(packet)) = Packet::parse(&bytes) {
            for suite in CipherSuite::PREFERRED {
                let opened = packet.open(&SessionKeys::derive(suite, b"sik"));
                prop_assert!(opened.is_err());
            }
        }
        if let Ok(answer) = Answer::parse(&bytes) {
            for suite in CipherSuite::PREFERRED {
                let _ = (answer.open_response(suite), answer.rakp2(suite), answer.rakp4(suite));
            }
        }
        prop_assert!(suite_numbers(&bytes).len() <= bytes.len());
        let (_, expected) = request(&ChassisStatus, 1);
        let _ = response(&bytes, expected);
        let _ = SessionKeys::derive(CipherSuite::Three, b"sik").decrypt(&bytes);
        replies(ChassisStatus, &bytes);
        replies(ChassisControl(PowerRequest::On), &bytes);
        replies(GetBootFlags, &bytes);
        replies(GetDeviceId, &bytes);
        replies(SetPrivilege(3), &bytes);
        replies(CloseSession { session_id: 1 }, &bytes);
        replies(GetCipherSuites { slice: 0 }, &bytes);
        replies(GetAuthCapabilities { is_extended: true }, &bytes);
        replies(GetChallenge { username: [0; 16] }, &bytes);
        replies(ActivateSession { challenge: [0; 16], from_bmc: 1 }, &bytes);
        replies(ActivateSol, &bytes);
        replies(GetSolActivation, &bytes);
        replies(GetSelInfo, &bytes);
        replies(GetSelEntry::first(0), &bytes);
        replies(GetSdrInfo, &bytes);
        replies(GetSdr::header(0, None), &bytes);
        replies(GetSensorReading { number: 0 }, &bytes);
        replies(GetReadingFactors { number: 0, raw: 0 }, &bytes);
        for record_type in [1, 2] {
            let _ = SensorRecord::parse(record_type, &bytes);
        }
        let _ = Sol::new(0).receive(&bytes, Instant::now());
    }

    /// Random bytes after a valid header reach more code than random bytes alone.
    #[test]
    fn no_framed_bytes_panic(
        kind in any::<u8>(),
        declared in 0_u16..300,
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut datagram = vec![6, 0, 0xFF, 7, 6, kind, 1, 0, 0, 0, 1, 0, 0, 0];
        datagram.extend(declared.to_le_bytes());
        datagram.extend(&bytes);
        if let Ok(Packet::Plus(packet)) = Packet::parse(&datagram) {
            prop_assert!(usize::from(declared) <= bytes.len());
            for suite in CipherSuite::PREFERRED {
                prop_assert!(packet.open(&SessionKeys::derive(suite, b"sik")).is_err());
            }
        }
    }
}
