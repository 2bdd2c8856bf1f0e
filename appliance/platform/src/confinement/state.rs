//! Rights and restrictions of a process, as the kernel reports them.

use std::fmt;
use std::fs;

use rustix::process::{DumpableBehavior, Resource};
use rustix::thread::CapabilitySet;

use super::LANDLOCK;

/// Rights and restrictions of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// Union of the capabilities of all threads.
    pub capabilities: CapabilitySet,
    /// True if no thread can gain rights by executing a program (`NoNewPrivs`).
    pub no_new_privileges: bool,
    /// Number of seccomp filters of the thread with the fewest; 0 if a thread is unfiltered.
    pub filters: u32,
    /// Landlock version in force, or 0 without Landlock.
    pub landlock: u32,
    /// True if the memory is never written to a core dump.
    pub no_dumps: bool,
}

impl State {
    /// Reads the state of all threads and returns the least restricted values.
    pub fn read() -> Self {
        let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let texts = tasks.filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
        let weakest = texts.map(|text| parse(&text)).reduce(weaker);
        let hidden = rustix::process::dumpable_behavior() == Ok(DumpableBehavior::NotDumpable);
        Self {
            landlock: LANDLOCK.get().copied().unwrap_or(0),
            no_dumps: hidden && rustix::process::getrlimit(Resource::Core).current == Some(0),
            ..weakest.unwrap_or_else(|| parse(""))
        }
    }
}

/// Parses the rights of one thread from `/proc/PID/status`. A missing line counts as unrestricted.
fn parse(status: &str) -> State {
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(str::trim)
    };
    let effective = value("CapEff").and_then(|text| u64::from_str_radix(text, 16).ok());
    let number = |name| value(name).and_then(|text| text.parse().ok()).unwrap_or(0_u32);
    // The value 2 is SECCOMP_MODE_FILTER. Kernels before 5.9 do not report the number of filters.
    let filters = if number("Seccomp") == 2 { number("Seccomp_filters").max(1) } else { 0 };
    State {
        capabilities: effective.map_or(CapabilitySet::all(), CapabilitySet::from_bits_truncate),
        no_new_privileges: number("NoNewPrivs") == 1,
        filters,
        landlock: 0,
        no_dumps: false,
    }
}

fn weaker(one: State, other: State) -> State {
    State {
        capabilities: one.capabilities.union(other.capabilities),
        no_new_privileges: one.no_new_privileges && other.no_new_privileges,
        filters: one.filters.min(other.filters),
        ..one
    }
}

/// Returns the names of capabilities as in capabilities(7), without `CAP_`: `NET_ADMIN, NET_RAW`.
pub(super) fn names(set: CapabilitySet) -> String {
    let names: Vec<&str> = set.iter_names().map(|(name, _)| name).collect();
    names.join(", ")
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.capabilities {
            none if none.is_empty() => f.write_str("no capabilities")?,
            all if all == CapabilitySet::all() => f.write_str("all capabilities")?,
            some => write!(f, "capabilities {}", names(some))?,
        }
        let either =
            |holds: bool, yes: &'static str, no: &'static str| if holds { yes } else { no };
        let (privileges, filtered) = (self.no_new_privileges, self.filters > 0);
        for words in [
            either(privileges, "no new privileges", "new privileges allowed"),
            either(filtered, "seccomp", "no seccomp"),
            either(self.landlock > 0, "Landlock", "no Landlock"),
            either(self.no_dumps, "no core dumps", "core dumps allowed"),
        ] {
            write!(f, "; {words}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rustix::thread::CapabilitySet;

    use super::{State, parse, weaker};

    const HELD: &str = "Name:\ttinboxd\nCapEff:\t0000000002003400\nNoNewPrivs:\t1\n\
                        Seccomp:\t2\nSeccomp_filters:\t2\n";

    #[test]
    fn rights_are_read_from_the_status_of_a_thread() {
        let kernel = parse(HELD);
        assert_eq!(kernel.capabilities, super::super::FIRMWARE);
        let held = State { landlock: 7, no_dumps: true, ..kernel };
        assert_eq!(
            held.to_string(),
            "capabilities NET_BIND_SERVICE, NET_ADMIN, NET_RAW, SYS_TIME; no new privileges; \
             seccomp; Landlock; no core dumps"
        );
        let old_kernel = HELD.replace("Seccomp_filters:\t2\n", "");
        assert_eq!(parse(&old_kernel).filters, 1);
    }

    #[test]
    fn a_thread_that_says_nothing_has_every_right() {
        let unknown = parse("");
        assert_eq!(
            unknown.to_string(),
            "all capabilities; new privileges allowed; no seccomp; no Landlock; core dumps allowed"
        );
        let weakest = weaker(parse(HELD), unknown);
        assert_eq!(weakest.capabilities, CapabilitySet::all());
        assert_eq!((weakest.no_new_privileges, weakest.filters), (false, 0));
    }
}
