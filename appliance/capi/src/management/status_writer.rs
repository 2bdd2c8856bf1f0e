//! Writer of the status of one ManagementCluster, with limits for the number of writes.

use std::sync::Arc;
use std::time::Duration;

use api::management_cluster::{MANAGEMENT_CLUSTER, ManagementCluster, ManagementClusterStatus};
use api::meta::ObjectKey;
use jiff::{SignedDuration, Timestamp};
use objects::{ObjectError, Objects};
use stdx::Clock;
use tokio::time::Instant;

use super::report::{self, Observation};

/// Minimum time between two writes.
const WRITE_INTERVAL: Duration = Duration::from_secs(5);
/// Interval of writes of `lastContact` while nothing else changes.
const CONTACT_INTERVAL: SignedDuration = SignedDuration::from_secs(300);

/// Writer of one status.
pub struct StatusWriter {
    objects: Arc<dyn Objects>,
    clock: Arc<dyn Clock>,
    key: ObjectKey,
    uid: String,
    written: Option<Instant>,
}

impl StatusWriter {
    /// Creates a writer for the ManagementCluster with this UID.
    pub fn new(
        objects: Arc<dyn Objects>,
        clock: Arc<dyn Clock>,
        key: ObjectKey,
        uid: String,
    ) -> Self {
        Self { objects, clock, key, uid, written: None }
    }

    /// Writes the status if it changed and the last write is long enough ago.
    pub async fn write(&mut self, seen: &Observation) {
        if self.written.is_some_and(|at| at.elapsed() < WRITE_INTERVAL) {
            return;
        }
        match self.try_write(seen).await {
            Ok(true) => self.written = Some(Instant::now()),
            // Deleted or changed meanwhile: the next look reads it again.
            Ok(false) | Err(ObjectError::NotFound(_) | ObjectError::Conflict(_)) => {}
            Err(error) => {
                tracing::warn!(cluster = %self.key, %error, "cannot write a status");
                self.written = Some(Instant::now());
            }
        }
    }

    async fn try_write(&self, seen: &Observation) -> Result<bool, ObjectError> {
        let objects = self.objects.as_ref();
        let cluster: ManagementCluster =
            objects::fetch(objects, MANAGEMENT_CLUSTER, &self.key).await?;
        if cluster.metadata.uid != self.uid {
            return Ok(false);
        }
        let now = self.clock.now();
        let status = report::status(&cluster.status, cluster.metadata.generation, seen, now);
        if !is_due(&cluster.status, &status, now) {
            return Ok(false);
        }
        objects::write_status(objects, MANAGEMENT_CLUSTER, &cluster.metadata, &status).await?;
        Ok(true)
    }
}

fn is_due(old: &ManagementClusterStatus, new: &ManagementClusterStatus, now: Timestamp) -> bool {
    let at = |status: &ManagementClusterStatus| ManagementClusterStatus {
        last_contact: None,
        ..status.clone()
    };
    if at(old) != at(new) {
        return true;
    }
    let is_old = |last: Timestamp| now.duration_since(last).abs() >= CONTACT_INTERVAL;
    new.last_contact != old.last_contact && old.last_contact.is_none_or(is_old)
}

#[cfg(test)]
mod tests {
    use api::management_cluster::ManagementClusterStatus;
    use jiff::Timestamp;

    use super::is_due;

    #[test]
    fn a_contact_alone_is_written_every_five_minutes() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let contact = |second: i64| ManagementClusterStatus {
            last_contact: Some(at(second)),
            ..ManagementClusterStatus::default()
        };
        assert!(is_due(&ManagementClusterStatus::default(), &contact(0), at(0)));
        assert!(!is_due(&contact(0), &contact(299), at(299)));
        assert!(is_due(&contact(0), &contact(300), at(300)));
        // The clock of the box was set back.
        assert!(is_due(&contact(1_000), &contact(1), at(1)));
        assert!(!is_due(&contact(0), &contact(0), at(1_000)));
        let moved = ManagementClusterStatus { server: Some("a".to_owned()), ..contact(0) };
        assert!(is_due(&contact(0), &moved, at(0)));
    }
}
