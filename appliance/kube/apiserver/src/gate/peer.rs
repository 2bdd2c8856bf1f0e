//! The other end of a connection, as far as it is known before its first request.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use futures_util::future::BoxFuture;
use http_edge::Place as StrangersPlace;
use rbac::{Share, Shares, User};

/// One connection's other end. A connection takes one of the few places for strangers until a
/// request on it is by somebody known; then one of that user's.
#[derive(Debug)]
pub struct Peer {
    address: IpAddr,
    user: Option<User>,
    /// The places of known users.
    users: Shares,
    place: Mutex<Place>,
    /// Stream of the connection after HTTP.
    next: Mutex<Option<Next>>,
}

/// A WebSocket, say.
struct Next(BoxFuture<'static, ()>);

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Next")
    }
}

#[derive(Debug)]
enum Place {
    Stranger(#[expect(dead_code, reason = "held, not looked at")] StrangersPlace),
    Known(#[expect(dead_code, reason = "held, not looked at")] Share),
}

impl Peer {
    /// A connection from `address` holding `place` among the strangers, which may go on to hold one
    /// of `users`.
    pub fn new(address: IpAddr, place: StrangersPlace, users: Shares) -> Self {
        let place = Mutex::new(Place::Stranger(place));
        Self { address, user: None, users, place, next: Mutex::default() }
    }

    /// Says whom the client's certificate names, which was verified.
    #[must_use]
    pub fn certified(mut self, user: Option<User>) -> Self {
        if let Some(user) = &user {
            self.is_known(user);
        }
        self.user = user;
        self
    }

    /// Where the connection comes from.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Whom the client's certificate names.
    pub fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }

    /// Notes that the client is `user`; false when that user has all the connections they may, and
    /// this one stays a stranger's.
    pub fn is_known(&self, user: &User) -> bool {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Place::Stranger(_) = *place {
            let Some(share) = self.users.enter(&user.name) else { return false };
            *place = Place::Known(share);
        }
        true
    }

    /// Says what the connection goes on as when HTTP has ended on it.
    pub fn go_on_as(&self, next: impl Future<Output = ()> + Send + 'static) {
        let mut place = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        *place = Some(Next(Box::pin(next)));
    }

    /// Takes what the connection goes on as.
    pub fn next(&self) -> Option<BoxFuture<'static, ()>> {
        let next = self.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        next.map(|next| next.0)
    }

    /// Whether the client still is nobody known.
    pub fn is_stranger(&self) -> bool {
        let place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(*place, Place::Stranger(_))
    }
}
