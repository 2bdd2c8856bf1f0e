//! The service: receive, decide, send, until told to stop.

use std::sync::Arc;
use std::time::{Duration, Instant};

use stdx::Backoff;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::engine::Engine;
use crate::error::Error;
use crate::ra;
use crate::reservation::Directory;
use crate::seen::Observer;
use crate::socket::{Link, MAX_DATAGRAM};

/// How often to look whether the interface is still there.
const INTERFACE_CHECK: Duration = Duration::from_secs(5);
/// Failed receives in a row (each within one interface check) that end the service. One is normal:
/// the kernel reports an interface that goes down.
const MAX_FAILURES: u32 = 8;
/// Waits between attempts to advertise.
const RETRY_FIRST: Duration = Duration::from_secs(5);
const RETRY_MAX: Duration = Duration::from_secs(300);

/// Serves `config.interface` until `shutdown` is cancelled.
///
/// The interface must exist; it should have the address `config.server`. Needs `CAP_NET_RAW` and
/// `CAP_NET_BIND_SERVICE`. Router advertisements that cannot be sent (no IPv6) are logged, and the
/// DHCP service goes on without.
///
/// # Errors
/// When a socket cannot be opened, or when the interface goes away. The caller may run it again.
pub async fn run(
    config: Config,
    directory: Arc<dyn Directory>,
    observer: Arc<dyn Observer>,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let link = Link::open(&config.interface, config.server)?;
    let (interface, server) = (config.interface.clone(), config.server);
    tracing::info!(interface, %server, "serving DHCP");
    let result = tokio::select! {
        () = shutdown.cancelled() => Ok(()),
        error = serve(&link, config.clone(), &*directory, &*observer) => Err(error),
        () = advertise(&config), if config.router_advertisements => Ok(()),
    };
    tracing::info!(interface, "stopped serving DHCP");
    result
}

/// Advertises for ever, trying again where IPv6 is missing: it may come with the interface's link.
async fn advertise(config: &Config) {
    let interface = &config.interface;
    let mut backoff = Backoff::new(RETRY_FIRST, RETRY_MAX);
    loop {
        if let Err(error) = ra::advertise(interface, config.ra_prefix).await {
            tracing::warn!(interface, %error, "no router advertisements: iPXE will wait");
        }
        tokio::time::sleep(backoff.next_wait()).await;
    }
}

async fn serve(
    link: &Link,
    config: Config,
    directory: &dyn Directory,
    observer: &dyn Observer,
) -> Error {
    let interface = config.interface.clone();
    let mut engine = Engine::new(config, Instant::now());
    let mut buffer = vec![0; MAX_DATAGRAM];
    let mut failures = 0;
    let mut check = tokio::time::interval(INTERFACE_CHECK);
    check.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            received = link.receive(&mut buffer) => match received {
                Ok(length) => {
                    failures = 0;
                    answer(link, &mut engine, &buffer[..length], directory, observer);
                }
                Err(source) => {
                    failures += 1;
                    tracing::warn!(interface, error = %source, "cannot receive");
                    if failures >= MAX_FAILURES {
                        return Error::Receive { interface, source };
                    }
                }
            },
            _ = check.tick() => {
                failures = 0;
                if let Err(source) = link.is_current() {
                    return Error::Interface { interface, source };
                }
            }
        }
    }
}

fn answer(
    link: &Link,
    engine: &mut Engine,
    datagram: &[u8],
    directory: &dyn Directory,
    observer: &dyn Observer,
) {
    let outgoing = match engine.handle(datagram, directory, observer, Instant::now()) {
        Ok(Some(outgoing)) => outgoing,
        Ok(None) => return,
        Err(reason) => {
            let length = datagram.len();
            tracing::debug!(length, %reason, "not a client's DHCP message");
            return;
        }
    };
    if let Err(error) = link.send(&outgoing) {
        tracing::warn!(to = ?outgoing.to, %error, "cannot send a DHCP answer");
    }
}
