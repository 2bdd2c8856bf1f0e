//! Kernel information about a process (proc(5)).

use std::fs;
use std::time::Duration;

/// Clock ticks per second in `stat`: part of Linux's user interface, 100 on x86 and ARM (time(7),
/// "The software clock, HZ, and jiffies").
const USER_HZ: u64 = 100;

/// Start time in clock ticks since boot, field 22 of `stat`; `None` for a process that is gone.
pub fn started(pid: u32) -> Option<u64> {
    stat_field(pid, 22)
}

/// User plus system CPU time, fields 14 and 15 of `stat`; `None` for a process that is gone.
pub fn cpu(pid: u32) -> Option<Duration> {
    let ticks = stat_field(pid, 14)? + stat_field(pid, 15)?;
    Some(Duration::from_millis(ticks * 1000 / USER_HZ))
}

/// Resident memory in bytes. `field` is `VmRSS` for the current value, `RssAnon` for its part
/// without pages of files, or `VmHWM` for the peak. `None` for a process that is gone.
pub fn memory(pid: u32, field: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Field of `stat` with this number in proc(5), from 3. Field 2, the program's name, may contain
/// any character, so the search starts after its last parenthesis.
fn stat_field(pid: u32, field: usize) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(field.checked_sub(3)?)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_living_process_has_numbers_and_a_dead_one_has_none() {
        let own = std::process::id();
        assert!(started(own).is_some_and(|ticks| ticks > 0));
        // The two are read one after the other while other tests allocate: either may be larger.
        for field in ["VmRSS", "VmHWM"] {
            assert!(memory(own, field).is_some_and(|bytes| bytes > 100_000), "{field}");
        }
        assert!(cpu(own).is_some());
        let mut child = std::process::Command::new("true").spawn().expect("start true");
        child.wait().expect("wait for true");
        assert_eq!(started(child.id()), None);
    }
}
