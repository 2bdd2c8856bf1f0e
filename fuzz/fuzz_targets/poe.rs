//! A switch that sends any datagram of SNMP, or any values of a port.

#![no_main]

use async_snmp::message::Message;
use async_snmp::{DecodeConfig, Oid, Value, VarBind};
use bytes::Bytes;
use fuzz::Input;
use libfuzzer_sys::fuzz_target;
use poe::{PortId, PortState, Reading};

const PORT: PortId = PortId { group: 1, index: 3 };
/// `pethPsePortEntry` and `ifXEntry`.
const ENTRIES: [&[u32]; 2] = [&[1, 3, 6, 1, 2, 1, 105, 1, 1, 1], &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1]];
/// Columns of the two states in `pethPsePortEntry`.
const ADMIN: u32 = 3;
const DETECTION: u32 = 6;

/// Any object of the tables with any value.
fn object(input: &mut Input) -> VarBind {
    let entry = ENTRIES[usize::from(input.byte()) % ENTRIES.len()];
    let column = u32::from(input.byte() % 20);
    let port = [u32::from(input.byte() % 3), u32::from(input.byte() % 5)];
    let oid = Oid::new(entry.iter().copied().chain([column]).chain(port));
    let value = match input.byte() % 8 {
        0..3 => Value::Integer(i32::from(input.byte() as i8)),
        3 => Value::Counter32(u32::from(input.number())),
        4 => Value::OctetString(Bytes::copy_from_slice(input.chunk())),
        5 => Value::Null,
        6 => Value::NoSuchInstance,
        _ => Value::NoSuchObject,
    };
    VarBind::new(oid, value)
}

fn check(values: &[VarBind]) {
    let reading = Reading::of(PORT, values);
    let state = reading.state();
    let find = |column| {
        let oid = Oid::new(ENTRIES[0].iter().copied().chain([column, PORT.group, PORT.index]));
        values.iter().find(|it| it.oid == oid).and_then(|it| it.value.as_i32())
    };
    let is_off = state == PortState::Off;
    let is_on = matches!(state, PortState::Delivering { .. });
    assert!(!is_off || find(ADMIN) == Some(2) && find(DETECTION) != Some(3), "a guess of off");
    assert!(!is_on || find(ADMIN) == Some(1) && find(DETECTION) == Some(3), "a guess of on");
    assert!(reading.exists() || !is_off && !is_on, "the state of a port that does not exist");
    let text = state.to_string();
    assert!(!text.contains('\n'), "a state is one line: {text}");
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    match input.byte() {
        b'v' => {
            let mut values = Vec::new();
            while !input.0.is_empty() {
                values.push(object(&mut input));
            }
            check(&values);
        }
        b'p' => {
            let Ok(text) = std::str::from_utf8(input.0) else { return };
            if let Ok(port) = text.parse::<PortId>() {
                assert_eq!(port.to_string().parse::<PortId>().ok(), Some(port));
            }
        }
        _ => {
            let bytes = Bytes::copy_from_slice(input.0);
            let Ok(message) = Message::decode(bytes, DecodeConfig::default()) else { return };
            if let Some(pdu) = message.value.into_pdu() {
                check(pdu.varbinds());
            }
        }
    }
});
