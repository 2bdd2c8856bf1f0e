//! Health of an ATA disk from SMART (ATA8-ACS, 7.53). Each manufacturer defines its own attributes.
//! The few attributes here have the same meaning for all manufacturers.

use std::path::Path;

use agent_rpc::Health;
use imaging::ata::{Ata, BLOCK, Data, Drive, SOON, Task, identify, word};

/// Opcode of SMART, its subcommands (feature register), and the signature that the command requires
/// in the LBA registers.
const SMART: u8 = 0xb0;
const READ_DATA: u8 = 0xd0;
const RETURN_STATUS: u8 = 0xda;
const SIGNATURE: [u8; 3] = [0, 0x4f, 0xc2];
/// Signature in the LBA registers if an attribute exceeds its threshold: the disk expects a
/// failure.
const FAILING: [u8; 2] = [0xf4, 0x2c];
/// Attribute table of SMART READ DATA: offset, number of entries, bytes per entry.
const FIRST: usize = 2;
const COUNT: usize = 30;
const LENGTH: usize = 12;
/// Ids of the attributes for the health report.
const POWER_ON_HOURS: u8 = 9;
const UNCORRECTABLE_REPORTED: u8 = 187;
const AIRFLOW_CELSIUS: u8 = 190;
const CELSIUS: u8 = 194;
const UNCORRECTABLE_OFFLINE: u8 = 198;

/// Reads the health of a disk such as `/dev/sda`. Returns `None` if the disk does not respond, or
/// if SMART is not supported and enabled.
pub fn health(disk: &Path) -> Option<Health> {
    ask(&mut Ata::open(disk).ok()?)
}

fn ask(drive: &mut impl Drive) -> Option<Health> {
    let identified = identify(drive).ok()?;
    // SMART is supported, and enabled.
    if word(&identified, 82) & word(&identified, 85) & 1 == 0 {
        return None;
    }
    let task = |features| Task { command: SMART, features, lba: SIGNATURE, timeout: SOON };
    let mut data = [0; BLOCK];
    drive.perform(&task(READ_DATA), Data::In(&mut data)).ok()?;
    let mut health = read(&data);
    let status = drive.perform(&task(RETURN_STATUS), Data::None);
    if status.is_ok_and(|lba| lba[1..] == FAILING) {
        health.warning = "it predicts its failure soon".to_owned();
    }
    Some(health)
}

/// Parses the data of SMART READ DATA. `used_percent` and `spare_percent` stay 0, because the data
/// has no such values.
pub fn read(data: &[u8; BLOCK]) -> Health {
    let table = &data[FIRST..FIRST + COUNT * LENGTH];
    let raw = |number: u8| {
        let entry = table.chunks_exact(LENGTH).find(|entry| entry[0] == number)?;
        entry[5..].first_chunk::<4>().copied()
    };
    // Manufacturers use the upper bytes for other values. Only the lowest byte, or the lowest four,
    // count.
    let number = |attribute| raw(attribute).map(|bytes| u64::from(u32::from_le_bytes(bytes)));
    let celsius = [CELSIUS, AIRFLOW_CELSIUS].into_iter().find_map(raw);
    let errors = [UNCORRECTABLE_REPORTED, UNCORRECTABLE_OFFLINE].into_iter().find_map(number);
    Health {
        celsius: celsius.map_or(0, |bytes| i32::from(bytes[0].cast_signed())),
        power_on_hours: number(POWER_ON_HOURS).unwrap_or(0),
        media_errors: errors.unwrap_or(0),
        ..Health::default()
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use imaging::ata::{BLOCK, Data, Drive, Task};

    use super::{ask, read};

    fn data(attributes: &[(u8, [u8; 6])]) -> [u8; BLOCK] {
        let mut data = [0; BLOCK];
        for (index, (number, raw)) in attributes.iter().enumerate() {
            let at = 2 + index * 12;
            data[at] = *number;
            data[at + 5..at + 11].copy_from_slice(raw);
        }
        data
    }

    #[test]
    fn attributes_are_read() {
        // Data of a WD Blue: 41 °C (17 to 52), 30 214 h with another value above, 3 sectors.
        let disk = data(&[
            (5, [0; 6]),
            (9, [0x06, 0x76, 0, 0, 0x12, 0]),
            (194, [41, 0, 17, 0, 52, 0]),
            (198, [3, 0, 0, 0, 0, 0]),
        ]);
        let health = read(&disk);
        assert_eq!((health.celsius, health.power_on_hours, health.media_errors), (41, 30_214, 3));
        let ssd = data(&[(190, [0xfb, 0, 0, 0, 0, 0]), (187, [1, 0, 0, 0, 0, 0]), (198, [9; 6])]);
        assert_eq!((read(&ssd).celsius, read(&ssd).media_errors), (-5, 1));
        assert_eq!(read(&[0; BLOCK]), agent_rpc::Health::default());
    }

    struct Fake(u16, [u8; 3]);

    impl Drive for Fake {
        fn perform(&mut self, task: &Task, with: Data<'_>) -> io::Result<[u8; 3]> {
            match (task.command, task.features, with) {
                (0xec, _, Data::In(block)) => {
                    for at in [82 * 2, 85 * 2] {
                        block[at..at + 2].copy_from_slice(&self.0.to_le_bytes());
                    }
                }
                (0xb0, 0xd0, Data::In(block)) => *block = data(&[(9, [7, 0, 0, 0, 0, 0])]),
                (0xb0, 0xda, Data::None) => return Ok(self.1),
                other => panic!("{other:?}"),
            }
            Ok(task.lba)
        }
    }

    #[test]
    fn a_disk_that_will_fail_says_so() {
        let well = ask(&mut Fake(1, [0, 0x4f, 0xc2])).unwrap();
        assert_eq!((well.warning.as_str(), well.power_on_hours), ("", 7));
        let failing = ask(&mut Fake(1, [0, 0xf4, 0x2c])).unwrap();
        assert_eq!(failing.warning, "it predicts its failure soon");
        assert_eq!(ask(&mut Fake(0, [0; 3])), None);
    }
}
