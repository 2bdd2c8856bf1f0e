//! Lease table: the owner of each pool address, and the choice of the next address. Pure. A step's
//! time does not grow with the number of leases, except a search of an exhausted pool, once a
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
/// Seconds for which an address that an unknown station uses is not assigned.
pub(crate) const QUARANTINE_SECS: u64 = 3600;
/// Seconds for which an address stays with its owner after the end of the lease, because clocks
/// differ and the answer takes time to arrive.
pub(crate) const GRACE_SECS: u64 = 30;
/// Seconds without a packet of the owner after which an address is checked before its next offer.
pub(crate) const RECHECK_SECS: u64 = 24 * 3600;

/// Maximum ended leases that one choice of an address examines; the next choice continues.
const MAX_LOOKED_AT: usize = 1024;

/// State of one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub mac: MacAddr,
    pub state: LeaseState,
    /// End of the lease as promised to the client, plus [`GRACE_SECS`]; in lease clock seconds.
    pub expires: u64,
    pub last_seen: u64,
    /// True if the address came from a record.
    pub reserved: bool,
    /// End of the lease as stored, never before the promised end; 0 if the lease is not stored.
    stored: u64,
    pool: usize,
}

/// Address chosen for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    pub address: Ipv4Addr,
    /// True if the address must be checked before the offer: it is new to the machine, or the
    /// machine sent no packet for [`RECHECK_SECS`].
    pub unproven: bool,
}

/// Rows of all addresses with a lease or an offer. Their number is limited by the pools
/// ([`crate::MAX_POOL_ADDRESSES`]), by the records outside of the pools, and by the leases of an
/// earlier configuration.
#[derive(Debug)]
pub(crate) struct Table {
    /// One pool for each subnet of the configuration; the last pool is for addresses in no subnet.
    pools: Vec<Pool>,
    rows: HashMap<Ipv4Addr, Row>,
    /// Last address of a machine in a subnet, by MAC and index of the subnet.
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

    /// Applies new pools. All leases stay, even outside of the new pools.
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

    /// Returns the row of an address; `None` if it has no lease and no offer.
    pub fn at(&self, address: Ipv4Addr) -> Option<&Row> {
        self.rows.get(&address)
    }

    /// Returns the machine that has a lease or an offer of the address at `now`.
    pub fn holder(&self, address: Ipv4Addr, now: u64) -> Option<MacAddr> {
        let row = self.rows.get(&address).filter(|row| row.holds(now))?;
        Some(row.mac)
    }

    /// Returns true if the address came from a record.
    pub fn is_reserved(&self, address: Ipv4Addr) -> bool {
        self.rows.get(&address).is_some_and(|row| row.reserved)
    }

    /// Returns the address that a machine has or had in a subnet.
    pub fn owned(&self, mac: MacAddr, subnet: usize) -> Option<Ipv4Addr> {
        self.owners.get(&(mac, subnet)).copied()
    }

    /// Returns true if the address is in a subnet that has a pool, inside or outside of its ranges.
    pub fn is_beside_pool(&self, address: Ipv4Addr) -> bool {
        self.pools[self.home(address)].has_ranges()
    }

    /// Returns true if the subnet's pool may assign the address to this machine.
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

    /// Chooses the address to offer: the machine's last one, else the requested one, else an unused
    /// one, else the one whose lease ended longest ago. The address is reserved for the machine for
    /// [`OFFER_SECS`]. `None`: the pool is exhausted.
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
    /// The stored lease ends one lease time later than promised. A machine renews after half a
    /// lease time, so only every third renewal is written. The promised end counts in memory. After
    /// a restart a lease lasts longer than promised, never shorter.
    pub fn bind(&mut self, address: Ipv4Addr, mac: MacAddr, lease_secs: u32, now: u64) {
        self.give(address, mac, lease_secs, false, now);
    }

    /// Assigns an address that the machine's record names, like [`Self::bind`].
    pub fn bind_reserved(&mut self, address: Ipv4Addr, mac: MacAddr, lease_secs: u32, now: u64) {
        self.give(address, mac, lease_secs, true, now);
    }

    /// Removes the lease of `address` and returns true if `holder` had a reservation of `address`.
    /// The caller checks that another machine now has the reservation and no station uses it.
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

    /// Ends an offer that the machine did not accept.
    pub fn withdraw(&mut self, mac: MacAddr, subnet: usize, now: u64) {
        let Some(address) = self.owned(mac, subnet) else { return };
        if let Some(row) = self.rows.get(&address).copied()
            && row.state == LeaseState::Offered
        {
            self.put(address, Row { expires: now, ..row });
        }
    }

    /// Ends the machine's lease of an address; returns false if the machine has no such lease.
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

    /// Puts an address in quarantine for [`QUARANTINE_SECS`], because another station uses it.
    /// Returns false if `mac` does not hold the address.
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

    /// Removes ended leases of addresses that are in no subnet.
    pub fn sweep(&mut self, now: u64) {
        let outside = self.pools.len() - 1;
        while let Some((ended, address)) = self.pools[outside].ends.first().copied()
            && ended <= now
        {
            self.forget(address);
        }
    }

    /// Returns the changes since the last call, to be committed in this order.
    pub fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// Returns the number of addresses in the table.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns the number of bound leases at `now`, in total and in current pools, without offers.
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

    /// Returns all leases and offers, with the promised ends.
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
    /// Returns true if the lease, offer or quarantine has not ended: the address is taken.
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
