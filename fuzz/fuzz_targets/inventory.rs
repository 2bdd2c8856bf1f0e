//! Data that the agent reads from firmware, switches and disks: SMBIOS tables, LLDP frames, and the
//! identify and health data of NVMe and ATA disks.

#![no_main]

use fuzz::Input;
use imaging::erase::{Device, EraseOperation, Method, ata, decide, nvme};
use inventory::{neighbor, smart, smbios};
use libfuzzer_sys::fuzz_target;

/// Longest text of a device, in bytes.
const TEXT: usize = 128;

fn firmware(table: &[u8]) {
    for module in smbios::memory(table) {
        assert!(module.slot.len() <= TEXT && module.serial.len() <= TEXT, "{module:?}");
    }
}

fn switch(frame: &[u8]) {
    if let Some(found) = neighbor(frame) {
        let texts = [found.chassis, found.port, found.port_description, found.system];
        assert!(texts.iter().all(|text| text.len() <= TEXT), "{texts:?}");
    }
}

/// Returns a block of fixed size with the bytes of the input; missing bytes are zero.
fn block<const BYTES: usize>(bytes: &[u8]) -> [u8; BYTES] {
    let mut block = [0; BYTES];
    let count = bytes.len().min(BYTES);
    block[..count].copy_from_slice(&bytes[..count]);
    block
}

fn disk(input: &mut Input<'_>) {
    let shared = input.byte() % 2 == 1;
    let others = if shared { vec!["nvme0n2".to_owned()] } else { Vec::new() };
    let security = ata::security(&block(input.0));
    smart::read(&block(input.0));
    nvme::progress(&block(input.0));
    let abilities = nvme::Abilities::read(&block(input.0), others);
    for device in [Device::Ata(security), Device::Nvme(abilities)] {
        for (method, _) in Method::ALL {
            let Ok((way, _)) = decide(method, &device) else { continue };
            let sanitizes = matches!(way, EraseOperation::Sanitize(_));
            assert!(!(shared && sanitizes), "it would erase another");
            let secure = matches!(way, EraseOperation::SecureErase { .. });
            assert!(!(security.frozen && secure), "it is frozen");
        }
        assert!(decide(Method::Auto, &device).is_ok(), "zeros can always be written");
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    match input.byte() % 4 {
        0 => firmware(input.0),
        1 => switch(input.0),
        _ => disk(&mut input),
    }
});
