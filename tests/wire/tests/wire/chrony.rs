//! Client and server against chrony, in a network of their own.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ntp::{ClockState, ServerReport, Timestamp, query, serve};
use stdx::testing::{PATIENCE, Wait};
use tokio::net::UdpSocket;
use tokio::sync::watch;

/// Environment variable that is set inside the namespace.
const INSIDE: &str = "TINBOX_NTP_INSIDE";
/// Loopback addresses of two machines; chrony answers at the second one.
const NAMESPACE: &str = r#"
set -e
ip link set lo up
ip addr add 10.9.0.1/32 dev lo
ip addr add 10.9.0.2/32 dev lo
folder=$(mktemp -d)
trap 'rm -rf $folder' EXIT
printf '%s\n' 'local stratum 5' 'allow' 'bindaddress 10.9.0.2' 'cmdport 0' \
  "pidfile $folder/pid" >$folder/chrony.conf
chronyd -d -x -u root -f $folder/chrony.conf 2>&1 &
"$0" --exact "$1" --nocapture
"#;
/// Maximum clock error in seconds that chrony may report: both sides read the same clock.
const SAME_CLOCK: f64 = 0.5;
/// Rounding of the protocol's fractions and of the clock's steps.
const ROUNDING: Duration = Duration::from_millis(1);

fn inside(test: &str, there: impl AsyncFnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        runtime.expect("a runtime").block_on(there());
        return;
    }
    wire::rerun(NAMESPACE, &format!("chrony::{test}"), &[(INSIDE, "1")]);
}

#[test]
fn chrony_tells_the_time() {
    inside("chrony_tells_the_time", async || {
        let chrony = SocketAddr::from(([10, 9, 0, 2], ntp::PORT));
        // chrony may not listen yet.
        let wait = Wait::new("chrony's answer");
        let (sample, took) = loop {
            let begun = Instant::now();
            match query(chrony).await {
                Ok(sample) => break (sample, begun.elapsed()),
                Err(_) => tokio::time::sleep(wait.pause()).await,
            }
        };
        assert_eq!(sample.report.stratum, 5);
        // Both sides read one clock, so the error is at most half of the round-trip delay (RFC 5905
        // section 8), even if a busy machine makes the delay long.
        assert!(sample.delay <= took + ROUNDING, "{:?} in {took:?}", sample.delay);
        assert!(sample.offset.abs() <= sample.delay / 2 + ROUNDING, "{}", sample.offset);
    });
}

#[test]
fn chrony_gets_the_time() {
    inside("chrony_gets_the_time", async || {
        let report = ServerReport {
            stratum: 2,
            leap: 0,
            id: [10, 9, 0, 9],
            at: Timestamp::now(),
            root_delay: 100,
            root_dispersion: 100,
        };
        let (sender, state) = watch::channel(ClockState::Synced(report));
        let socket = UdpSocket::bind(("10.9.0.1", ntp::PORT)).await.unwrap();
        tokio::spawn(serve(socket, state));
        // A busy machine makes a single reading wrong; a wrong answer of the server makes all
        // readings wrong.
        let wait = Wait::new("chrony to find its clock right");
        loop {
            let words = tokio::task::spawn_blocking(|| chrony_query(PATIENCE)).await.unwrap();
            // `chronyd -Q` does not set the clock; it prints the correction that it would make.
            let wrong = words.split_once("System clock wrong by ").expect(&words).1;
            let seconds: f64 = wrong.split_whitespace().next().unwrap().parse().unwrap();
            if seconds.abs() < SAME_CLOCK {
                break;
            }
            println!("{words}");
            tokio::time::sleep(wait.pause()).await;
        }

        // A box whose clock was never set from a server, and one whose clock was last set ten days
        // ago.
        let ten_days = Timestamp(Timestamp::now().0 - (864_000 << 32));
        let old = ServerReport { at: ten_days, ..report };
        for alone in [ClockState::Holdover(None), ClockState::Holdover(Some(old))] {
            sender.send(alone).unwrap();
            let words = tokio::task::spawn_blocking(|| chrony_query(PATIENCE)).await.unwrap();
            assert!(words.contains("System clock wrong"), "{alone:?} is not followed: {words}");
        }

        sender.send(ClockState::Unset).unwrap();
        let words = tokio::task::spawn_blocking(|| chrony_query(GUESS)).await.unwrap();
        assert!(!words.contains("System clock wrong"), "chrony followed a guess: {words}");
    });
}

/// Time in which chrony could accept a clock that it must reject.
const GUESS: Duration = Duration::from_secs(8);

/// Returns what chrony prints about the box's time; chrony ends after `limit` at the latest.
fn chrony_query(limit: Duration) -> String {
    let mut chrony = Command::new("chronyd");
    chrony.args(["-Q", "-t", &limit.as_secs().to_string(), "-u", "root"]);
    // chrony deletes its PID file when it ends.
    let folder = tempfile::tempdir().expect("a folder");
    let pid = format!("pidfile {}", folder.path().join("pid").display());
    chrony.args(["server 10.9.0.1 iburst", "cmdport 0", &pid]);
    let output = chrony.stdin(Stdio::null()).output().expect("chronyd runs");
    [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat()
}
