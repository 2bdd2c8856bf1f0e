//! Metrics of the machine: memory, CPU load, disk space, temperature and flash wear. A metric is
//! `None` if the kernel does not report it.

use std::fs;
use std::path::Path;

use rustix::fs::statvfs;

use crate::sys;

/// Folder of the temperature sensors, with a `thermal_zone*` folder for each sensor.
const SENSORS: &str = "/sys/class/thermal";
/// Folder of the block devices.
const DISKS: &str = "/sys/block";
/// Plausible range in degrees Celsius. A broken or missing sensor reports a value out of range.
const SENSIBLE: std::ops::RangeInclusive<i16> = -40..=150;

/// Use of memory or of a volume, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Number of used bytes.
    pub used: u64,
    /// Total number of bytes.
    pub total: u64,
}

/// CPU time of all cores since the machine started, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    busy: u64,
    all: u64,
}

impl Work {
    /// Returns the busy share of all cores since `before` in percent, or `None` if no time has
    /// passed.
    pub fn percent_since(self, before: Work) -> Option<u8> {
        let all = self.all.checked_sub(before.all).filter(|all| *all > 0)?;
        let busy = self.busy.saturating_sub(before.busy).min(all);
        u8::try_from(u128::from(busy) * 100 / u128::from(all)).ok()
    }
}

/// Returns the used and the total memory. Memory that only caches files counts as free.
pub fn memory() -> Option<Share> {
    read_memory(&fs::read_to_string("/proc/meminfo").ok()?)
}

/// Returns the CPU time of all cores since the machine started.
pub fn work() -> Option<Work> {
    read_work(&fs::read_to_string("/proc/stat").ok()?)
}

/// Returns the usage of the volume that contains `folder`, or `None` on an error. Blocks reserved
/// for root count as used, as in df(1).
pub fn volume(folder: &Path) -> Option<Share> {
    let stat = statvfs(folder).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
    let total = bytes(stat.f_blocks);
    Some(Share { used: total.saturating_sub(bytes(stat.f_bavail)), total })
}

/// Returns the highest sensor temperature in degrees Celsius, or `None` without a sensor.
pub fn temperature() -> Option<i16> {
    warmest(Path::new(SENSORS))
}

/// Returns the used lifetime of the most worn eMMC in percent, rounded up to the next ten.
pub fn flash_life() -> Option<u8> {
    let disks = fs::read_dir(DISKS).ok()?.flatten();
    let readings = disks.filter_map(|disk| {
        let text = fs::read_to_string(disk.path().join("device/life_time")).ok()?;
        read_life(&text)
    });
    readings.max()
}

/// Returns true if a time service keeps the kernel's clock synchronized, as reported by
/// adjtimex(2).
pub fn clock_is_kept() -> Option<bool> {
    sys::clock_is_kept().ok()
}

/// Returns the bytes that an interface has sent since its creation, or `None` if it is missing.
pub fn sent(interface: &str) -> Option<u64> {
    let file = Path::new("/sys/class/net").join(interface).join("statistics/tx_bytes");
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

fn read_memory(table: &str) -> Option<Share> {
    let figure = |name: &str| {
        let line = table.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let kibibytes: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
        kibibytes.checked_mul(1024)
    };
    let total = figure("MemTotal")?;
    Some(Share { used: total.saturating_sub(figure("MemAvailable")?), total })
}

/// Parses the first eight CPU fields of `/proc/stat`: user, nice, system, idle, iowait, irq,
/// softirq and steal. Time of guests is already part of user.
fn read_work(table: &str) -> Option<Work> {
    let line = table.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks = line.split_ascii_whitespace().take(8).map(str::parse);
    let ticks: Vec<u64> = ticks.collect::<Result<_, _>>().ok()?;
    let all = ticks.iter().fold(0_u64, |all, it| all.saturating_add(*it));
    let idle = ticks.get(3)?.saturating_add(ticks.get(4).copied().unwrap_or(0));
    Some(Work { busy: all.saturating_sub(idle), all })
}

fn warmest(sensors: &Path) -> Option<i16> {
    let readings = fs::read_dir(sensors).ok()?.flatten().filter_map(|sensor| {
        let text = fs::read_to_string(sensor.path().join("temp")).ok()?;
        let thousandths: i32 = text.trim().parse().ok()?;
        i16::try_from(thousandths / 1000).ok().filter(|degrees| SENSIBLE.contains(degrees))
    });
    // A sensor without a measurement reports 0.
    readings.filter(|degrees| *degrees != 0).max()
}

/// Reads a text such as `0x01 0x02`: used tenths of the lifetime, one value for each of the two
/// memory types. 0x0b is beyond the lifetime (JEDEC 84-B51, `DEVICE_LIFE_TIME_EST_TYP_A`).
fn read_life(text: &str) -> Option<u8> {
    let tenths = text.split_ascii_whitespace().filter_map(|word| {
        let tenths = u8::from_str_radix(word.trim_start_matches("0x"), 16).ok()?;
        (1..=11).contains(&tenths).then_some(tenths)
    });
    tenths.max().map(|tenths| (tenths * 10).min(100))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Share, Work, memory, read_life, read_memory, read_work, volume, warmest, work};

    #[test]
    fn tables_of_the_kernel() {
        let table = "MemTotal:        2048 kB\nMemFree:  9 kB\nMemAvailable:    1024 kB\n";
        assert_eq!(read_memory(table), Some(Share { used: 1 << 20, total: 2 << 20 }));
        assert_eq!(read_memory("MemTotal: 2048 kB\n"), None);
        assert_eq!(read_memory("MemTotal: x kB\nMemAvailable: 1 kB\n"), None);
        let table = "cpu  100 10 40 800 50 0 0 0 30 0\ncpu0 1 1 1 1\n";
        assert_eq!(read_work(table), Some(Work { busy: 150, all: 1000 }));
        assert_eq!(read_work("cpu  1 2\n"), None);
        for (text, life) in [("0x01 0x02\n", 20), ("0x0b 0x01", 100)] {
            assert_eq!(read_life(text), Some(life));
        }
        assert_eq!(read_life("0x00 0x00"), None, "it is not said");
    }

    #[test]
    fn work_is_between_two_looks() {
        let at = |busy, all| Work { busy, all };
        assert_eq!(at(150, 1100).percent_since(at(100, 1000)), Some(50));
        assert_eq!(at(100, 1000).percent_since(at(100, 1000)), None);
        assert_eq!(at(100, 900).percent_since(at(100, 1000)), None);
        assert_eq!(at(300, 1100).percent_since(at(100, 1000)), Some(100));
    }

    #[test]
    fn the_warmest_sensor_counts_and_broken_ones_do_not() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(warmest(folder.path()), None);
        for (name, readings) in [("a", "42500\n"), ("b", "39000"), ("c", "-274000"), ("d", "x")] {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("temp"), readings).unwrap();
        }
        assert_eq!(warmest(folder.path()), Some(42));
    }

    #[test]
    fn this_machine_has_figures() {
        for share in [memory().unwrap(), volume("/".as_ref()).unwrap()] {
            assert!(share.used > 0 && share.used <= share.total, "{share:?}");
        }
        assert!(work().unwrap().percent_since(Work { busy: 0, all: 0 }).is_some());
    }
}
