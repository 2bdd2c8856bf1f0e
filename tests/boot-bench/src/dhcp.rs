//! DHCP compared with Kea, ISC dhcpd and dnsmasq, each with its leases on a disk, and with a
//! baseline: a stateless reflector. perfdhcp sends the same load to all of them, as a relay agent
//! would.
//!
//! Every run starts its server in an empty folder, so that every lease is new.

mod contestants;
mod machines;
mod perfdhcp;
mod served;
mod wire;

use anyhow::{Context as _, Result};

use contestants::Contestant::{self, Dnsmasq, Floor, Isc, Kea, Tinbox};
use figures::{Goal, Table, median};
use perfdhcp::{Load, SECONDS};
use wire::Wire;

pub use served::{first_ack, reflect, run as serve};

/// Folder of the runs' files: on a disk, because /tmp may be in memory.
const FOLDERS: &str = "/var/tmp";
/// Exchanges per second that every server in this test must handle.
const STEADY: u32 = 4000;
/// Exchanges per second for a server with many reservations.
const CALM: u32 = 1000;
/// Maximum rate of perfdhcp on one core. The capacity of a faster server follows from its CPU time
/// per exchange.
const FLOOD: u32 = 20_000;
/// Machines that are switched on at the same time.
const RACK: u32 = 1000;

/// Results of one run.
struct Run {
    per_second: f64,
    served: f64,
    cpu_us: f64,
    took: f64,
    first_ack: f64,
    rss_mib: f64,
}

/// Runs of one case, by server; the median of every figure is used.
struct Runs(Vec<(Contestant, Vec<Run>)>);

type Figure = fn(&Run) -> f64;

const PER_SECOND: Figure = |run| run.per_second;
const SERVED: Figure = |run| run.served * 100.0;
const CPU: Figure = |run| run.cpu_us;
const TOOK: Figure = |run| run.took;
const FIRST_ACK: Figure = |run| run.first_ack;
const RSS: Figure = |run| run.rss_mib;

impl Runs {
    fn of(&self, who: Contestant, figure: Figure) -> f64 {
        let runs = self.0.iter().find(|(one, _)| *one == who);
        median(runs.iter().flat_map(|(_, runs)| runs).map(figure).collect())
    }

    fn ours(&self, figure: Figure) -> f64 {
        self.of(Tinbox, figure)
    }

    fn beside(&self, who: Contestant, figure: Figure) -> (&'static str, f64) {
        (who.name(), self.of(who, figure))
    }

    /// Name and value of the best peer.
    fn best(&self, figure: Figure, more_is_better: bool) -> (&'static str, f64) {
        PEERS
            .map(|who| self.beside(who, figure))
            .into_iter()
            .filter(|(_, value)| !value.is_nan())
            .reduce(|a, b| if (a.1 > b.1) == more_is_better { a } else { b })
            .unwrap_or(("nobody", f64::NAN))
    }
}

/// Adds the figures for DHCP to the table.
///
/// # Errors
/// A server or perfdhcp is missing or fails.
pub fn measure(rounds: usize, table: &mut Table) -> Result<()> {
    let wire = Wire::new()?;
    let bench = Bench { wire, rounds };
    bench.fresh_leases(table).context("fresh leases")?;
    bench.rack(table).context("a rack that is switched on")?;
    bench.reservations(table).context("reservations")
}

struct Bench {
    wire: Wire,
    rounds: usize,
}

/// All servers, in the order of measurement.
const ALL: [Contestant; 5] = [Floor, Tinbox, Kea, Isc, Dnsmasq];
const PEERS: [Contestant; 3] = [Kea, Isc, Dnsmasq];

impl Bench {
    /// Measures all servers alternately, once per round.
    fn runs(&self, who: &[Contestant], reservations: u32, load: Asked) -> Result<Runs> {
        let mut runs: Vec<_> = who.iter().map(|who| (*who, Vec::new())).collect();
        for _ in 0..self.rounds {
            for (who, runs) in &mut runs {
                let run = self.run(*who, reservations, load);
                runs.push(run.with_context(|| format!("measuring {}", who.name()))?);
            }
        }
        Ok(Runs(runs))
    }

    fn run(&self, who: Contestant, reservations: u32, load: Asked) -> Result<Run> {
        let folder = tempfile::tempdir_in(FOLDERS)?;
        let started = who.start(&self.wire, folder.path(), reservations)?;
        let machines = machines::hardware(folder.path());
        let load = match load {
            Asked::Avalanche => Load::Avalanche { machines: RACK },
            Asked::Rate(per_second) => {
                let machines = (reservations > 0).then_some(machines.as_path());
                Load::Rate { per_second, machines }
            }
        };
        let before = started.server.cpu()?;
        let said = load.run(&self.wire)?;
        let cpu = started.server.cpu()? - before;
        Ok(Run {
            per_second: said.served / f64::from(SECONDS),
            served: 1.0 - said.lost,
            cpu_us: cpu.as_secs_f64() * 1e6 / said.served,
            took: said.took,
            first_ack: started.first_ack.as_secs_f64(),
            rss_mib: started.server.resident()? as f64 / f64::from(1 << 20),
        })
    }

    fn fresh_leases(&self, table: &mut Table) -> Result<()> {
        for rate in [STEADY, FLOOD] {
            let runs = self.runs(&ALL, 0, Asked::Rate(rate))?;
            let title = format!("DHCP fresh leases, {rate}/s");
            let mut add = |what: &str, figure: Figure, beside, goal| {
                table.add(&format!("{title}, {what}"), runs.ours(figure), beside, goal);
            };
            let most = runs.best(PER_SECOND, true);
            add("DORA/s", PER_SECOND, most, Goal::None);
            add("% served", SERVED, runs.best(SERVED, true), Goal::None);
            let (kea, floor) = if rate == STEADY {
                (Goal::AtMost(0.35), Goal::AtMost(2.0))
            } else {
                (Goal::None, Goal::None)
            };
            add("CPU us/DORA", CPU, runs.beside(Kea, CPU), kea);
            add("CPU us/DORA", CPU, runs.beside(Floor, CPU), floor);
        }
        Ok(())
    }

    fn rack(&self, table: &mut Table) -> Result<()> {
        let runs = self.runs(&ALL, 0, Asked::Avalanche)?;
        let title = format!("DHCP {RACK} machines at once");
        let ours = runs.ours(TOOK);
        let floor = runs.beside(Floor, TOOK);
        table.add(&format!("{title}, s"), ours, floor, Goal::AtMost(1.1));
        table.add(&format!("{title}, s"), ours, runs.best(TOOK, false), Goal::None);
        Ok(())
    }

    fn reservations(&self, table: &mut Table) -> Result<()> {
        let mut costs = Vec::new();
        // Limit of the time until the first ACK, in seconds.
        for (count, limit) in [(1_000, 0.1), (10_000, 0.1), (100_000, 0.5)] {
            // dnsmasq needs more than half a minute for 100,000: it compares each with all before
            // it.
            let who = if count > 10_000 { &ALL[..4] } else { &ALL };
            let runs = self.runs(who, count, Asked::Rate(CALM))?;
            let title = format!("DHCP {count} reservations");
            let mut add = |what: &str, figure: Figure, beside, goal| {
                table.add(&format!("{title}, {what}"), runs.ours(figure), beside, goal);
            };
            add("CPU us/DORA", CPU, runs.best(CPU, false), Goal::None);
            add("CPU us/DORA", CPU, runs.beside(Floor, CPU), Goal::None);
            add("% served", SERVED, runs.best(SERVED, true), Goal::None);
            let wanted = if count == 10_000 { Goal::AtMost(0.2) } else { Goal::None };
            add("s to first ACK", FIRST_ACK, runs.beside(Kea, FIRST_ACK), wanted);
            add("s to first ACK", FIRST_ACK, ("a limit", limit), Goal::AtMost(1.0));
            add("RSS MiB", RSS, runs.beside(Kea, RSS), Goal::AtMost(0.5));
            add("RSS MiB", RSS, runs.beside(Isc, RSS), Goal::AtMost(1.0));
            // The machine's speed changes from one size to the next, and the baseline's with it.
            costs.push(runs.ours(CPU) / runs.of(Floor, CPU));
            if count == 10_000 {
                self.flood_of_reserved(count, table)?;
            }
        }
        if let [few, .., many] = costs[..] {
            let what = "DHCP CPU over the floor's, 100,000 beside 1000";
            table.add(what, many, ("itself", few), Goal::AtMost(1.1));
        }
        Ok(())
    }

    fn flood_of_reserved(&self, count: u32, table: &mut Table) -> Result<()> {
        let runs = self.runs(&ALL, count, Asked::Rate(FLOOD))?;
        let title = format!("DHCP {count} reservations, {FLOOD}/s");
        let ours = runs.ours(PER_SECOND);
        let most = runs.best(PER_SECOND, true);
        table.add(&format!("{title}, DORA/s"), ours, most, Goal::None);
        let floor = runs.beside(Floor, PER_SECOND);
        table.add(&format!("{title}, DORA/s"), ours, floor, Goal::None);
        let least = runs.best(CPU, false);
        table.add(&format!("{title}, CPU us/DORA"), runs.ours(CPU), least, Goal::AtMost(0.5));
        Ok(())
    }
}

/// Load of perfdhcp. When there are reservations, a constant rate uses the reserved machines.
#[derive(Clone, Copy)]
enum Asked {
    Rate(u32),
    Avalanche,
}
