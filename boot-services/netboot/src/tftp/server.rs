//! Runs the socket of the TFTP server.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::UdpSocket;
use tokio::sync::Mutex;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::cache::Cache;
use super::content::Content;
use super::send::{Blocks, Sender};
use super::socket;
use super::transfers::{Output, Transfers};
use crate::files::ArtifactFolder;
use crate::loader::{BootFile, owner};
use crate::script::{self, pxelinux};
use crate::{Error, Services, iso};

/// Socket buffer in bytes for each direction. A window for each machine of a rack fits.
const SOCKET_BUFFER: usize = 1 << 20;
/// Maximum bytes of a datagram; longer ones are truncated. A request with every option has a tenth
/// of this.
const MAX_DATAGRAM: usize = 2048;
/// Consecutive receive errors after which the server stops.
const MAX_ERRORS: usize = 16;
/// Maximum datagrams in one turn of the loop, before timers and loaded files are processed.
const MAX_DRAINED: usize = 128;
/// Interval of the timer while no transfer runs.
const IDLE: Duration = Duration::from_secs(3600);

/// Address of the scripts, which the TFTP server puts into generated files.
#[derive(Debug, Clone)]
pub struct TftpConfig {
    /// Base URL of the scripts, for `autoexec.ipxe`: `http://10.77.0.1:7080`.
    pub script_base: String,
}

/// Opens the server's socket. `interface` binds the socket to one network device, so that requests
/// from other networks are never answered.
pub fn bind(address: SocketAddr, interface: Option<&str>) -> Result<UdpSocket, Error> {
    socket::bind(address, interface, SOCKET_BUFFER)
        .map_err(|source| Error::Bind { address, source })
}

/// Serves until `shutdown`, when running transfers are dropped; their clients retry.
pub async fn serve(
    socket: UdpSocket,
    config: TftpConfig,
    services: Services,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let site = Arc::new(Site { config, services, cache: Mutex::default() });
    let mut server =
        Server { site, socket, sender: Sender::new(true), transfers: Transfers::default() };
    let mut loads = JoinSet::new();
    let mut datagram = vec![0; MAX_DATAGRAM];
    let mut errors = 0;
    let timer = tokio::time::sleep(IDLE);
    tokio::pin!(timer);
    loop {
        server.act(&mut loads).await;
        let due = server.transfers.due().unwrap_or_else(|| Instant::now() + IDLE).into();
        if timer.deadline() != due {
            timer.as_mut().reset(due);
        }
        tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            received = server.socket.recv_from(&mut datagram) => match received {
                Ok((length, peer)) => {
                    errors = 0;
                    server.transfers.datagram(peer, &datagram[..length], Instant::now());
                    server.drain(&mut datagram, &mut loads).await;
                }
                Err(error) => {
                    tracing::warn!(%error, "receiving a TFTP datagram failed");
                    errors += 1;
                    if errors >= MAX_ERRORS {
                        return Err(Error::Receive(error));
                    }
                }
            },
            Some(done) = loads.join_next() => server.loaded(done),
            () = &mut timer => server.transfers.timer(Instant::now()),
        }
    }
}

/// Socket of the server, and the transfers that use it.
struct Server {
    site: Arc<Site>,
    socket: UdpSocket,
    sender: Sender,
    transfers: Transfers,
}

/// Result of loading a file for a client.
struct Load {
    peer: SocketAddr,
    ticket: u64,
    content: io::Result<Content>,
}

impl Server {
    /// Executes the actions of the transfers.
    async fn act(&mut self, loads: &mut JoinSet<Load>) {
        while let Some(output) = self.transfers.output() {
            match output {
                Output::Packet { to, bytes } => self.sender.packet(&self.socket, to, &bytes).await,
                Output::Blocks { to, content, blksize, blocks: numbers } => {
                    let blocks = Blocks { content: &content, blksize, numbers };
                    self.sender.blocks(&self.socket, to, blocks).await;
                }
                Output::Load { peer, ticket, file } => {
                    let site = Arc::clone(&self.site);
                    loads.spawn(async move {
                        let content = site.load(peer, &file).await;
                        Load { peer, ticket, content }
                    });
                }
                Output::Ended(fetched) => self.site.services.observer.fetched(fetched),
            }
        }
    }

    /// Processes the datagrams that have already arrived, each answered at once: many transfers in
    /// one turn of the loop.
    async fn drain(&mut self, datagram: &mut [u8], loads: &mut JoinSet<Load>) {
        for _ in 0..MAX_DRAINED {
            self.act(loads).await;
            // No further datagram, or an error that the next receive call reports.
            let Ok((length, peer)) = self.socket.try_recv_from(datagram) else { break };
            self.transfers.datagram(peer, &datagram[..length], Instant::now());
        }
    }

    fn loaded(&mut self, done: Result<Load, JoinError>) {
        match done {
            Ok(Load { peer, ticket, content }) => {
                self.transfers.loaded(peer, ticket, content, Instant::now());
            }
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => {}
        }
    }
}

/// State for loading files.
struct Site {
    config: TftpConfig,
    services: Services,
    /// Cache of loaded files. The lock permits one load at a time, so the second request for a file
    /// finds the copy of the first.
    cache: Mutex<Cache>,
}

impl Site {
    async fn load(&self, peer: SocketAddr, name: &str) -> io::Result<Content> {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let file = BootFile::read(name).ok_or_else(missing)?;
        let (peer, owner) = (peer.ip().to_canonical(), owner(name));
        if !self.services.may_netboot(owner, peer) {
            return Err(missing());
        }
        if iso::is_unified(name) {
            let read = async |name: &str| self.cached(ArtifactFolder::Agent, name).await;
            let loaded = iso::load_unified(&self.services, name, peer, read).await;
            return loaded.map(|(file, patch)| Content::patched(file, patch));
        }
        let content: io::Result<Arc<[u8]>> = match file {
            BootFile::File(file) => self.cached(ArtifactFolder::Loaders, &file).await,
            BootFile::Agent(file) => self.cached(ArtifactFolder::Agent, &file).await,
            BootFile::Autoexec => {
                let plan = self.services.plans.by_address(peer);
                let mac = plan.map(|plan| plan.mac);
                Ok(script::autoexec(&self.config.script_base, mac).into_bytes().into())
            }
            BootFile::Pxelinux(mac) => {
                let reader = self.services.reader(peer);
                let plan = self.services.plans.by_mac(mac).filter(|plan| plan.is_for(reader));
                let text = plan.and_then(|plan| pxelinux::config(&plan, &self.config.script_base));
                text.map(|text| text.into_bytes().into()).ok_or_else(missing)
            }
            BootFile::NotAllowed => Err(missing()),
        };
        content.map(Content::from)
    }

    async fn cached(&self, folder: ArtifactFolder, name: &str) -> io::Result<Arc<[u8]>> {
        self.cache.lock().await.get(&self.services.files, folder, name).await
    }
}
