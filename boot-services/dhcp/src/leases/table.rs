//! Lease table: the owner of each pool address, and the choice of the next address. Pure. The time
//! of a step does not grow with the number of leases, except a walk over an exhausted pool, once a
//! minute.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use stdx::MacAddr;

use crate::config::{Config, Mode};
use crate::leases::pool::Pool;
use crate::leases::{Change, Lease, LeaseCounts, LeaseState};
use crate::reservation::Directory;

/// Seconds for which an offered address is reserved for the client.
pub(crate) const OFFER_SECS: u64 = 60;
/// Seconds for which an address found in use by an unknown station is not given.
pub(crate) const QUARANTINE_SECS: u64 = 3600;
/// Seconds for which an address stays reserved for its owner after the lease ended. Clocks differ,
/// and the answer needed time.
pub(crate) const GRACE_SECS: u64 = 30;
/// Seconds without a packet of the owner after which an address is checked before the next offer.
pub(crate) const RECHECK_SECS: u64 = 24 * 3600;

/// Maximum ended leases that one choice examines; the next choice continues behind them.
const MAX_LOOKED_AT: usize = 1024;

/// State of one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub mac: MacAddr,
    pub state: LeaseState,
    /// End of the lease that was promised to the client.
    pub expires: u64,
    pub last_seen: u64,
    /// A record gave the address.
    pub reserved: bool,
    /// End of the stored lease, never before the promise; 0 if none is stored.
    stored: u64,
    pool: usize,
}

/// An address for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    pub address: Ipv4Addr,
    /// True if the owner was silent for long: the address must be checked.
    pub unproven: bool,
}

/// Addresses in memory. Their number is limited by the pools ([`crate::MAX_POOL_ADDRESSES`]), by
/// the records outside of the pools, and by the leases of an earlier configuration.
#[derive(Debug)]
pub(crate) struct Table {
    /// A pool for each of the configuration's subnets, and one for addresses of none of them.
    pools: Vec<Pool>,
    rows: HashMap<Ipv4Addr, Row>,
    /// The address a machine had last in a subnet.
    owners: HashMap<(MacAddr, usize), Ipv4Addr>,
    changes: Vec<Change>,
}

impl Table {
    pub fn new(config: &Config, leases: &[Lease]) -> Self {
        let mut table = Self {
            pools: pools(config),
            rows: HashMap::new(),
            owners: HashMap::new(),
            changes: Vec::new(),
        };
        let mut leases = leases.to_vec();
        leases.sort_by_key(|lease| lease.last_seen);
        for lease in leases {
            let Lease { address, mac, state, expires, last_seen, reserved } = lease;
            let (pool, stored) = (table.home(address), expires.max(1));
            table.put(address, Row { mac, state, expires, last_seen, reserved, stored, pool });
        }
        table
    }

    /// Applies new pools. Leases stay, also those outside of the new pools.
    pub fn reconfigure(&mut self, config: &Config) {
        let mut rows: Vec<_> = std::mem::take(&mut self.rows).into_iter().collect();
        rows.sort_by_key(|(address, row)| (row.last_seen, *address));
        self.owners.clear();
        self.pools = pools(config);
        for (address, row) in rows {
            let pool = self.home(address);
            self.put(address, Row { pool, ..row });
        }
    }

    /// State of an address.
    pub fn at(&self, address: Ipv4Addr) -> Option<&Row> {
        self.rows.get(&address)
    }

    /// Current holder of an address, by a lease or an offer.
    pub fn holder(&self, address: Ipv4Addr, now: u64) -> Option<MacAddr> {
        let row = self.rows.get(&address).filter(|row| row.holds(now))?;
        Some(row.mac)
    }

    /// True if a record gave the address to its holder.
    pub fn is_reserved(&self, address: Ipv4Addr) -> bool {
        self.rows.get(&address).is_some_and(|row| row.reserved)
    }

    /// The address that a machine has or had in a subnet.
    pub fn owned(&self, mac: MacAddr, subnet: usize) -> Option<Ipv4Addr> {
        self.owners.get(&(mac, subnet)).copied()
    }

    /// True if the address lies in a subnet that has a pool, in its ranges or beside them.
    pub fn is_beside_pool(&self, address: Ipv4Addr) -> bool {
        self.pools[self.home(address)].has_ranges()
    }

    /// True if the subnet's pool may give the address to this machine.
    pub fn may_give(
        &self,
        address: Ipv4Addr,
        mac: MacAddr,
        subnet: usize,
        directory: &dyn Directory,
        now: u64,
    ) -> bool {
        let free = self.rows.get(&address).is_none_or(|row| row.is_free_for(mac, now));
        free && self.pools[subnet].gives(address) && !directory.is_reserved(address)
    }

    /// Chooses the address to offer: the machine's former one, else the requested one, else one
    /// never given, else the one whose lease ended longest ago. It is reserved for the machine for
    /// [`OFFER_SECS`].
    pub fn offer(
        &mut self,
        mac: MacAddr,
        subnet: usize,
        requested: Option<Ipv4Addr>,
        directory: &dyn Directory,
        now: u64,
    ) -> Option<Choice> {
        let former = self.owned(mac, subnet);
        let candidates = [former, requested].into_iter().flatten();
        let mut candidates =
            candidates.filter(|at| self.may_give(*at, mac, subnet, directory, now));
        let address = match candidates.next() {
            Some(address) => address,
            None => self.unused(subnet, directory, now)?,
        };
        let row = self.rows.get(&address).copied();
        let proven = |row: Row| row.mac == mac && now.saturating_sub(row.last_seen) <= RECHECK_SECS;
        if !row
            .is_some_and(|row| row.mac == mac && row.state == LeaseState::Bound && row.holds(now))
        {
            let expires = now + OFFER_SECS;
            let (state, reserved) = (LeaseState::Offered, false);
            let (last_seen, stored, pool) = (now, 0, subnet);
            self.put(address, Row { mac, state, expires, last_seen, reserved, stored, pool });
        }
        Some(Choice { address, unproven: !row.is_some_and(proven) })
    }

    fn unused(&mut self, subnet: usize, directory: &dyn Directory, now: u64) -> Option<Ipv4Addr> {
        let rows = &self.rows;
        let is_free = |at| !rows.contains_key(&at) && !directory.is_reserved(at);
        if let Some(address) = self.pools[subnet].next_unused(now, is_free) {
            return Some(address);
        }
        for _ in 0..MAX_LOOKED_AT {
            let (ended, address) = self.pools[subnet].ends.first().copied()?;
            if ended > now {
                return None;
            }
            if self.pools[subnet].gives(address) && !directory.is_reserved(address) {
                return Some(address);
            }
            self.forget(address);
        }
        None
    }

    /// Assigns the address for `lease_secs`. The caller must have checked that this is allowed.
    ///
    /// The stored lease ends one lease time later than promised. A machine renews each half lease
    /// time, so only every third renewal must be written. The promise counts in memory. After a
    /// restart a lease lasts longer than promised, never shorter.
    pub fn bind(&mut self, address: Ipv4Addr, mac: MacAddr, lease_secs: u32, now: u64) {
        self.give(address, mac, lease_secs, false, now);
    }

    /// Assigns an address like [`Self::bind`]; the machine's record names it.
    pub fn bind_reserved(&mut self, address: Ipv4Addr, mac: MacAddr, lease_secs: u32, now: u64) {
        self.give(address, mac, lease_secs, true, now);
    }

    /// Drops a lease that a record gave to a machine, when the record names another machine now and
    /// no station answered at the address. False for another kind of lease.
    pub fn give_way(&mut self, address: Ipv4Addr, holder: MacAddr) -> bool {
        let gives_way =
            self.rows.get(&address).is_some_and(|row| row.reserved && row.mac == holder);
        if gives_way {
            self.forget(address);
        }
        gives_way
    }

    fn give(&mut self, address: Ipv4Addr, mac: MacAddr, lease_secs: u32, reserved: bool, now: u64) {
        let expires = now + u64::from(lease_secs) + GRACE_SECS;
        let renewed = self.rows.get(&address).filter(|row| {
            let is_same = row.mac == mac && row.reserved == reserved;
            is_same && row.state == LeaseState::Bound && row.stored >= expires
        });
        let stored = match renewed {
            Some(row) => row.stored,
            None => expires + u64::from(lease_secs),
        };
        let write = renewed.is_none();
        let (state, pool) = (LeaseState::Bound, self.home(address));
        self.put(address, Row { mac, state, expires, last_seen: now, reserved, stored, pool });
        if write {
            self.note(address);
        }
    }

    /// Removes an offer that the machine did not accept.
    pub fn withdraw(&mut self, mac: MacAddr, subnet: usize, now: u64) {
        let Some(address) = self.owned(mac, subnet) else { return };
        if let Some(row) = self.rows.get(&address).copied()
            && row.state == LeaseState::Offered
        {
            self.put(address, Row { expires: now, ..row });
        }
    }

    /// Takes an address back from its owner; false when it is not the owner's.
    pub fn release(&mut self, address: Ipv4Addr, mac: MacAddr, now: u64) -> bool {
        let Some(row) = self.rows.get(&address).copied() else { return false };
        let owned = row.mac == mac && row.state == LeaseState::Bound;
        if owned {
            let (state, stored) = (LeaseState::Released, now.max(1));
            self.put(address, Row { state, expires: now, last_seen: now, stored, ..row });
            self.note(address);
        }
        owned
    }

    /// Puts an address that this machine holds, and another station uses, in quarantine for
    /// [`QUARANTINE_SECS`]; false if the machine does not hold it.
    pub fn quarantine(&mut self, address: Ipv4Addr, mac: MacAddr, now: u64) -> bool {
        let Some(row) = self.rows.get(&address).copied() else { return false };
        let is_holder = row.mac == mac && row.holds(now) && row.state != LeaseState::Declined;
        if is_holder {
            let expires = now + QUARANTINE_SECS;
            let state = LeaseState::Declined;
            self.put(address, Row { state, expires, stored: expires, ..row });
            self.note(address);
        }
        is_holder
    }

    /// Removes ended leases of addresses that belong to no subnet any more.
    pub fn sweep(&mut self, now: u64) {
        let outside = self.pools.len() - 1;
        while let Some((ended, address)) = self.pools[outside].ends.first().copied()
            && ended <= now
        {
            self.forget(address);
        }
    }

    /// The changes since the last call, to be committed in this order.
    pub fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// Number of addresses in the table.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Counts of the addresses that are given away.
    pub fn counts(&self, now: u64) -> LeaseCounts {
        let mut counts = LeaseCounts::default();
        for (address, row) in &self.rows {
            if row.state == LeaseState::Bound && row.holds(now) {
                counts.leases += 1;
                counts.pooled += usize::from(self.pools.iter().any(|pool| pool.gives(*address)));
            }
        }
        counts
    }

    /// Every lease, as it is in memory.
    pub fn leases(&self) -> impl Iterator<Item = Lease> + '_ {
        self.rows.iter().map(|(address, row)| row.lease(*address, row.expires))
    }

    fn home(&self, address: Ipv4Addr) -> usize {
        let homes = self.pools.iter().enumerate().filter(|(_, pool)| pool.is_home_of(address));
        let narrowest = homes.max_by_key(|(_, pool)| pool.length());
        narrowest.map_or(self.pools.len() - 1, |(index, _)| index)
    }

    fn put(&mut self, address: Ipv4Addr, row: Row) {
        if let Some(old) = self.rows.insert(address, row) {
            self.pools[old.pool].ends.remove(&(old.expires, address));
            self.disown(address, old);
        }
        self.pools[row.pool].ends.insert((row.expires, address));
        if row.state != LeaseState::Declined {
            self.owners.insert((row.mac, row.pool), address);
        }
    }

    fn forget(&mut self, address: Ipv4Addr) {
        if let Some(row) = self.rows.remove(&address) {
            self.pools[row.pool].ends.remove(&(row.expires, address));
            self.disown(address, row);
            if row.stored > 0 {
                self.changes.push(Change::Remove(address));
            }
        }
    }

    fn disown(&mut self, address: Ipv4Addr, row: Row) {
        if self.owned(row.mac, row.pool) == Some(address) {
            self.owners.remove(&(row.mac, row.pool));
        }
    }

    fn note(&mut self, address: Ipv4Addr) {
        if let Some(row) = self.rows.get(&address) {
            self.changes.push(Change::Put(row.lease(address, row.stored)));
        }
    }
}

impl Row {
    /// True if the address may not be given to another machine.
    pub fn holds(&self, now: u64) -> bool {
        self.expires > now
    }

    fn is_free_for(&self, mac: MacAddr, now: u64) -> bool {
        !self.holds(now) || (self.mac == mac && self.state != LeaseState::Declined)
    }

    fn lease(&self, address: Ipv4Addr, expires: u64) -> Lease {
        let Self { mac, state, last_seen, reserved, .. } = *self;
        Lease { address, mac, state, expires, last_seen, reserved }
    }
}

fn pools(config: &Config) -> Vec<Pool> {
    let gives = config.mode == Mode::Pool;
    let pools = config.subnets.iter().map(|subnet| Pool::new(subnet, config.server, gives));
    pools.chain([Pool::default()]).collect()
}

#[cfg(test)]
mod tests;
