//! Health of an NVMe disk from its SMART log (NVM Express base specification, 5.16.1.3).

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use agent_rpc::Health;

use imaging::sys::{self, NvmeAdmin};

/// Length of the SMART log page in bytes.
pub const LOG: usize = 512;
/// Offset from degrees Celsius to kelvins, the unit of the log.
const FREEZING: i32 = 273;
/// Texts for the bits of Critical Warning, the log's first byte, from bit 0.
const WARNINGS: [&str; 5] = [
    "few spare blocks are left",
    "its temperature is out of range",
    "it is no longer reliable",
    "it can only be read",
    "its memory would be lost with the power",
];

/// Reads the health from a controller such as `/dev/nvme0`. Returns `None` if the command fails.
pub fn health(controller: &Path) -> Option<Health> {
    /// Get Log Page for the whole controller: log page 2, 128 words (the field has 127).
    const SMART: NvmeAdmin = NvmeAdmin {
        opcode: 0x02,
        namespace: u32::MAX,
        words_10_11: [0x02 | 127 << 16, 0],
        timeout: Duration::from_secs(2),
    };
    let mut log = [0; LOG];
    let status = sys::nvme_admin(&File::open(controller).ok()?, &SMART, &mut log).ok()?;
    (status == 0).then(|| read(&log))
}

fn read(log: &[u8; LOG]) -> Health {
    let set = WARNINGS.iter().enumerate().filter(|(bit, _)| log[0] >> bit & 1 == 1);
    let warnings: Vec<&str> = set.map(|(_, warning)| *warning).collect();
    Health {
        warning: warnings.join(", "),
        spare_percent: log[3].into(),
        used_percent: log[5].into(),
        celsius: i32::from(u16::from_le_bytes([log[1], log[2]])) - FREEZING,
        power_on_hours: counter(log, 128),
        media_errors: counter(log, 160),
    }
}

/// Reads a 128-bit counter at offset `at`; a larger value becomes `u64::MAX`.
fn counter(log: &[u8; LOG], at: usize) -> u64 {
    let bytes = log[at..].first_chunk::<16>().copied().unwrap_or_default();
    u64::try_from(u128::from_le_bytes(bytes)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{LOG, read};

    #[test]
    fn a_log_is_read() {
        let mut log = [0; LOG];
        log[..6].copy_from_slice(&[0b1001, 0x3b, 0x01, 97, 10, 12]);
        log[128..130].copy_from_slice(&[0x10, 0x27]);
        log[160..176].copy_from_slice(&[0xff; 16]);
        let health = read(&log);
        assert_eq!(health.warning, "few spare blocks are left, it can only be read");
        assert_eq!((health.celsius, health.spare_percent, health.used_percent), (42, 97, 12));
        assert_eq!((health.power_on_hours, health.media_errors), (10_000, u64::MAX));
        assert_eq!(read(&[0; LOG]).warning, "");
    }
}
