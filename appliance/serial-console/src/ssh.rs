//! SSH server of the consoles (RFC 4252 and RFC 4254): the user name is the name of the machine.
//!
//! A session shows the console; the command `log` prints the recorded text. Only public keys log
//! in. The escape `~.` belongs to the client.

mod handler;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use russh::keys::ssh_key::private::Ed25519Keypair;
use russh::keys::ssh_key::{HashAlg, LineEnding};
use russh::keys::{PrivateKey, decode_secret_key};
use russh::server::{Config, run_stream};
use russh::{MethodKind, MethodSet};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{Consoles, Error};
use handler::Handler;

/// TCP port of the SSH server, as in Tinkerbell's SecondStar.
pub const PORT: u16 = 2222;
/// Time without traffic after which a session ends.
const IDLE_LIMIT: Duration = Duration::from_secs(15 * 60);
/// Maximum time from the connection to the login.
const LOGIN_LIMIT: Duration = Duration::from_secs(30);
/// Wait before a refused login is answered.
const REFUSAL_WAIT: Duration = Duration::from_secs(1);
/// Maximum number of keys that a client may try.
const LOGINS_MAX: usize = 8;
/// Maximum number of connections.
const CONNECTIONS_MAX: usize = 64;
/// Wait after a failed accept, for example without free file descriptors.
const ACCEPT_WAIT: Duration = Duration::from_millis(200);
/// Name of the file with the host key, and its maximum length in bytes.
const HOST_KEY: &str = "ssh-host-key";
const HOST_KEY_BYTES: u64 = 4096;

/// Host key of the SSH server, which clients remember.
#[derive(Clone)]
pub struct HostKey(PrivateKey);

impl HostKey {
    /// Reads the host key in `folder`, or creates an Ed25519 key there.
    ///
    /// # Errors
    /// The file cannot be read or written, or its content is not a key.
    pub fn ensure(folder: &Path) -> Result<Self, Error> {
        let shown = || folder.display().to_string();
        let file = |source| Error::HostKeyFile { folder: shown(), source };
        let broken = |source| Error::HostKey { folder: shown(), source };
        let stored = durable_file::read(&folder.join(HOST_KEY), HOST_KEY_BYTES).map_err(file)?;
        if let Some(stored) = stored {
            let text = String::from_utf8_lossy(&stored);
            return Ok(Self(decode_secret_key(&text, None).map_err(broken)?));
        }
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|error| file(error.into()))?;
        let key = PrivateKey::from(Ed25519Keypair::from_seed(&seed));
        let text = key.to_openssh(LineEnding::LF).map_err(|error| broken(error.into()))?;
        durable_file::replace_private(folder, HOST_KEY, text.as_bytes()).map_err(file)?;
        Ok(Self(key))
    }

    /// Returns the fingerprint as OpenSSH shows it: `SHA256:` and base64.
    pub fn fingerprint(&self) -> String {
        self.0.fingerprint(HashAlg::Sha256).to_string()
    }
}

/// Serves the consoles on `listener` until `shutdown`.
pub async fn serve(
    listener: TcpListener,
    key: HostKey,
    consoles: Consoles,
    shutdown: CancellationToken,
) {
    let config = Arc::new(Config {
        keys: vec![key.0],
        methods: MethodSet::from(&[MethodKind::PublicKey][..]),
        auth_rejection_time: REFUSAL_WAIT,
        // The first request of OpenSSH asks for the methods and has no key.
        auth_rejection_time_initial: Some(Duration::ZERO),
        max_auth_attempts: LOGINS_MAX,
        inactivity_timeout: Some(IDLE_LIMIT),
        nodelay: true,
        ..Config::default()
    });
    let free = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.cancelled() => return,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept an SSH connection");
                tokio::time::sleep(ACCEPT_WAIT).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&free).try_acquire_owned() else {
            tracing::warn!(%peer, limit = CONNECTIONS_MAX, "too many SSH connections");
            continue;
        };
        let connection = connection(Arc::clone(&config), stream, peer, consoles.clone());
        let shutdown = shutdown.clone();
        tokio::spawn(async move {
            shutdown.run_until_cancelled(connection).await;
            drop(place);
        });
    }
}

/// Serves one connection until its end.
async fn connection(config: Arc<Config>, stream: TcpStream, peer: SocketAddr, consoles: Consoles) {
    let (logged_in, mut login) = watch::channel(false);
    let handler = Handler::new(consoles, peer, logged_in);
    let session = async {
        let running = run_stream(config, stream, handler).await?;
        running.await
    };
    tokio::pin!(session);
    let in_time = async {
        // An error means that the connection ended.
        let is_in_time = timeout(LOGIN_LIMIT, login.wait_for(|done| *done)).await.is_ok();
        if is_in_time {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        ended = &mut session => {
            if let Err(error) = ended {
                tracing::debug!(%peer, %error, "SSH connection ended");
            }
        }
        () = in_time => tracing::debug!(%peer, "no SSH login in time"),
    }
}

#[cfg(test)]
mod tests;
