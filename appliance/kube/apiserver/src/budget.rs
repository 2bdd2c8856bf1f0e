//! Limits on the bytes of requests and responses in memory, in total and per client. A request
//! above a limit gets 429. Above the total, a reserve remains for clients that hold at most 1 MiB.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum bytes that a client may hold and still use the reserve: enough for an ordinary response.
const RESERVED_EACH: usize = 1024 * 1024;

/// Limits on bytes in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteLimits {
    /// Maximum for all clients together.
    pub total: usize,
    /// Maximum for one client.
    pub each: usize,
    /// Bytes beyond `total` for clients that hold at most 1 MiB.
    pub reserve: usize,
}

/// Counter of bytes in memory, in total and per client; clones share the counts.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    limits: ByteLimits,
    held: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    total: usize,
    each: HashMap<Arc<str>, usize>,
}

/// Bytes counted for one request; subtracted from the counts on drop.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    client: Arc<str>,
    bytes: usize,
    budget: Budget,
}

impl Budget {
    pub fn new(limits: ByteLimits) -> Self {
        Self { limits, held: Arc::default() }
    }

    /// Returns a holder of zero bytes for a request of `client`; `None` if a limit is reached.
    pub fn enter(&self, client: &str) -> Option<HeldBytes> {
        let client = Arc::from(client);
        let fits = self.fits(&self.table(), &client, 1);
        fits.then(|| HeldBytes { client, bytes: 0, budget: self.clone() })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fits(&self, table: &Table, client: &Arc<str>, bytes: usize) -> bool {
        let ByteLimits { total, each, reserve } = self.limits;
        let own = table.each.get(client).copied().unwrap_or(0) + bytes;
        let total = if own <= RESERVED_EACH { total + reserve } else { total };
        own <= each && table.total + bytes <= total
    }

    /// Returns the bytes that are counted now, of all clients.
    #[cfg(test)]
    pub fn total(&self) -> usize {
        self.table().total
    }
}

impl HeldBytes {
    /// Counts `bytes` more. Returns false and counts nothing if a limit would be exceeded.
    pub fn take(&mut self, bytes: usize) -> bool {
        let mut table = self.budget.table();
        let fits = self.budget.fits(&table, &self.client, bytes);
        if fits {
            table.add(&self.client, bytes);
            self.bytes += bytes;
        }
        fits
    }

    /// Counts `bytes` more even above the limits: for bytes that are already in memory.
    pub fn force(&mut self, bytes: usize) {
        self.budget.table().add(&self.client, bytes);
        self.bytes += bytes;
    }

    /// Subtracts `bytes` of this request from the counts, because they were freed.
    pub fn give_back(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.budget.table().remove(&self.client, bytes);
        self.bytes -= bytes;
    }

    /// Returns a new holder with zero bytes for the same client.
    pub fn another(&self) -> Self {
        Self { client: Arc::clone(&self.client), bytes: 0, budget: self.budget.clone() }
    }
}

impl Table {
    fn add(&mut self, client: &Arc<str>, bytes: usize) {
        if bytes > 0 {
            self.total += bytes;
            *self.each.entry(Arc::clone(client)).or_default() += bytes;
        }
    }

    fn remove(&mut self, client: &Arc<str>, bytes: usize) {
        self.total -= bytes;
        if let Some(own) = self.each.get_mut(client) {
            *own -= bytes;
            if *own == 0 {
                self.each.remove(client);
            }
        }
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::{Budget, ByteLimits, RESERVED_EACH};

    const MIB: usize = 1024 * 1024;

    #[test]
    fn who_holds_much_leaves_others_their_part() {
        let limits = ByteLimits { total: 8 * MIB, each: 6 * MIB, reserve: 2 * MIB };
        let budget = Budget::new(limits);
        let mut greedy = budget.enter("greedy").unwrap();
        assert!(greedy.take(6 * MIB) && !greedy.take(1));
        assert!(budget.enter("greedy").is_none(), "it has its share");
        let mut second = budget.enter("second").unwrap();
        assert!(second.take(2 * MIB) && !second.take(1), "all is held");
        let mut modest = budget.enter("modest").unwrap();
        assert!(modest.take(RESERVED_EACH) && !modest.take(1), "an ordinary answer fits");
        let mut more = budget.enter("one more").unwrap();
        assert!(more.take(RESERVED_EACH) && budget.enter("another").is_none());
        greedy.give_back(MIB);
        assert!(budget.enter("greedy").is_none() && budget.enter("another").is_some());
        drop((greedy, second, modest, more));
        assert_eq!(budget.total(), 0);
        assert!(budget.table().each.is_empty());
    }

    #[test]
    fn what_is_there_already_counts_though_it_is_too_much() {
        let budget = Budget::new(ByteLimits { total: 10, each: 10, reserve: 0 });
        let mut held = budget.enter("a").unwrap();
        held.force(30);
        assert!(budget.enter("b").is_none());
        held.give_back(25);
        assert!(budget.enter("b").unwrap().take(5));
    }
}
