//! Scan of the segments of the box: sends the requests, and collects the answers.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

use ipnet::Ipv4Net;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::found::{AnswerTable, DiscoveredBmc};
use crate::{amt_server, asf, ipmi, ssdp};

/// Shortest prefix of a segment whose addresses are tried one by one, because the kernel keeps at
/// most 1,024 neighbors. A larger segment gets broadcasts and multicasts only.
const PREFIX_MIN: u8 = 24;
/// Wait for answers after the last request.
const WINDOW: Duration = Duration::from_secs(1);
/// Wait between two rounds of the same request, because a datagram may be lost.
const ROUND: Duration = Duration::from_millis(200);
/// Rounds of each request.
const ROUNDS: u8 = 2;
/// Wait between two datagrams to single addresses, so that switches and BMCs keep up.
const PACE: Duration = Duration::from_millis(1);
/// Maximum time of a TCP connection attempt. A management engine of a machine that is off may need
/// seconds, and is then found by its pong.
const CONNECT_MAX: Duration = Duration::from_millis(700);
/// Maximum time of the answer to an HTTP request.
const HTTP_MAX: Duration = Duration::from_secs(3);
/// Maximum size of the head of an HTTP answer, in bytes.
const HEAD_MAX: u64 = 4096;
/// Maximum number of concurrent TCP connection attempts.
const CONNECTIONS_MAX: usize = 64;
/// Maximum size of a datagram, in bytes.
const DATAGRAM_MAX: usize = 2048;
/// Tag of the ping and sequence number of the IPMI request.
const TAG: u8 = 0x2a;
/// Port of WS-Management without TLS.
const AMT_PLAIN: u16 = 16992;
/// Port of WS-Management with TLS.
const AMT_TLS: u16 = 16993;

/// Segment that the box is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Address of the box.
    pub own: Ipv4Addr,
    /// Subnet of the segment.
    pub subnet: Ipv4Net,
}

impl Segment {
    /// Creates the segment of the box's address `own`; `None` if `length` is above 32.
    pub fn new(own: Ipv4Addr, network: Ipv4Addr, length: u8) -> Option<Self> {
        Ipv4Net::new(network, length).ok().map(|subnet| Self { own, subnet })
    }

    /// Returns the addresses that are tried one by one.
    fn addresses(&self) -> Vec<Ipv4Addr> {
        if self.subnet.prefix_len() < PREFIX_MIN {
            return Vec::new();
        }
        self.subnet.hosts().filter(|address| *address != self.own).collect()
    }
}

/// Scans the segments, one after the other. `mac` returns the MAC of an address, by ARP, and is
/// called after the scan.
///
/// # Errors
/// A socket cannot be opened on a segment.
pub async fn scan(
    segments: &[Segment],
    mac: impl Fn(Ipv4Addr) -> String,
) -> io::Result<Vec<DiscoveredBmc>> {
    let mut table = AnswerTable::default();
    for segment in segments {
        let (pings, services, ports) = tokio::join!(ping(segment), search(segment), ports(segment));
        for (address, pong) in pings? {
            if let Some(answers) = table.at(address) {
                answers.pong = Some(pong);
            }
        }
        for (address, service) in services? {
            if let Some(answers) = table.at(address) {
                answers.redfish = Some(service);
            }
        }
        for (address, port, server) in ports {
            let Some(answers) = table.at(address) else { continue };
            match port {
                AMT_TLS => answers.has_amt_tls = true,
                _ => answers.amt_server = server.or(answers.amt_server.take()),
            }
        }
        let with_ipmi = table.select(|it| it.pong.is_some_and(|pong| pong.has_ipmi));
        for (address, guid) in guids(segment, &with_ipmi).await? {
            if let Some(answers) = table.at(address) {
                answers.guid = Some(guid);
            }
        }
    }
    Ok(table.bmcs(mac))
}

fn socket(own: Ipv4Addr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
    socket.set_broadcast(true)?;
    socket.set_multicast_if_v4(&own)?;
    socket.set_multicast_ttl_v4(ssdp::TTL)?;
    socket.bind(&SocketAddrV4::new(own, 0).into())?;
    UdpSocket::from_std(socket.into())
}

/// Receives datagrams until `end`, and keeps those that `read` understands.
async fn receive<T>(
    socket: &UdpSocket,
    end: Instant,
    read: impl Fn(&[u8]) -> Option<T>,
) -> Vec<(Ipv4Addr, T)> {
    let mut found = Vec::new();
    let mut buffer = [0; DATAGRAM_MAX];
    // An ICMP error of one address must not end the scan.
    while let Ok(received) = timeout_at(end, socket.recv_from(&mut buffer)).await {
        let Ok((length, SocketAddr::V4(from))) = received else { continue };
        let is_new = !found.iter().any(|(address, _)| address == from.ip());
        if let Some(answer) = read(&buffer[..length]).filter(|_| is_new) {
            found.push((*from.ip(), answer));
        }
    }
    found
}

/// Sends `request` to all addresses in rounds, and collects the answers.
async fn ask<T>(
    socket: &UdpSocket,
    request: &[u8],
    to: &[SocketAddrV4],
    window: Duration,
    read: impl Fn(&[u8]) -> Option<T>,
) -> Vec<(Ipv4Addr, T)> {
    let pace = if to.len() > 1 { PACE } else { Duration::ZERO };
    let length = u32::try_from(to.len()).unwrap_or(u32::MAX);
    let end = Instant::now() + (ROUND + pace * 2 * length) * ROUNDS.into() + window;
    let sending = async {
        for _ in 0..ROUNDS {
            for target in to {
                if let Err(error) = socket.send_to(request, target).await {
                    tracing::debug!(%target, %error, "discovery request not sent");
                }
                sleep(pace).await;
            }
            sleep(ROUND).await;
        }
    };
    let ((), found) = tokio::join!(sending, receive(socket, end, read));
    found
}

async fn ping(segment: &Segment) -> io::Result<Vec<(Ipv4Addr, asf::Pong)>> {
    let mut targets = vec![segment.subnet.broadcast()];
    targets.extend(segment.addresses());
    let targets: Vec<_> = targets.into_iter().map(|it| SocketAddrV4::new(it, asf::PORT)).collect();
    let socket = socket(segment.own)?;
    let read = |datagram: &[u8]| asf::Pong::parse(datagram, TAG);
    Ok(ask(&socket, &asf::ping(TAG), &targets, WINDOW, read).await)
}

async fn guids(segment: &Segment, addresses: &[Ipv4Addr]) -> io::Result<Vec<(Ipv4Addr, [u8; 16])>> {
    let on_segment = addresses.iter().filter(|address| segment.subnet.contains(*address));
    let targets: Vec<_> = on_segment.map(|it| SocketAddrV4::new(*it, asf::PORT)).collect();
    if targets.is_empty() {
        return Ok(Vec::new());
    }
    let socket = socket(segment.own)?;
    let read = |datagram: &[u8]| ipmi::guid_response(datagram, TAG);
    Ok(ask(&socket, &ipmi::guid_request(TAG), &targets, WINDOW, read).await)
}

async fn search(segment: &Segment) -> io::Result<Vec<(Ipv4Addr, ssdp::RedfishService)>> {
    let socket = socket(segment.own)?;
    let group = [SocketAddrV4::new(ssdp::GROUP, ssdp::PORT)];
    let window = Duration::from_secs(ssdp::DELAY_SECONDS) + WINDOW;
    Ok(ask(&socket, &ssdp::search(), &group, window, ssdp::RedfishService::parse).await)
}

/// Returns the addresses with an open port of Intel AMT, and its header `Server`.
async fn ports(segment: &Segment) -> Vec<(Ipv4Addr, u16, Option<String>)> {
    let addresses = segment.addresses();
    let mut targets = addresses.iter().flat_map(|it| [(*it, AMT_TLS), (*it, AMT_PLAIN)]);
    let (mut running, mut found) = (JoinSet::new(), Vec::new());
    loop {
        while running.len() < CONNECTIONS_MAX
            && let Some((address, port)) = targets.next()
        {
            running.spawn(async move { (address, port, amt_port(address, port).await) });
        }
        match running.join_next().await {
            None => return found,
            Some(Ok((address, port, Some(server)))) => {
                found.push((address, port, Some(server).filter(|server| !server.is_empty())));
            }
            Some(_) => {}
        }
    }
}

/// Returns the header `Server` of Intel AMT, which is empty with TLS; `None` for another program or
/// a closed port.
async fn amt_port(address: Ipv4Addr, port: u16) -> Option<String> {
    let stream = timeout(CONNECT_MAX, TcpStream::connect((address, port))).await.ok()?.ok()?;
    if port == AMT_TLS {
        return Some(String::new());
    }
    timeout(HTTP_MAX, server_header(stream, address)).await.ok()?
}

async fn server_header(mut stream: TcpStream, address: Ipv4Addr) -> Option<String> {
    let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut head = Vec::new();
    stream.take(HEAD_MAX).read_to_end(&mut head).await.ok()?;
    amt_server::read(&head)
}

#[cfg(test)]
mod tests {
    use super::Segment;

    #[test]
    fn a_large_segment_is_not_tried_address_by_address() {
        let count = |subnet: &str| {
            let segment = Segment { own: [10, 0, 0, 1].into(), subnet: subnet.parse().unwrap() };
            segment.addresses().len()
        };
        assert_eq!((count("10.0.0.0/24"), count("10.0.0.0/23")), (253, 0));
    }
}
