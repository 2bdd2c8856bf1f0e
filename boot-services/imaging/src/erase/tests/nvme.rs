//! Tests with a simulated NVMe controller.

use std::io;

use super::super::nvme::{
    Abilities, Controller, IDENTIFIED, LOG, Sanitize, State, format, progress, sanitize,
};
use crate::sys::NvmeAdmin;
use crate::{Meter, MeterReading};

/// Simulated controller. Each read of the sanitize log takes the last of `logs`; one log stays.
struct Fake {
    identified: Box<[u8; IDENTIFIED]>,
    logs: Vec<[u8; 4]>,
    asked: Vec<(u8, u32, u32)>,
    refuses: Option<(u8, u16)>,
    rests: usize,
}

impl Fake {
    fn new(logs: &[[u8; 4]]) -> Self {
        Self {
            identified: Box::new([0; IDENTIFIED]),
            logs: logs.iter().rev().copied().collect(),
            asked: Vec::new(),
            refuses: None,
            rests: 0,
        }
    }
}

impl Controller for Fake {
    fn admin(&mut self, asked: &NvmeAdmin, answer: &mut [u8]) -> io::Result<u16> {
        self.asked.push((asked.opcode, asked.namespace, asked.words_10_11[0]));
        if let Some((_, status)) = self.refuses.filter(|(opcode, _)| *opcode == asked.opcode) {
            return Ok(status);
        }
        match asked.opcode {
            0x06 => answer.copy_from_slice(&self.identified[..]),
            0x02 => {
                let log = if self.logs.len() > 1 { self.logs.pop() } else { None };
                answer[..4].copy_from_slice(&log.unwrap_or(self.logs[0]));
            }
            _ => {}
        }
        Ok(0)
    }

    fn rest(&mut self) {
        self.rests += 1;
    }
}

const NEVER: [u8; 4] = [0xff, 0xff, 0, 0];
const HALF: [u8; 4] = [0, 0x80, 2, 0];
const DONE: [u8; 4] = [0xff, 0xff, 1, 1];
const FAILED: [u8; 4] = [0xff, 0xff, 3, 0];

#[test]
fn abilities_are_read() {
    let mut identified = [0; IDENTIFIED];
    assert_eq!(Abilities::read(&identified, Vec::new()), Abilities::default());
    (identified[256], identified[524], identified[328]) = (0b0010, 0b0110, 0b0111);
    let abilities = Abilities::read(&identified, vec!["nvme0n2".to_owned()]);
    assert!(abilities.format && abilities.crypto_format && abilities.format_all);
    let kinds = [Sanitize::Block, Sanitize::Crypto, Sanitize::Overwrite];
    assert_eq!(abilities.sanitize, kinds);
    identified[328] = 0b0101;
    let abilities = Abilities::read(&identified, Vec::new());
    assert_eq!(abilities.sanitize, [Sanitize::Crypto, Sanitize::Overwrite]);
}

#[test]
fn a_namespace_keeps_its_format() {
    let mut fake = Fake::new(&[]);
    // 17 formats, of which the last is in use, with metadata at the end and protection of type 1.
    (fake.identified[25], fake.identified[26], fake.identified[29]) = (16, 0b011_0000, 0b1001);
    format(&mut fake, 3, false).unwrap();
    assert_eq!(fake.asked[0], (0x06, 3, 0));
    let word = 1 << 12 | 1 << 9 | 1 << 8 | 1 << 5 | 1 << 4;
    assert_eq!(fake.asked[1], (0x80, 3, word));
    fake.identified[25] = 1;
    format(&mut fake, 1, true).unwrap();
    assert_eq!(fake.asked[3].2 & (0xf00f | 7 << 9), 2 << 9, "no upper bits, and crypto");
    fake.refuses = Some((0x80, 0x4015));
    let error = format(&mut fake, 1, true).unwrap_err();
    assert!(error.ends_with("status 0x4015, denied; a password (TCG Opal) may lock the disk"));
}

#[test]
fn a_sanitize_operation_is_begun_and_waited_for() {
    let meter = Meter::default();
    meter.set_total(1 << 20);
    for (kind, word) in
        [(Sanitize::Block, 2), (Sanitize::Crypto, 4), (Sanitize::Overwrite, 0b1_0011)]
    {
        let mut fake = Fake::new(&[NEVER, HALF, HALF, DONE]);
        meter.say("wiping");
        sanitize(&mut fake, kind, &meter).unwrap();
        assert_eq!((fake.asked[1], fake.rests), ((0x84, 0, word), 2));
    }
    let MeterReading { done, doing, .. } = meter.read();
    assert_eq!((done, doing.as_str()), (1 << 19, "wiping: 50 % sanitized"));
}

#[test]
fn a_sanitize_operation_under_way_is_not_begun_again() {
    let mut fake = Fake::new(&[HALF, HALF, DONE]);
    sanitize(&mut fake, Sanitize::Block, &Meter::default()).unwrap();
    assert!(fake.asked.iter().all(|(opcode, ..)| *opcode == 0x02), "{:?}", fake.asked);
    // A completed operation is started again, because it did not erase data written since then.
    let mut fake = Fake::new(&[DONE, HALF, DONE]);
    sanitize(&mut fake, Sanitize::Block, &Meter::default()).unwrap();
    assert_eq!(fake.asked[1].0, 0x84);
}

#[test]
fn a_sanitize_operation_that_fails_is_told() {
    let mut fake = Fake::new(&[NEVER, HALF, FAILED]);
    let error = sanitize(&mut fake, Sanitize::Block, &Meter::default()).unwrap_err();
    assert!(error.contains("run nvme-sanitize again, or replace the disk"), "{error}");
    let mut fake = Fake::new(&[FAILED, HALF, DONE]);
    sanitize(&mut fake, Sanitize::Block, &Meter::default()).unwrap();
    let mut fake = Fake::new(&[NEVER]);
    let error = sanitize(&mut fake, Sanitize::Block, &Meter::default()).unwrap_err();
    assert!(error.ends_with("did not start it"), "{error}");
    fake.refuses = Some((0x84, 0x002));
    let error = sanitize(&mut fake, Sanitize::Block, &Meter::default()).unwrap_err();
    assert_eq!(error, "its controller rejected Sanitize: status 0x002, a field is invalid");
    let meter = Meter::default();
    meter.stop();
    let mut fake = Fake::new(&[HALF]);
    let error = sanitize(&mut fake, Sanitize::Block, &meter).unwrap_err();
    assert!(error.ends_with("the disk continues to sanitize itself"), "{error}");
}

#[test]
fn a_log_is_understood() {
    for (byte, state) in [
        (0, State::Never),
        (0x81, State::Completed),
        (2, State::UnderWay),
        (3, State::Failed),
        (4, State::Completed),
        (7, State::Never),
    ] {
        let mut log = [0; LOG];
        log[2] = byte;
        assert_eq!(progress(&log).state, state, "{byte}");
    }
}

#[test]
fn a_namespace_with_several_ways_has_a_live_controller() {
    use super::super::nvme::controller;
    let folder = tempfile::tempdir().unwrap();
    let subsystem = folder.path().join("nvme-subsys0");
    for (name, state) in [("nvme0", "dead\n"), ("nvme1", "live\n"), ("nvme0n1", "live\n")] {
        std::fs::create_dir_all(subsystem.join(name)).unwrap();
        std::fs::write(subsystem.join(name).join("state"), state).unwrap();
    }
    assert_eq!(controller(&subsystem).as_deref(), Some("nvme1"));
    std::fs::write(subsystem.join("nvme1/state"), "connecting\n").unwrap();
    assert_eq!(controller(&subsystem), None);
    assert_eq!(controller(&folder.path().join("nvme3")).as_deref(), Some("nvme3"));
}
