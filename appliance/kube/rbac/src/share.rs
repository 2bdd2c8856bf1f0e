//! Limit on concurrent requests, in total and per client, so that one client cannot block others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of concurrent slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum for all clients together.
    pub total: usize,
    /// Maximum for one client.
    pub each: usize,
}

/// Pool of slots, such as for requests, watches or connections. Clones share the slots.
#[derive(Debug, Clone)]
pub struct Shares {
    limits: Limits,
    in_use: Arc<Mutex<SlotsInUse>>,
}

/// Number of slots in use, in total and per client. Clients without a slot have no entry.
#[derive(Debug, Default)]
struct SlotsInUse {
    total: usize,
    each: HashMap<String, usize>,
}

/// Slot of a client; dropping it frees the slot.
#[derive(Debug)]
pub struct Share {
    client: String,
    in_use: Arc<Mutex<SlotsInUse>>,
}

impl Shares {
    /// Makes a pool of free slots with the limits `limits`.
    pub fn new(limits: Limits) -> Self {
        Self { limits, in_use: Arc::default() }
    }

    /// Takes a slot for `client`; `None` if the client has its maximum, or if all slots are taken.
    pub fn enter(&self, client: &str) -> Option<Share> {
        let mut in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        let has = in_use.each.get(client).copied().unwrap_or(0);
        if has >= self.limits.each || in_use.total >= self.limits.total {
            return None;
        }
        in_use.total += 1;
        in_use.each.insert(client.to_owned(), has + 1);
        Some(Share { client: client.to_owned(), in_use: Arc::clone(&self.in_use) })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        in_use.total = in_use.total.saturating_sub(1);
        match in_use.each.get_mut(&self.client) {
            Some(has) if *has > 1 => *has -= 1,
            _ => {
                in_use.each.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Limits, Shares};

    #[test]
    fn nobody_takes_all_places() {
        let shares = Shares::new(Limits { total: 3, each: 2 });
        let first = shares.enter("a").unwrap();
        let second = shares.enter("a").unwrap();
        assert!(shares.enter("a").is_none(), "a has its share");
        let third = shares.enter("b").unwrap();
        assert!(shares.enter("c").is_none(), "all are taken");
        drop(first);
        assert!(shares.enter("a").is_some());
        drop((second, third));
        let in_use = shares.in_use.lock().unwrap();
        assert!(in_use.each.is_empty() && in_use.total == 0);
    }
}
