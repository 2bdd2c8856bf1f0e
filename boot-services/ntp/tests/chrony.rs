//! The time asked of chrony, and told to chrony, in a network of their own.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

use ntp::{Standing, Timestamp, Told, ask, serve};
use tokio::net::UdpSocket;
use tokio::sync::watch;

/// Set in the namespace.
const INSIDE: &str = "TINBOX_NTP_INSIDE";
/// Two machines' worth of loopback; chrony answers at the second once it is asked.
const NAMESPACE: &str = r#"
set -e
ip link set lo up
ip addr add 10.9.0.1/32 dev lo
ip addr add 10.9.0.2/32 dev lo
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf $folder' EXIT
printf '%s\n' 'local stratum 5' 'allow' 'bindaddress 10.9.0.2' 'cmdport 0' \
  "pidfile $folder/pid" >$folder/chrony.conf
chronyd -d -x -u root -f $folder/chrony.conf 2>&1 &
"$0" --exact "$1" --nocapture
"#;
/// How far two readings of one clock may be apart on a machine that does other things too.
const SAME_CLOCK: Duration = Duration::from_millis(500);

fn inside(test: &str, there: impl AsyncFnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        runtime.expect("a runtime").block_on(there());
        return;
    }
    let mut unshare = Command::new("unshare");
    unshare.args(["--net", "bash", "-c", NAMESPACE]);
    unshare.arg(std::env::current_exe().expect("this test")).arg(test).env(INSIDE, "1");
    let output = unshare.output().expect("unshare runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}\n{error}");
}

#[test]
fn chrony_tells_the_time() {
    inside("chrony_tells_the_time", async || {
        let chrony = SocketAddr::from(([10, 9, 0, 2], ntp::PORT));
        // It may not listen yet.
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        let sample = loop {
            match ask(chrony).await {
                Ok(sample) => break sample,
                Err(error) => assert!(tokio::time::Instant::now() < deadline, "{error}"),
            }
        };
        assert_eq!(sample.told.stratum, 5);
        assert!(sample.offset.abs() < SAME_CLOCK, "{}", sample.offset);
    });
}

#[test]
fn chrony_is_told_the_time() {
    inside("chrony_is_told_the_time", async || {
        let told = Told {
            stratum: 2,
            id: [10, 9, 0, 9],
            at: Timestamp::now(),
            root_delay: 100,
            root_dispersion: 100,
        };
        let (say, standing) = watch::channel(Standing::Synced(told));
        let socket = UdpSocket::bind(("10.9.0.1", ntp::PORT)).await.unwrap();
        tokio::spawn(serve(socket, standing));
        let words = tokio::task::spawn_blocking(query).await.unwrap();
        // `chronyd -Q` sets no clock and says by how much it would.
        let wrong = words.split_once("System clock wrong by ").expect(&words).1;
        let seconds: f64 = wrong.split_whitespace().next().unwrap().parse().unwrap();
        assert!(seconds.abs() < SAME_CLOCK.as_secs_f64(), "{words}");

        say.send(Standing::Unset).unwrap();
        let words = tokio::task::spawn_blocking(query).await.unwrap();
        assert!(!words.contains("System clock wrong"), "a guess was believed: {words}");
    });
}

/// What chrony says of the box's time, in at most 8 s.
fn query() -> String {
    let mut chrony = Command::new("chronyd");
    chrony.args(["-Q", "-t", "8", "-u", "root"]);
    // At its end it deletes its file.
    let folder = tempfile::tempdir().expect("a folder");
    let pid = format!("pidfile {}", folder.path().join("pid").display());
    chrony.args(["server 10.9.0.1 iburst", "cmdport 0", &pid]);
    let output = chrony.stdin(Stdio::null()).output().expect("chronyd runs");
    [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat()
}
