//! Endpoints with real sockets on loopback addresses, and a host that has every address.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use platform::net::{Claim, VirtualAddress};
use rustls::ServerConfig;
use rustls_pki_types::PrivateKeyDer;
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

async fn site(last: u8, machines: &[&Machine], holder: Option<MacAddr>) -> Site {
    let ip = Ipv4Addr::new(127, 77, 0, last);
    // The port is free on this address, which only this test uses.
    let port = TcpListener::bind((ip, 0)).await.unwrap().local_addr().unwrap().port();
    let host = Arc::new(FakeHost { holder: Mutex::new(holder), ..FakeHost::default() });
    let (machines, received) = watch::channel(machines.iter().map(|it| it.address).collect());
    let (shown, state) = watch::channel(State::Probing);
    let endpoint = Endpoint {
        shared: Shared {
            host: host.clone(),
            prober: Prober::new().unwrap(),
            connections: forward::connections(),
        },
        at: VirtualAddress { interface: "lo".to_owned(), address: ip },
        port,
        machines: received,
        state: shown,
    };
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
        assert_eq!(prober.check(https(response).await).await, expected, "{response}");
    }
    let plain = machine("plain").await;
    assert_eq!(prober.check(plain.address).await, Health::Listening);
    plain.task.abort();
    let _ = plain.task.await;
    assert_eq!(prober.check(plain.address).await, Health::Down);
    // A machine that accepts and stays silent is not ready, and does not block the checks.
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let SocketAddr::V4(address) = silent.local_addr().unwrap() else { unreachable!() };
    let checked = tokio::time::timeout(Duration::from_secs(60), prober.check(address)).await;
    assert_eq!(checked.unwrap(), Health::Listening);
}
