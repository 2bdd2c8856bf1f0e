use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use tokio::time::{Instant, advance};

use super::names::{Names, Next};
use super::{FAILED, FRESH, NAMES_MAX, Resolver, STALE, THREADS_MAX, WAIT};

/// Simulated name server that can stop answering.
#[derive(Default)]
struct Server {
    addresses: Mutex<HashMap<String, SocketAddr>>,
    is_silent: Mutex<bool>,
    speaks: Condvar,
    lookups: AtomicUsize,
}

impl Server {
    fn new() -> (Arc<Self>, Resolver) {
        let server = Arc::new(Self::default());
        server.put("bmc1", 1);
        let clone = server.clone();
        (server, Resolver::new(move |host| clone.lookup(host)))
    }

    fn put(&self, host: &str, last: u8) {
        self.addresses.lock().unwrap().insert(host.to_owned(), address(last, 0));
    }

    fn set_silent(&self, is_silent: bool) {
        *self.is_silent.lock().unwrap() = is_silent;
        self.speaks.notify_all();
    }

    fn lookup(&self, host: &str) -> io::Result<Vec<SocketAddr>> {
        self.lookups.fetch_add(1, Ordering::SeqCst);
        let silent = self.is_silent.lock().unwrap();
        drop(self.speaks.wait_while(silent, |silent| *silent).unwrap());
        let found = self.addresses.lock().unwrap().get(host).copied();
        found.map(|found| vec![found]).ok_or_else(|| io::Error::other("no such name"))
    }
}

fn address(last: u8, port: u16) -> SocketAddr {
    (Ipv4Addr::new(10, 0, 0, last), port).into()
}

#[tokio::test]
async fn an_address_is_itself_and_a_name_is_looked_up_once() {
    let (server, resolver) = Server::new();
    assert_eq!(resolver.lookup("10.0.0.9", 623).await.unwrap(), [address(9, 623)]);
    assert_eq!(resolver.lookup("::1", 623).await.unwrap()[0].to_string(), "[::1]:623");
    assert_eq!(server.lookups.load(Ordering::SeqCst), 0);
    let asks = (0..9).map(|_| {
        let resolver = resolver.clone();
        tokio::spawn(async move { resolver.lookup("bmc1", 623).await })
    });
    for ask in asks.collect::<Vec<_>>() {
        assert_eq!(ask.await.unwrap().unwrap(), [address(1, 623)]);
    }
    assert_eq!(server.lookups.load(Ordering::SeqCst), 1);
    let failed = resolver.lookup("bmc2", 623).await.unwrap_err();
    assert_eq!(failed.to_string(), "no such name");
}

#[tokio::test]
async fn a_name_server_that_falls_silent_stops_nobody() {
    let (server, resolver) = Server::new();
    resolver.lookup("bmc1", 623).await.unwrap();
    server.set_silent(true);
    // From here on a wait for the silent server takes no time.
    tokio::time::pause();
    advance(FRESH).await;
    for number in 0..2 * THREADS_MAX {
        let error = resolver.lookup(&format!("new{number}"), 623).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().contains("within 5 s"), "{error}");
    }
    let begun = Instant::now();
    assert_eq!(resolver.lookup("bmc1", 623).await.unwrap(), [address(1, 623)], "as before");
    assert!(begun.elapsed() <= WAIT + Duration::from_millis(10));
    let begun = Instant::now();
    assert_eq!(resolver.lookup("bmc1", 623).await.unwrap(), [address(1, 623)]);
    assert!(begun.elapsed().is_zero(), "it is known to be silent");
    advance(STALE).await;
    assert!(resolver.lookup("bmc1", 623).await.is_err(), "addresses change");
    assert!(server.lookups.load(Ordering::SeqCst) <= 1 + THREADS_MAX);
    tokio::time::resume();
    server.put("bmc1", 2);
    server.set_silent(false);
    // The look-up under way ends, and the next one gives what is true now.
    while resolver.lookup("bmc1", 623).await.ok() != Some(vec![address(2, 623)]) {
        tokio::task::yield_now().await;
    }
}

fn waits(names: &mut Names, host: &str, now: Instant) -> bool {
    matches!(names.request(host, now), Next::Wait { .. })
}

#[test]
fn answers_and_failures_have_their_time() {
    let (mut names, now) = (Names::default(), Instant::now());
    assert!(waits(&mut names, "a", now));
    assert_eq!(names.take().as_deref(), Some("a"));
    names.end("a", Ok(vec![address(1, 0)]));
    let known = |names: &mut Names, now| match names.request("a", now) {
        Next::Known(answer) => Some(answer.map_err(|error| error.to_string())),
        _ => None,
    };
    assert_eq!(known(&mut names, now), Some(Ok(vec![address(1, 0)])));
    let later = now + FRESH;
    assert!(waits(&mut names, "a", later));
    assert_eq!(names.take().as_deref(), Some("a"));
    names.end("a", Ok(Vec::new()));
    assert_eq!(known(&mut names, later), Some(Ok(vec![address(1, 0)])), "the last one known");
    assert!(waits(&mut names, "a", later + FAILED));
    assert_eq!(names.take().as_deref(), Some("a"));
    names.end("a", Err(io::Error::other("refused")));
    assert_eq!(known(&mut names, now + STALE), None, "a new look-up starts");
    assert_eq!(names.stale("a", now + STALE), None);
}

#[test]
fn the_names_are_bounded() {
    let (mut names, now) = (Names::default(), Instant::now());
    for number in 0..NAMES_MAX {
        assert!(waits(&mut names, &number.to_string(), now + Duration::from_nanos(number as u64)));
    }
    assert!(matches!(names.request("more", now), Next::Full));
    for _ in 0..2 {
        let host = names.take().unwrap();
        names.end(&host, Ok(vec![address(1, 0)]));
    }
    assert!(waits(&mut names, "more", now));
    assert_eq!(names.stale("0", now), None, "the oldest is forgotten");
    assert!(names.stale("1", now).is_some());
}
