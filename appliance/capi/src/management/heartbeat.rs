//! Heartbeat of this device in a management cluster: renews the Lease of the box, and tells if
//! another device of the same box serves the management cluster.

use std::time::Duration;

use api::meta::ObjectKey;
use jiff::Timestamp;
use objects::{ObjectError, Objects};
use serde_json::Value;
use stdx::{Hint as _, chain};
use tokio::time::{Instant, timeout};

use super::lease::{self, Claim, Device, Holder, LEASE};
use crate::remote::Cause;

/// Interval of renewals, and of reads of a Lease that another device holds.
const INTERVAL: Duration = Duration::from_secs(10);
/// Wait after a failed attempt.
const RETRY: Duration = Duration::from_secs(2);
/// Maximum duration of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Time after the last renewal at which the work must stop, because another device may take the
/// Lease after [`lease::DURATION`].
const DEADLINE: Duration = Duration::from_secs(40);

/// State of this device in a management cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activity {
    /// The Lease was not read yet, or cannot be renewed; with the error.
    Unknown(String),
    /// This device holds the Lease.
    Holds,
    /// The management cluster does not let the box write a Lease; with the error. The box serves
    /// the cluster, because it may have the rights of an earlier release.
    NoLease(String),
    /// Another device holds the Lease.
    Waits {
        /// Device that holds the Lease.
        holder: Holder,
        /// True if `spec.takeOverFrom` names the holder.
        is_named: bool,
    },
}

/// Renewal of the Lease of a box in one management cluster.
pub struct Heartbeat {
    device: Device,
    key: ObjectKey,
    /// Holder that this device may replace, from `spec.takeOverFrom`.
    take_over_from: Option<String>,
    /// Lease of this device, as it was last written.
    own: Option<Value>,
    /// Content of the Lease of another device, and the time since which it has not changed.
    other: Option<(Value, Instant)>,
    /// Time before the last successful write.
    renewed: Option<Instant>,
    /// Time of the next attempt; `None` for at once.
    due: Option<Instant>,
    activity: Activity,
}

impl Heartbeat {
    /// Creates the heartbeat of a connection that serves `namespace`, or all namespaces.
    pub fn new(device: Device, namespace: Option<&str>, take_over_from: Option<String>) -> Self {
        let key = lease::key(&device.box_id, namespace);
        let activity = Activity::Unknown("the Lease was not read yet".to_owned());
        let (own, other, renewed, due) = (None, None, None, None);
        Self { device, key, take_over_from, own, other, renewed, due, activity }
    }

    /// Returns the state of this device.
    pub fn activity(&self) -> &Activity {
        &self.activity
    }

    /// Returns true if this device must serve the management cluster.
    pub fn is_active(&self) -> bool {
        match self.activity {
            Activity::Holds | Activity::NoLease(_) => true,
            Activity::Unknown(_) => self.renewed.is_some_and(|at| at.elapsed() < DEADLINE),
            Activity::Waits { .. } => false,
        }
    }

    /// Reads or renews the Lease, if that is due.
    pub async fn step(&mut self, remote: &dyn Objects, now: Timestamp) {
        if self.due.is_some_and(|due| Instant::now() < due) {
            return;
        }
        let started = Instant::now();
        let result = match timeout(REQUEST_TIMEOUT, self.attempt(remote, now)).await {
            Ok(result) => result,
            Err(_) => Err(LeaseFailure::Again(format!("no response in {REQUEST_TIMEOUT:?}"))),
        };
        let wait = match &result {
            Ok(_) | Err(LeaseFailure::Right(_)) => INTERVAL,
            Err(LeaseFailure::Again(_)) => RETRY,
        };
        self.due = Some(Instant::now() + wait);
        let activity = match result {
            Ok(activity) => activity,
            Err(LeaseFailure::Right(why)) => Activity::NoLease(why),
            Err(LeaseFailure::Again(why)) => Activity::Unknown(why),
        };
        match activity {
            Activity::Holds => self.renewed = Some(started),
            Activity::Unknown(_) => {}
            Activity::Waits { .. } | Activity::NoLease(_) => self.renewed = None,
        }
        self.activity = activity;
    }

    /// Gives the Lease up, so that another device may take it at once. Best effort.
    pub async fn release(&mut self, remote: &dyn Objects) {
        if let Some(own) = self.own.take() {
            let released = remote.update(LEASE, lease::released(own));
            if let Ok(Err(error)) = timeout(REQUEST_TIMEOUT, released).await {
                tracing::debug!(%error, "cannot release a Lease");
            }
        }
    }

    async fn attempt(
        &mut self,
        remote: &dyn Objects,
        now: Timestamp,
    ) -> Result<Activity, LeaseFailure> {
        let stored = match self.own.take() {
            Some(own) => own,
            None => match remote.get(LEASE, &self.key).await {
                Ok(stored) => stored,
                Err(ObjectError::NotFound(_)) => {
                    let new = lease::created(&self.key, &self.device.holder, now);
                    self.own = Some(remote.create(LEASE, new).await.map_err(of_creation)?);
                    return Ok(Activity::Holds);
                }
                Err(error) => return Err(error.into()),
            },
        };
        let unchanged = self.unchanged(&stored);
        let claim = lease::claim(&stored, &self.device.holder, unchanged);
        let named = self.take_over_from.as_deref();
        if !claim.may_hold(named)
            && let Claim::Other(holder) = claim
        {
            let is_named = named == Some(&holder.name);
            return Ok(Activity::Waits { holder, is_named });
        }
        let held = lease::held(stored, &self.device.holder, now);
        self.own = Some(remote.update(LEASE, held).await?);
        self.other = None;
        Ok(Activity::Holds)
    }

    /// Returns the time for which the Lease has not changed while this device looked.
    fn unchanged(&mut self, lease: &Value) -> Duration {
        match &self.other {
            Some((content, since)) if *content == lease["spec"] => since.elapsed(),
            _ => {
                self.other = Some((lease["spec"].clone(), Instant::now()));
                Duration::ZERO
            }
        }
    }
}

/// Reason why a Lease was not written.
enum LeaseFailure {
    /// The box lacks the right, or the namespace does not exist.
    Right(String),
    /// The next attempt may succeed.
    Again(String),
}

impl From<ObjectError> for LeaseFailure {
    fn from(error: ObjectError) -> Self {
        let text = chain(&error);
        if Cause::of(error.hint()) == Cause::Rights { Self::Right(text) } else { Self::Again(text) }
    }
}

/// No other device has a Lease that does not exist. Its namespace may not exist either, if pairing
/// did not create it.
fn of_creation(error: ObjectError) -> LeaseFailure {
    match error {
        ObjectError::AlreadyExists(_) => LeaseFailure::Again(chain(&error)),
        error => LeaseFailure::Right(chain(&error)),
    }
}

#[cfg(test)]
mod tests;
