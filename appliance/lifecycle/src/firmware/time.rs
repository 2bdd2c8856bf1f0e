//! Clock of the box: set by NTP servers, stored across restarts, and served to its networks.

mod refusals;
mod step;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use futures_util::future::join_all;
use ntp::{ClockState, Refusal, Sample, ServerReport, Timestamp};
use platform::clock;
use platform::init::STATE;
use stdx::Backoff;
use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use refusals::Refusals;
use step::{Steps, Verdict};

/// Default servers if neither the owner nor a DHCP server sets a server.
const DEFAULT: [&str; 2] = ["pool.ntp.org", "time.cloudflare.com"];
/// Maximum number of NTP servers.
const SERVERS_MAX: usize = 8;
/// Maximum number of addresses of one server name.
const ADDRESSES_MAX: usize = 3;
/// Number of samples of each server, and their interval (RFC 5905 section 13.1: a burst).
const SAMPLES: usize = 4;
const SAMPLE_EVERY: Duration = Duration::from_secs(2);
/// First and longest interval between rounds while the clock is synchronized.
const SOON: Duration = Duration::from_secs(64);
const LATER: Duration = Duration::from_secs(1024);
/// First and longest wait after a round without a trusted server.
const AGAIN: (Duration, Duration) = (Duration::from_secs(15), Duration::from_mins(4));
/// Error above which the clock is stepped. A smaller error is slewed (RFC 5905's STEPT).
const STEP: Duration = Duration::from_millis(128);
/// Time without a trusted server after which the clock is in holdover.
const LOST: Duration = Duration::from_hours(1);
/// Interval of storing the time on disk (TM-2).
const REMEMBER: Duration = Duration::from_mins(15);

/// NTP servers from DHCP, by interface.
#[derive(Debug, Clone, Default)]
pub struct OfferedServers(Arc<Mutex<BTreeMap<String, Vec<Ipv4Addr>>>>);

impl OfferedServers {
    /// Replaces the offered servers of an interface.
    pub fn set(&self, interface: &str, servers: &[Ipv4Addr]) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(interface.to_owned(), servers.to_vec());
    }

    fn all(&self) -> Vec<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.values().flatten().map(Ipv4Addr::to_string).collect()
    }
}

/// State of the clock.
#[derive(Debug, Clone, Default)]
pub struct TimeSync {
    /// Trust in the clock.
    pub state: ClockState,
    /// Address of the server that set the clock; empty if no server did.
    pub source: String,
}

/// Synchronizes the clock without end. `written` are the servers from the configuration; `None`
/// allows the servers from DHCP and the defaults.
pub async fn keep(
    written: Option<Vec<String>>,
    offered: OfferedServers,
    known: watch::Sender<TimeSync>,
) -> std::convert::Infallible {
    let remember = async {
        loop {
            sleep(REMEMBER).await;
            clock::keep(Path::new(STATE));
        }
    };
    tokio::join!(remember, follow(written, offered, known)).0
}

async fn follow(
    written: Option<Vec<String>>,
    offered: OfferedServers,
    known: watch::Sender<TimeSync>,
) -> std::convert::Infallible {
    let (mut wait, mut again) = (Backoff::new(SOON, LATER), Backoff::new(AGAIN.0, AGAIN.1));
    let mut last: Option<(Instant, ServerReport)> = None;
    let (mut refusals, mut steps) = (Refusals::default(), Steps::new(clock::built()));
    let mut named = Vec::new();
    loop {
        let servers = whom(written.as_deref(), offered.all());
        if servers != named {
            refusals.clear();
            again.reset();
            named.clone_from(&servers);
        }
        let opinion = opinion(&servers, &mut refusals).await;
        let opinion = opinion.filter(|opinion| is_followed(opinion, &mut steps));
        if let Some(RoundResult { sample, source, .. }) = opinion {
            if sample.offset.abs() >= STEP {
                wait = Backoff::new(SOON, LATER);
            }
            let synced = apply(&sample, &source);
            last = Some((Instant::now(), synced));
            again.reset();
            known.send_replace(TimeSync { state: ClockState::Synced(synced), source });
            sleep(wait.next_wait()).await;
            continue;
        }
        let pause = again.next_wait();
        if pause == AGAIN.0 {
            tracing::warn!(?servers, "no time server is available");
        }
        if let Some((_, synced)) = last.filter(|(when, _)| when.elapsed() >= LOST) {
            known.send_modify(|known| known.state = ClockState::Holdover(Some(synced)));
        }
        sleep(pause).await;
    }
}

/// Result of a round of queries to all servers.
struct RoundResult {
    sample: Sample,
    /// Address of the server that returned the sample.
    source: String,
    /// Number of servers that agree with the sample.
    agreeing: usize,
}

/// Returns true if the clock follows `opinion`, and logs a rejection.
fn is_followed(opinion: &RoundResult, steps: &mut Steps) -> bool {
    let RoundResult { sample, source, agreeing } = opinion;
    match steps.judge(sample.offset, *agreeing, SystemTime::now()) {
        Verdict::Follow => true,
        Verdict::Confirm => {
            tracing::warn!(offset = %sample.offset, source, "a large step waits for confirmation");
            false
        }
        Verdict::Impossible => {
            tracing::error!(offset = %sample.offset, source, "refused an impossible date");
            false
        }
    }
}

/// Returns the servers to query: the owner's, else the servers from DHCP, else the defaults (TM-3).
fn whom(written: Option<&[String]>, offered: Vec<String>) -> Vec<String> {
    let mut servers = match written {
        Some(written) if !written.is_empty() => written.to_vec(),
        _ if !offered.is_empty() => offered,
        Some(_) => Vec::new(),
        None => DEFAULT.map(str::to_owned).to_vec(),
    };
    servers.truncate(SERVERS_MAX);
    servers
}

/// Queries the servers, and returns the best sample. Returns `None` if no server can be trusted.
async fn opinion(servers: &[String], refusals: &mut Refusals) -> Option<RoundResult> {
    let addresses = join_all(servers.iter().map(|server| lookup(server))).await;
    let now = Instant::now();
    let addresses = addresses.into_iter().flatten().filter(|it| refusals.permit(*it, now));
    let addresses: Vec<SocketAddr> = addresses.collect();
    let asked = join_all(addresses.iter().map(|address| burst(*address))).await;
    for (server, (_, kiss)) in addresses.iter().zip(&asked) {
        if let Some(word) = kiss {
            tracing::info!(%server, word, "the server refuses requests");
            refusals.add(*server, word, Instant::now());
        }
    }
    let samples: Vec<Vec<Sample>> = asked.into_iter().map(|(samples, _)| samples).collect();
    let sample = ntp::choose(&samples)?;
    let whose = samples.iter().position(|samples| samples.contains(&sample))?;
    let best = |samples: &Vec<Sample>| samples.iter().min_by_key(|it| it.delay).map(|it| it.offset);
    let agreeing = Steps::agreeing(sample.offset, samples.iter().filter_map(best));
    Some(RoundResult { sample, source: addresses.get(whose)?.ip().to_string(), agreeing })
}

async fn lookup(server: &str) -> Vec<SocketAddr> {
    let mut found = resolver::system().lookup(server, ntp::PORT).await.unwrap_or_default();
    found.truncate(ADDRESSES_MAX);
    found
}

/// Returns samples of one server, and the server's kiss code if the server refuses queries.
async fn burst(server: SocketAddr) -> (Vec<Sample>, Option<String>) {
    let mut samples = Vec::new();
    for number in 0..SAMPLES {
        if number > 0 {
            sleep(SAMPLE_EVERY).await;
        }
        match ntp::query(server).await {
            Ok(sample) => samples.push(sample),
            Err(Refusal::Kiss(word)) => return (samples, Some(word)),
            Err(error) => {
                tracing::debug!(%server, reason = %stdx::chain(&error), "no time");
                // The server does not answer.
                break;
            }
        }
    }
    (samples, None)
}

/// Sets or slews the clock. Returns the report of the server with the new time.
fn apply(sample: &Sample, source: &str) -> ServerReport {
    let Sample { offset, .. } = *sample;
    let done = if offset.abs() >= STEP {
        tracing::info!(%offset, source, "the clock is set");
        clock::set(offset.after(SystemTime::now()))
    } else {
        clock::slew(offset.0 / 1000)
    };
    if let Err(error) = done {
        tracing::warn!(reason = %stdx::chain(&error), %offset, "cannot set the clock");
    }
    ServerReport { at: Timestamp::now(), ..sample.report }
}

/// Opens the NTP port for the machines of a served network.
///
/// # Errors
/// The port is in use, or the box does not have the address.
pub async fn listen(address: Ipv4Addr) -> anyhow::Result<UdpSocket> {
    let at = SocketAddr::from((address, ntp::PORT));
    let bound = UdpSocket::bind(at).await;
    bound.with_context(|| format!("cannot listen on {at} for NTP requests"))
}

/// Serves NTP with the clock state in `known`, until the socket fails.
///
/// # Errors
/// The socket fails.
pub async fn serve(socket: UdpSocket, known: watch::Receiver<TimeSync>) -> anyhow::Result<()> {
    let (say, state) = watch::channel(known.borrow().state);
    let passing = async {
        let mut known = known;
        while known.changed().await.is_ok() {
            say.send_replace(known.borrow().state);
        }
        // The task that sets the clock has ended; its last state stays valid for a while.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        served = ntp::serve(socket, state) => served.context("cannot start the NTP server"),
        () = passing => Ok(()),
    }
}

/// Returns the state before a server sets the clock: unset if `guessed`, else in holdover.
pub fn at_start(guessed: bool) -> TimeSync {
    let state = if guessed { ClockState::Unset } else { ClockState::Holdover(None) };
    TimeSync { state, source: String::new() }
}

#[cfg(test)]
mod tests {
    use ntp::Offset;

    use super::*;

    #[test]
    fn the_owner_decides_whom_to_ask() {
        let words = |all: &[&str]| all.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
        let (owner, network) = (words(&["time.example"]), words(&["10.0.0.1"]));
        assert_eq!(whom(Some(&owner), network.clone()), owner);
        assert_eq!(whom(Some(&[]), network.clone()), network);
        assert_eq!(whom(None, network.clone()), network);
        assert_eq!(whom(Some(&[]), Vec::new()), Vec::<String>::new(), "nobody outside");
        assert_eq!(whom(None, Vec::new()), DEFAULT);
        assert_eq!(whom(Some(&words(&["a"; 30])), Vec::new()).len(), SERVERS_MAX);
    }

    #[test]
    fn a_battery_is_better_than_a_guess() {
        assert_eq!(at_start(true).state, ClockState::Unset);
        assert_eq!(at_start(false).state, ClockState::Holdover(None));
    }

    #[test]
    fn a_small_error_is_no_step() {
        assert!(Offset(127_000_000).abs() < STEP && Offset(-128_000_000).abs() >= STEP);
    }
}
