//! Resolver of host names for HTTP clients of hyper.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::dns::Name;

/// Resolver of the whole process, as a service of hyper's `HttpConnector`.
#[derive(Debug, Clone, Copy)]
pub struct ConnectorNames;

impl tower::Service<Name> for ConnectorNames {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        Box::pin(async move { Ok(crate::system().lookup(name.as_str(), 0).await?.into_iter()) })
    }
}
