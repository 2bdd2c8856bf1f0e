//! Endpoints with real sockets on loopback addresses, and a host that has every address.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_edge::{Connections, Limits};
use platform::net::{Claim, Confirmation, VirtualAddress};
use rustls::ServerConfig;
use rustls_pki_types::PrivateKeyDer;
use socket2::{Domain, Socket, Type};
use stdx::MacAddr;
use stdx::testing::Wait;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::{Endpoint, Shared};
use crate::backends::Health;
use crate::forward;
use crate::host::{AddressHost, Pending};
use crate::probe::Prober;
use crate::state::State;

/// Host that records which addresses it has.
#[derive(Default)]
pub struct FakeHost {
    pub held: Mutex<Vec<VirtualAddress>>,
    /// Another machine that answers for every address.
    pub holder: Mutex<Option<MacAddr>>,
    /// Result of each confirmation; `None` for the one of a host without other machines.
    pub confirmation: Mutex<Option<Confirmation>>,
    /// Number of announcements after those of `take`.
    pub announced: Mutex<usize>,
}

impl AddressHost for FakeHost {
    fn all(&self) -> Pending<'_, Vec<VirtualAddress>> {
        Box::pin(async { Ok(self.held.lock().unwrap().clone()) })
    }

    fn take<'a>(&'a self, address: &'a VirtualAddress) -> Pending<'a, Claim> {
        Box::pin(async {
            if let Some(mac) = *self.holder.lock().unwrap() {
                return Ok(Claim::InUse(mac));
            }
            self.held.lock().unwrap().push(address.clone());
            Ok(Claim::Held)
        })
    }

    fn confirm<'a>(
        &'a self,
        address: &'a VirtualAddress,
        announce: bool,
    ) -> Pending<'a, Confirmation> {
        Box::pin(async move {
            *self.announced.lock().unwrap() += usize::from(announce);
            let is_held = self.held.lock().unwrap().contains(address);
            let found = if is_held { Confirmation::Held } else { Confirmation::Gone };
            Ok(self.confirmation.lock().unwrap().unwrap_or(found))
        })
    }

    fn give_back<'a>(&'a self, address: &'a VirtualAddress) -> Pending<'a, ()> {
        Box::pin(async move {
            self.held.lock().unwrap().retain(|held| held != address);
            Ok(())
        })
    }
}

/// Server that reads until the client closes its side, and then sends its name. It closes TLS
/// connections at once, so a check finds it listening.
struct Machine {
    address: SocketAddrV4,
    task: JoinHandle<()>,
}

async fn machine(name: &'static str) -> Machine {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let SocketAddr::V4(address) = listener.local_addr().unwrap() else { unreachable!() };
    let task = tokio::spawn(async move {
        let mut open = tokio::task::JoinSet::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            open.spawn(async move {
                let mut text = vec![stream.read_u8().await?];
                if text[0] != 0x16 {
                    stream.read_to_end(&mut text).await?;
                    stream.write_all(format!("{name} {}", text.len()).as_bytes()).await?;
                }
                io::Result::Ok(())
            });
        }
    });
    Machine { address, task }
}

struct Site {
    address: SocketAddrV4,
    host: Arc<FakeHost>,
    machines: watch::Sender<Vec<SocketAddrV4>>,
    state: watch::Receiver<State>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

/// Returns an endpoint of 127.77.0.1 without machines that does not run.
fn idle(host: Arc<FakeHost>) -> Endpoint {
    let at = VirtualAddress { interface: "lo".to_owned(), address: Ipv4Addr::new(127, 77, 0, 1) };
    let shared =
        Shared { host, prober: Prober::new().unwrap(), connections: forward::connections() };
    let (machines, state) = (watch::channel(Vec::new()).1, watch::channel(State::Probing).0);
    Endpoint { shared, at, port: 1, machines, state }
}

async fn site(last: u8, machines: &[&Machine], holder: Option<MacAddr>) -> Site {
    let ip = Ipv4Addr::new(127, 77, 0, last);
    // The port is free on this address, which only this test uses.
    let port = TcpListener::bind((ip, 0)).await.unwrap().local_addr().unwrap().port();
    let host = Arc::new(FakeHost { holder: Mutex::new(holder), ..FakeHost::default() });
    let (machines, received) = watch::channel(machines.iter().map(|it| it.address).collect());
    let mut endpoint = idle(host.clone());
    endpoint.at.address = ip;
    endpoint.port = port;
    endpoint.machines = received;
    let state = endpoint.state.subscribe();
    let stop = CancellationToken::new();
    let task = tokio::spawn(endpoint.run(stop.clone()));
    Site { address: SocketAddrV4::new(ip, port), host, machines, state, stop, task }
}

impl Site {
    async fn until(&mut self, wanted: impl Fn(&State) -> bool) {
        let waiting = self.state.wait_for(wanted);
        tokio::time::timeout(stdx::testing::PATIENCE, waiting).await.unwrap().unwrap();
    }

    async fn until_healthy(&mut self, number: usize) {
        self.until(|it| matches!(it, State::Forwarding { healthy, .. } if *healthy == number))
            .await;
    }

    /// Sends `text`, closes the client's side, and returns all that the machine sends.
    async fn ask(&self, text: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(self.address).await?;
        stream.write_all(text.as_bytes()).await?;
        stream.shutdown().await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }
}

#[tokio::test]
async fn connections_continue_after_a_machine_ends() {
    let (one, two) = (machine("one").await, machine("two").await);
    let mut site = site(1, &[&one, &two], None).await;
    site.until_healthy(2).await;
    // Both have no connections: the first one gets the first.
    let mut open = TcpStream::connect(site.address).await.unwrap();
    open.write_all(b"abc").await.unwrap();
    let wait = Wait::new("the second machine");
    while site.ask("x").await.unwrap() != "two 1" {
        tokio::time::sleep(wait.pause()).await;
    }
    two.task.abort();
    // The next connection is refused by the second machine, and goes to the first.
    for _ in 0..4 {
        assert_eq!(site.ask(&"y".repeat(100_000)).await.unwrap(), "one 100000");
    }
    site.until_healthy(1).await;
    // A connection that is half closed by its client still gets its answer.
    open.write_all(b"def").await.unwrap();
    open.shutdown().await.unwrap();
    let mut answer = String::new();
    open.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "one 6");
    one.task.abort();
    site.until_healthy(0).await;
    assert!(!site.ask("z").await.is_ok_and(|it| !it.is_empty()), "closed without an answer");
    let three = machine("three").await;
    site.machines.send_replace(vec![three.address]);
    site.until(|it| matches!(it, State::Forwarding { healthy: 1, total: 1, .. })).await;
    assert_eq!(site.ask("abc").await.unwrap(), "three 3");
    assert_eq!(site.host.held.lock().unwrap().len(), 1);
    site.stop.cancel();
    site.task.await.unwrap();
    assert_eq!(site.host.held.lock().unwrap().len(), 0, "the address is given back");
    TcpStream::connect(site.address).await.unwrap_err();
}

#[tokio::test]
async fn an_address_of_another_machine_is_never_taken() {
    let mac = MacAddr([2, 0, 0, 0, 0, 9]);
    let one = machine("one").await;
    let mut site = site(2, &[&one], Some(mac)).await;
    site.until(|it| *it == State::InUse(mac)).await;
    assert!(site.host.held.lock().unwrap().is_empty());
    TcpStream::connect(site.address).await.unwrap_err();
    site.stop.cancel();
    site.task.await.unwrap();
}

#[tokio::test]
async fn an_address_is_given_back_after_a_conflict_and_without_a_carrier() {
    let one = machine("one").await;
    let mac = MacAddr([2, 0, 0, 0, 0, 1]);
    let conflict = Confirmation::Conflict { mac, must_yield: true };
    for (last, confirmation) in [(4, conflict), (5, Confirmation::NoCarrier)] {
        let mut site = site(last, &[&one], None).await;
        *site.host.confirmation.lock().unwrap() = Some(confirmation);
        site.until(|it| matches!(it, State::InUse(_) | State::Failed(_))).await;
        let is_conflict = *site.state.borrow() == State::InUse(mac);
        assert_eq!(is_conflict, last == 4);
        assert!(site.host.held.lock().unwrap().is_empty());
        TcpStream::connect(site.address).await.unwrap_err();
        site.stop.cancel();
        site.task.await.unwrap();
    }
}

#[tokio::test]
async fn only_a_machine_that_never_yields_gets_the_address_of_the_lower_mac() {
    let one = machine("one").await;
    let site = site(6, &[&one], None).await;
    let mac = MacAddr([2, 0, 0, 0, 0, 9]);
    let (endpoint, mut conflicts) = (idle(site.host.clone()), 0);
    let mut after = |confirmation| endpoint.after(Ok(confirmation), &mut conflicts);
    let conflict = Confirmation::Conflict { mac, must_yield: false };
    assert_eq!((after(conflict), after(conflict)), (None, None));
    assert_eq!(after(Confirmation::Held), None);
    assert_eq!((after(conflict), after(conflict)), (None, None));
    assert_eq!(after(conflict), Some(State::InUse(mac)));
    assert_eq!(after(Confirmation::Gone), Some(State::Probing));
}

#[tokio::test]
async fn an_address_is_announced_twice() {
    let mut site = site(7, &[], None).await;
    site.until_healthy(0).await;
    let wait = Wait::new("the second announcement");
    while *site.host.announced.lock().unwrap() == 0 {
        tokio::time::sleep(wait.pause()).await;
    }
    assert_eq!(site.host.held.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn an_address_without_a_listener_is_given_back() {
    let other = TcpListener::bind((Ipv4Addr::new(127, 77, 0, 8), 0)).await.unwrap();
    let SocketAddr::V4(address) = other.local_addr().unwrap() else { unreachable!() };
    let host = Arc::new(FakeHost::default());
    let mut endpoint = idle(host.clone());
    endpoint.at.address = *address.ip();
    endpoint.port = address.port();
    let mut state = endpoint.state.subscribe();
    let task = tokio::spawn(endpoint.run(CancellationToken::new()));
    let failed = state.wait_for(|it| matches!(it, State::Failed(_)));
    tokio::time::timeout(stdx::testing::PATIENCE, failed).await.unwrap().unwrap();
    assert!(host.held.lock().unwrap().is_empty());
    task.abort();
}

#[tokio::test]
async fn a_failed_connection_of_a_client_is_not_a_failed_check() {
    let gone = machine("gone").await;
    gone.task.abort();
    let _ = gone.task.await;
    let backends = forward::SharedBackends::default();
    backends.lock().set(&[gone.address]);
    backends.lock().checked(gone.address, Health::Ready);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    for _ in 0..3 {
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        forward::forward(server, backends.clone(), forward::connections()).await;
        drop(client);
    }
    assert_eq!(backends.lock().healthy(), 1);
}

#[tokio::test]
async fn a_connection_that_loses_its_place_ends_during_an_attempt() {
    // The kernel drops further attempts, so each lasts for two seconds, and all together longer
    // than the test waits.
    let full = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    full.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)).into()).unwrap();
    full.listen(0).unwrap();
    let port = full.local_addr().unwrap().as_socket().unwrap().port();
    let _only = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
    let address = |last| SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, last), port);
    let machines: Vec<_> = (1..=100).map(address).collect();
    let backends = forward::SharedBackends::default();
    backends.lock().set(&machines);
    machines.iter().for_each(|it| backends.lock().checked(*it, Health::Ready));
    let connections = Connections::new(Limits { total: 1, each: 1 });
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (server, _) = listener.accept().await.unwrap();
    let task = tokio::spawn(forward::forward(server, backends, connections.clone()));
    let wait = Wait::new("the end of the connection");
    while !task.is_finished() {
        drop(connections.enter(Ipv4Addr::LOCALHOST.into()));
        tokio::time::sleep(wait.pause()).await;
    }
}

#[tokio::test]
async fn the_api_of_the_box_may_have_the_same_port_on_all_addresses() {
    let all = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await.unwrap();
    let port = all.local_addr().unwrap().port();
    let address = SocketAddrV4::new(Ipv4Addr::new(127, 77, 0, 3), port);
    forward::listen(address).unwrap_err();
    socket2::SockRef::from(&all).set_reuse_port(true).unwrap();
    let own = forward::listen(address).unwrap();
    let (connected, accepted) = tokio::join!(TcpStream::connect(address), own.accept());
    assert_eq!(connected.unwrap().local_addr().unwrap(), accepted.unwrap().1);
    let other = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
    let (connected, accepted) = tokio::join!(other, all.accept());
    assert_eq!(connected.unwrap().local_addr().unwrap(), accepted.unwrap().1);
}

/// Starts an HTTPS server that sends `response` to each request.
async fn https(response: &'static str) -> SocketAddrV4 {
    let made = rcgen::generate_simple_self_signed(["kubernetes".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let SocketAddr::V4(address) = listener.local_addr().unwrap() else { unreachable!() };
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut request = [0; 1024];
            let length = stream.read(&mut request).await.unwrap();
            assert!(request[..length].starts_with(b"GET /readyz HTTP/1.1\r\n"));
            let _ = stream.write_all(response.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    address
}

#[tokio::test]
async fn the_readiness_of_an_api_server_is_its_health() {
    let prober = Prober::new().unwrap();
    for (response, expected) in [
        ("HTTP/1.1 200 OK\r\n\r\nok", Health::Ready),
        ("HTTP/1.1 403 Forbidden\r\n\r\n", Health::Ready),
        ("HTTP/1.1 500 Internal Server Error\r\n\r\n[-]etcd failed", Health::Listening),
        ("HTTP", Health::Listening),
    ] {
        assert_eq!(prober.check(https(response).await).await, Some(expected), "{response}");
    }
    let plain = machine("plain").await;
    assert_eq!(prober.check(plain.address).await, Some(Health::Listening));
    plain.task.abort();
    let _ = plain.task.await;
    assert_eq!(prober.check(plain.address).await, Some(Health::Down));
    // A machine that accepts and stays silent is not ready, and does not block the checks.
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let SocketAddr::V4(address) = silent.local_addr().unwrap() else { unreachable!() };
    let checked = tokio::time::timeout(Duration::from_secs(60), prober.check(address)).await;
    assert_eq!(checked.unwrap(), Some(Health::Listening));
}
