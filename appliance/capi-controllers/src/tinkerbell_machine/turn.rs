//! Order in which several boxes act on a machine that no box has registered yet.
//!
//! Each box of a management cluster receives each new machine. The status of the TinkerbellCluster
//! lists the boxes of each failure domain. A machine of a failure domain is left to the boxes of
//! this domain. Of several boxes, a hash of the machine and the name of a box decides which one is
//! the first, so that all boxes know the order without a request. The next box acts when the
//! machine reports that the first has no Hardware, or after [`BOX_TIME`]: the first box may be
//! switched off. A box without the domain acts, and so reports the lack of Hardware, only after
//! [`DOMAIN_TIME`]. Two boxes that act at once do no harm, because only one can register.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use api::infrastructure::FailureDomain;
use api::meta::ObjectKey;

use super::conditions::HARDWARE;
use super::observe::Observed;
use crate::conditions::find;
use crate::tinkerbell_cluster::BOXES;
use hardware_choice::{choose, failure_domain};

/// Time that each earlier box of the order has for a machine.
pub const BOX_TIME: Duration = Duration::from_secs(10);
/// Time that the boxes of the failure domain have for a machine. A box without the domain can only
/// report that it has no Hardware, which these boxes do earlier unless they are switched off.
const DOMAIN_TIME: Duration = Duration::from_secs(60);
/// Maximum number of machines that wait for an earlier box: all that a watch can have.
const WAITING_MAX: usize = 2_000;

/// Returns the time until this box may act on the machine; `None` if it may act now.
pub fn wait(observed: &Observed) -> Option<Duration> {
    let is_first = !is_open(observed) || is_reported(observed) || has_named(observed);
    let due = if is_first { Duration::ZERO } else { due(observed) };
    due.checked_sub(observed.waited).filter(|wait| !wait.is_zero())
}

/// Returns true for a machine whose failure domain only other boxes have. Needs no Hardware. As
/// soon as these boxes report that they have no Hardware, this box looks for its own, which may be
/// newer than the list of the domains.
pub fn is_of_other_boxes(observed: &Observed) -> bool {
    let is_left = !observed.request.has_name() && is_outside(observed, &boxes(observed));
    is_left && wait(observed).is_some()
}

/// Returns the time that earlier boxes have for the machine.
fn due(observed: &Observed) -> Duration {
    let own = &observed.request.box_name;
    let mut boxes = boxes(observed);
    let start = if is_outside(observed, &boxes) {
        boxes = all_boxes(&domains(observed));
        DOMAIN_TIME
    } else {
        Duration::ZERO
    };
    boxes.insert(own.clone());
    let uid = observed.machine.metadata.uid.as_bytes();
    let mut order: Vec<&String> = boxes.iter().collect();
    order.sort_by_key(|name| hash(&[uid, name.as_bytes()]));
    let place = order.iter().position(|name| *name == own).unwrap_or_default();
    start + BOX_TIME * u32::try_from(place).unwrap_or(u32::MAX)
}

/// Returns true if the request names a Hardware of this box.
fn has_named(observed: &Observed) -> bool {
    let request = &observed.request;
    request.has_name() && choose(request, &observed.hosts).error.is_none()
}

/// Returns true if the machine has a failure domain of `boxes` that this box does not have.
fn is_outside(observed: &Observed, boxes: &BTreeSet<String>) -> bool {
    let request = &observed.request;
    let has_domain =
        |host| failure_domain(host, &request.box_name) == request.failure_domain.as_str();
    let listed = of_domain(&domains(observed), &request.failure_domain);
    !listed.is_empty()
        && !boxes.contains(&request.box_name)
        && !observed.hosts.iter().any(has_domain)
}

/// Returns true for a machine that any box may register.
fn is_open(observed: &Observed) -> bool {
    let is_ours = |host| observed.request.owns(host) || observed.request.follows(host);
    !observed.is_registered()
        && !observed.is_of_stock()
        && observed.machine.metadata.deletion_timestamp.is_none()
        && observed.host.is_none()
        && !observed.hosts.iter().any(is_ours)
}

/// Returns true if a box has reported that it has no Hardware for the machine.
fn is_reported(observed: &Observed) -> bool {
    find(&observed.machine.status.conditions, HARDWARE).is_some_and(|it| it.status != "True")
}

fn domains(observed: &Observed) -> BTreeMap<String, FailureDomain> {
    let cluster = observed.infrastructure.as_ref();
    cluster.map(|it| it.status.failure_domains.by_name()).unwrap_or_default()
}

/// Returns the boxes of the requested failure domain, or all if none has it.
fn boxes(observed: &Observed) -> BTreeSet<String> {
    let domains = domains(observed);
    let of_requested = of_domain(&domains, &observed.request.failure_domain);
    if of_requested.is_empty() { all_boxes(&domains) } else { of_requested }
}

fn all_boxes(domains: &BTreeMap<String, FailureDomain>) -> BTreeSet<String> {
    domains.keys().flat_map(|name| of_domain(domains, name)).collect()
}

fn of_domain(domains: &BTreeMap<String, FailureDomain>, name: &str) -> BTreeSet<String> {
    let boxes = domains.get(name).and_then(|domain| domain.attributes.get(BOXES));
    let names = boxes.map_or("", String::as_str).split(',').filter(|it| !it.is_empty());
    names.map(str::to_owned).collect()
}

/// Returns a hash that is the same in every release: FNV-1a with 64 bits, mixed at the end because
/// names often differ in the last byte only.
fn hash(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.iter().chain(&[0]));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Machines that wait for an earlier box, with the time since when.
#[derive(Debug, Default)]
pub struct Waiting(Mutex<BTreeMap<ObjectKey, Since>>);

#[derive(Debug)]
struct Since {
    uid: String,
    /// True if all objects that an installation needs existed.
    is_complete: bool,
    at: Instant,
}

impl Waiting {
    /// Returns how long the box has known the machine `uid` in this state.
    pub fn time(&self, key: &ObjectKey, uid: &str, is_complete: bool, now: Instant) -> Duration {
        let mut all = self.lock();
        if let Some(since) = all.get(key)
            && (&*since.uid, since.is_complete) == (uid, is_complete)
        {
            return now.saturating_duration_since(since.at);
        }
        if all.len() >= WAITING_MAX && !all.contains_key(key) {
            // Without a record the machine would wait forever.
            return Duration::MAX;
        }
        all.insert(key.clone(), Since { uid: uid.to_owned(), is_complete, at: now });
        Duration::ZERO
    }

    /// Forgets a machine that does not wait.
    pub fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Since>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
