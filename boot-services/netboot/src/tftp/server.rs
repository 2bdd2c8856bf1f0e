//! The socket of the TFTP server.

use std::io;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::cache::Cache;
use super::packet;
use super::session::{MAX_BLKSIZE, low_bits};
use super::transfers::{Output, Transfers};
use crate::loader::Wanted;
use crate::{Error, Services, script};

/// Asked of the kernel for each direction, so that a window for each of a rack's machines fits.
const SOCKET_BUFFER: usize = 1 << 20;
/// Longer datagrams are cut; requests with every option are a tenth of it.
const MAX_DATAGRAM: usize = 2048;
/// Receive errors in a row before the server stops.
const MAX_ERRORS: usize = 16;
/// The timer's rest when no transfer runs.
const IDLE: Duration = Duration::from_secs(3600);

/// What the server says about its surroundings.
#[derive(Debug, Clone)]
pub struct TftpConfig {
    /// Where the scripts are, for `autoexec.ipxe`: `http://10.77.0.1:7080`.
    pub script_base: String,
}

/// Opens the server's socket. `interface` binds it to one network device, so that a request that
/// came in elsewhere is never answered.
pub fn bind(address: SocketAddr, interface: Option<&str>) -> Result<UdpSocket, Error> {
    let open = || -> io::Result<UdpSocket> {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        if let Some(interface) = interface {
            socket.bind_device(Some(interface.as_bytes()))?;
        }
        // The kernel gives what its limits allow; less is slower, not wrong.
        socket.set_recv_buffer_size(SOCKET_BUFFER)?;
        socket.set_send_buffer_size(SOCKET_BUFFER)?;
        socket.bind(&address.into())?;
        UdpSocket::from_std(socket.into())
    };
    open().map_err(|source| Error::Bind { address, source })
}

/// Serves until `shutdown`. Running transfers are dropped then; their clients ask again.
pub async fn serve(
    socket: UdpSocket,
    config: TftpConfig,
    services: Services,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let cache = Arc::new(Mutex::new(Cache::default()));
    let mut transfers = Transfers::default();
    let mut loads = JoinSet::new();
    let mut datagram = vec![0; MAX_DATAGRAM];
    let mut errors = 0;
    let timer = tokio::time::sleep(IDLE);
    tokio::pin!(timer);
    loop {
        while let Some(output) = transfers.output() {
            match output {
                Output::Packet { to, bytes } => send(&socket, to, &bytes).await,
                Output::Blocks { to, content, blksize, blocks } => {
                    send_blocks(&socket, to, &content, blksize, blocks).await;
                }
                Output::Load { peer, ticket, file } => {
                    let (config, services, cache) =
                        (config.clone(), services.clone(), cache.clone());
                    loads.spawn(async move {
                        let content = load(&config, &services, &cache, peer, &file).await;
                        (peer, ticket, content)
                    });
                }
                Output::Ended(fetched) => services.observer.fetched(fetched),
            }
        }
        let due = transfers.due().unwrap_or_else(|| Instant::now() + IDLE);
        timer.as_mut().reset(due.into());
        tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            received = socket.recv_from(&mut datagram) => match received {
                Ok((length, peer)) => {
                    errors = 0;
                    transfers.datagram(peer, &datagram[..length], Instant::now());
                }
                Err(error) => {
                    tracing::warn!(%error, "receiving a TFTP datagram failed");
                    errors += 1;
                    if errors >= MAX_ERRORS {
                        return Err(Error::Receive(error));
                    }
                }
            },
            Some(done) = loads.join_next() => {
                match done {
                    Ok((peer, ticket, content)) => {
                        transfers.loaded(peer, ticket, content, Instant::now());
                    }
                    Err(error) if error.is_panic() => {
                        std::panic::resume_unwind(error.into_panic());
                    }
                    Err(_) => {}
                }
            },
            () = &mut timer => transfers.timer(Instant::now()),
        }
    }
}

async fn load(
    config: &TftpConfig,
    services: &Services,
    cache: &Mutex<Cache>,
    peer: SocketAddr,
    file: &str,
) -> io::Result<Arc<[u8]>> {
    match Wanted::read(file) {
        // One load at a time: the second asker of a file finds the first one's copy.
        Some(Wanted::File(name)) => cache.lock().await.get(&services.files, &name).await,
        Some(Wanted::Autoexec) => {
            let plan = services.plans.by_address(peer.ip().to_canonical());
            let mac = plan.map(|plan| plan.mac);
            Ok(script::autoexec(&config.script_base, mac).into_bytes().into())
        }
        Some(Wanted::NotAllowed) | None => Err(io::ErrorKind::NotFound.into()),
    }
}

async fn send_blocks(
    socket: &UdpSocket,
    to: SocketAddr,
    content: &[u8],
    blksize: u16,
    blocks: RangeInclusive<u64>,
) {
    let mut bytes = Vec::with_capacity(usize::from(MAX_BLKSIZE) + 4);
    for block in blocks {
        let payload = payload(content, blksize, block);
        packet::data(&mut bytes, low_bits(block), payload);
        send(socket, to, &bytes).await;
    }
}

/// The bytes of one block; empty behind the end.
fn payload(content: &[u8], blksize: u16, block: u64) -> &[u8] {
    let offset = block.saturating_sub(1).saturating_mul(blksize.into());
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(content.len());
    let end = (start + usize::from(blksize)).min(content.len());
    &content[start..end]
}

async fn send(socket: &UdpSocket, to: SocketAddr, bytes: &[u8]) {
    if let Err(error) = socket.send_to(bytes, to).await {
        // A packet that could not be sent is a packet that was lost: the timer sends it again.
        tracing::debug!(%to, %error, "a TFTP packet could not be sent");
    }
}
