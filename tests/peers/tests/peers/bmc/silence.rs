//! Our client against BMCs that do not answer, or send malformed answers.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bmc::{Address, Credentials, Endpoint, IpmiError, Protocol, registry};
use peers::bmc_sim::{BmcSim, Config};
use peers::loopback_address;
use tokio::time::{Instant, advance};

use super::{cause, clock};

#[tokio::test(start_paused = true)]
async fn silence_is_no_answer_and_ends_soon() {
    let silent = UdpSocket::bind((loopback_address().unwrap(), 0)).unwrap();
    // No socket has this address, so the kernel refuses every datagram.
    let closed = SocketAddr::from((loopback_address().unwrap(), 623));
    let ask = async |at: SocketAddr| {
        let start = Instant::now();
        let error = registry::open(endpoint(at)).power().await.unwrap_err();
        assert!(matches!(cause(&error), IpmiError::NoAnswer { .. }), "{error}");
        assert!(error.is_transient());
        // 1.2 s for the list of suites, 3.5 s for each of two suites, 1.2 s for the versions.
        let waited = start.elapsed().as_millis();
        assert!((9_400..9_500).contains(&waited), "{waited} ms");
    };
    tokio::join!(ask(silent.local_addr().unwrap()), ask(closed));
    let sent = datagrams(&silent);
    let kinds: Vec<_> =
        sent.chunk_by(|a, b| a == b).map(|same| (kind(&same[0]), same.len())).collect();
    assert_eq!(kinds, [("list", 2), ("suite 17", 3), ("suite 3", 3), ("versions", 2)]);
}

/// Returns every datagram that waits in a socket.
fn datagrams(socket: &UdpSocket) -> Vec<Vec<u8>> {
    socket.set_nonblocking(true).unwrap();
    let mut buffer = [0; 512];
    let next = || socket.recv(&mut buffer).ok().map(|len| buffer[..len].to_vec());
    std::iter::from_fn(next).collect()
}

/// Name of the request in a datagram, by its authentication type, its command or payload type, and
/// the algorithm of the proposed suite.
fn kind(datagram: &[u8]) -> &'static str {
    match (datagram[4], datagram[5], datagram.get(28)) {
        (0, ..) if datagram[19] == 0x38 => "versions",
        (0, ..) => "list",
        (6, 0x10, Some(3)) => "suite 17",
        (6, 0x10, Some(1)) => "suite 3",
        _ => "other",
    }
}

fn endpoint(at: SocketAddr) -> Endpoint {
    Endpoint {
        address: Address { host: at.ip().to_string(), port: at.port() },
        credentials: Credentials { username: "admin".into(), password: "secret".into() },
        protocol: Protocol::Ipmi { cipher_suite: None },
    }
}

#[tokio::test(start_paused = true)]
async fn rubbish_is_told_apart_from_silence() {
    let sim = BmcSim::start(Config { rubbish: true, ..Config::default() }).unwrap();
    let driver = registry::open(sim.endpoint(None));
    let error = clock::paced(&sim, driver.power()).await.unwrap_err();
    assert!(matches!(cause(&error), IpmiError::Hostile { .. }), "{error}");
}

/// An endless flood of malformed datagrams, faster than the client can read, delays the client no
/// longer than silence does. The clock advances only while datagrams arrive.
#[tokio::test(start_paused = true)]
async fn a_flood_of_rubbish_ends_as_soon_as_silence() {
    let socket = UdpSocket::bind((loopback_address().unwrap(), 0)).unwrap();
    let at = socket.local_addr().unwrap();
    let (sent, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let flood = std::thread::spawn({
        let (sent, stop) = (Arc::clone(&sent), Arc::clone(&stop));
        move || {
            let (_, peer) = socket.recv_from(&mut [0; 64]).unwrap();
            while !stop.load(Ordering::Relaxed) {
                let went = socket.send_to(&[6, 0, 0xFF, 7, 6, 0x11], peer).is_ok();
                sent.fetch_add(usize::from(went), Ordering::Relaxed);
            }
        }
    });
    let _stopped = clock::stop();
    let start = Instant::now();
    let driver = registry::open(endpoint(at));
    let mut reading = driver.power();
    let error = loop {
        let seen = sent.load(Ordering::Relaxed);
        tokio::select! {
            biased;
            read = &mut reading => break read.unwrap_err(),
            () = clock::until(|| sent.load(Ordering::Relaxed) > seen + 10) => {}
        }
        advance(Duration::from_millis(20)).await;
        let waited = start.elapsed().as_millis();
        assert!(waited <= 8_300, "{waited} ms");
    };
    stop.store(true, Ordering::Relaxed);
    flood.join().unwrap();
    assert!(matches!(cause(&error), IpmiError::Hostile { .. }), "{error}");
}
