//! Client of a connection: address, certificate and connection slot.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use futures_util::future::BoxFuture;
use http_edge::Place;
use rbac::{Share, Shares, User};

/// Client of one connection. The connection occupies a slot for unauthenticated clients until one
/// of its requests is authenticated, and then a slot of the user.
#[derive(Debug)]
pub struct Peer {
    address: IpAddr,
    user: Option<User>,
    /// Slots of authenticated users.
    users: Shares,
    slot: Mutex<Slot>,
    /// Future that uses the connection after HTTP, such as a WebSocket; `None` if there is none.
    next: Mutex<Option<Next>>,
}

/// Future that runs after HTTP, such as a WebSocket.
struct Next(BoxFuture<'static, ()>);

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Next")
    }
}

#[derive(Debug)]
enum Slot {
    Unauthenticated(#[expect(dead_code, reason = "held, not looked at")] Place),
    Authenticated(#[expect(dead_code, reason = "held, not looked at")] Share),
}

impl Peer {
    /// Makes the state of a connection from `address`. `place` is the slot for unauthenticated
    /// clients; after authentication, a slot of `users` replaces `place`.
    pub fn new(address: IpAddr, place: Place, users: Shares) -> Self {
        let slot = Mutex::new(Slot::Unauthenticated(place));
        Self { address, user: None, users, slot, next: Mutex::default() }
    }

    /// Sets the user of the verified client certificate; `None` without a certificate.
    #[must_use]
    pub fn certified(mut self, user: Option<User>) -> Self {
        if let Some(user) = &user {
            self.authenticate(user);
        }
        self.user = user;
        self
    }

    /// Returns the client's IP address.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns the user of the client's certificate; `None` without a certificate.
    pub fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }

    /// Moves the connection to a slot of `user`. Returns false, and keeps the slot for
    /// unauthenticated clients, if the user has the maximum number of connections.
    pub fn authenticate(&self, user: &User) -> bool {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Slot::Unauthenticated(_) = *slot {
            let Some(share) = self.users.enter(&user.name) else { return false };
            *slot = Slot::Authenticated(share);
        }
        true
    }

    /// Sets the future that uses the connection after HTTP ends.
    pub fn go_on_as(&self, next: impl Future<Output = ()> + Send + 'static) {
        let mut place = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        *place = Some(Next(Box::pin(next)));
    }

    /// Removes and returns the future that uses the connection after HTTP ends.
    pub fn next(&self) -> Option<BoxFuture<'static, ()>> {
        let next = self.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        next.map(|next| next.0)
    }

    /// Returns true if no request on the connection was authenticated yet.
    pub fn is_unauthenticated(&self) -> bool {
        let slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(*slot, Slot::Unauthenticated(_))
    }
}
