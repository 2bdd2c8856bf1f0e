//! Limits the memory and the time for request bodies of unauthenticated clients.

use std::collections::HashMap;
use std::fmt;
use std::future::Future as _;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

use crate::Network;

/// Limits for the request bodies of one listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyLimits {
    /// Maximum bytes of all bodies together.
    pub total: usize,
    /// Maximum bytes of the bodies of one [`Network`].
    pub each: usize,
    /// Time in which a body must arrive completely.
    pub time: Duration,
}

/// Bodies that are being read; clones share the limits and the counts.
#[derive(Debug, Clone)]
pub struct Bodies {
    limits: BodyLimits,
    counts: Arc<Mutex<ByteCounts>>,
}

#[derive(Debug, Default)]
struct ByteCounts {
    total: usize,
    each: HashMap<Network, usize>,
}

/// Body of a request that counts towards the limits until it is dropped.
#[derive(Debug)]
pub struct Limited<B> {
    body: B,
    network: Network,
    bytes: usize,
    bodies: Bodies,
    deadline: Pin<Box<Sleep>>,
}

/// Reason why reading a body failed.
#[derive(Debug)]
pub enum BodyError {
    /// The maximum number of bytes is reached, for the network or in total.
    TooMany,
    /// The body did not arrive in time.
    TooSlow,
    /// The underlying body failed with this error.
    Body(Box<dyn std::error::Error + Send + Sync>),
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooMany => "too many bytes of requests are in memory",
            Self::TooSlow => "the request took too long",
            Self::Body(_) => "the request is broken",
        })
    }
}

impl std::error::Error for BodyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Body(source) => Some(source.as_ref()),
            Self::TooMany | Self::TooSlow => None,
        }
    }
}

impl Bodies {
    /// Creates an empty set of bodies with these limits.
    pub fn new(limits: BodyLimits) -> Self {
        Self { limits, counts: Arc::default() }
    }

    /// Wraps the body of a request from `address`. The time limit starts now.
    pub fn limit<B>(&self, address: IpAddr, body: B) -> Limited<B> {
        let deadline = Box::pin(tokio::time::sleep(self.limits.time));
        let network = Network::of(address);
        Limited { body, network, bytes: 0, bodies: self.clone(), deadline }
    }

    fn counts(&self) -> MutexGuard<'_, ByteCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds `bytes` to the counts. Returns false, without adding, if a limit would be exceeded.
    fn take(&self, network: Network, bytes: usize) -> bool {
        let mut counts = self.counts();
        let of_network = counts.each.get(&network).copied().unwrap_or(0) + bytes;
        if of_network > self.limits.each || counts.total + bytes > self.limits.total {
            return false;
        }
        counts.total += bytes;
        counts.each.insert(network, of_network);
        true
    }

    fn give_back(&self, network: Network, bytes: usize) {
        let mut counts = self.counts();
        counts.total -= bytes;
        if let Some(of_network) = counts.each.get_mut(&network) {
            *of_network -= bytes;
            if *of_network == 0 {
                counts.each.remove(&network);
            }
        }
    }
}

impl<B> Drop for Limited<B> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.bodies.give_back(self.network, self.bytes);
        }
    }
}

impl<B> Body for Limited<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if polled.is_pending() && self.deadline.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(BodyError::TooSlow)));
        }
        let Some(frame) = ready!(polled) else { return Poll::Ready(None) };
        let frame = frame.map_err(|error| BodyError::Body(error.into()));
        let bytes = frame.as_ref().ok().and_then(Frame::data_ref).map_or(0, Bytes::len);
        if bytes > 0 {
            if !self.bodies.take(self.network, bytes) {
                return Poll::Ready(Some(Err(BodyError::TooMany)));
            }
            self.bytes += bytes;
        }
        Poll::Ready(Some(frame))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use std::time::Duration;

    use bytes::Bytes;
    use http_body::{Body, Frame};
    use http_body_util::BodyExt as _;

    use super::{Bodies, BodyError, BodyLimits};

    const LIMITS: BodyLimits = BodyLimits { total: 30, each: 20, time: Duration::from_secs(10) };

    /// Body that sends one frame of the given number of bytes, and does not end.
    struct Endless(usize);

    impl Body for Endless {
        type Data = Bytes;
        type Error = std::io::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
            match std::mem::take(&mut self.0) {
                0 => Poll::Pending,
                bytes => Poll::Ready(Some(Ok(Frame::data(vec![0; bytes].into())))),
            }
        }
    }

    fn ip(last: u8) -> IpAddr {
        Ipv4Addr::new(10, 77, 0, last).into()
    }

    #[tokio::test(start_paused = true)]
    async fn one_network_cannot_hold_what_others_need() {
        let bodies = Bodies::new(LIMITS);
        let mut body = bodies.limit(ip(1), Endless(15));
        assert!(body.frame().await.unwrap().is_ok());
        let mut more = bodies.limit(ip(1), Endless(6));
        assert!(matches!(more.frame().await, Some(Err(BodyError::TooMany))));
        let mut other = bodies.limit(ip(2), Endless(15));
        assert!(other.frame().await.unwrap().is_ok());
        assert!(
            matches!(bodies.limit(ip(3), Endless(1)).frame().await, Some(Err(_))),
            "all is held"
        );
        drop(body);
        let mut again = bodies.limit(ip(3), Endless(15));
        assert!(again.frame().await.unwrap().is_ok());
        drop((other, again));
        assert!(bodies.counts().each.is_empty() && bodies.counts().total == 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_end_is_cut() {
        let bodies = Bodies::new(LIMITS);
        let mut body = bodies.limit(ip(1), Endless(1));
        assert!(body.frame().await.unwrap().is_ok());
        assert!(matches!(body.frame().await, Some(Err(BodyError::TooSlow))));
    }
}
