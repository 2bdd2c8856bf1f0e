//! TCP relay between a client and a server, so that a test can interrupt this client only.

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Treatment of all connections of a relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// State of a network without faults.
    Open,
    /// No byte passes, and connections stay open, as with a cut cable.
    Frozen,
    /// Connections are closed, also new ones, as with a server that is down.
    Closed,
}

pub struct Relay {
    address: SocketAddr,
    mode: watch::Sender<Mode>,
}

impl Relay {
    /// Starts a relay to the server at `target`, inside a Tokio runtime.
    pub async fn start(target: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (mode, reader) = watch::channel(Mode::Open);
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                tokio::spawn(relay(client, target.clone(), reader.clone()));
            }
        });
        Self { address, mode }
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    pub fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }
}

async fn relay(client: TcpStream, target: String, mut mode: watch::Receiver<Mode>) {
    let (up, down, mut ready) = (mode.clone(), mode.clone(), mode.clone());
    let pass = async {
        // Connections that were made in the meantime wait, as without an answer to a SYN.
        if ready.wait_for(|mode| *mode == Mode::Open).await.is_err() {
            return;
        }
        let Ok(server) = TcpStream::connect(target).await else { return };
        let (client_read, client_write) = client.into_split();
        let (server_read, server_write) = server.into_split();
        tokio::select! {
            () = copy(client_read, server_write, up) => {}
            () = copy(server_read, client_write, down) => {}
        }
    };
    tokio::select! {
        () = pass => {}
        _ = mode.wait_for(|mode| *mode == Mode::Closed) => {}
    }
}

/// Copies until one side ends. A byte waits until the mode is open.
async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut mode: watch::Receiver<Mode>,
) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let is_open = mode.wait_for(|mode| *mode == Mode::Open).await.is_ok();
        if !is_open || to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
