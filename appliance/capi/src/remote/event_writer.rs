//! Writer of core/v1 Events to the management cluster. Callers never wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use api::core::{EVENT, ObjectEvent};
use objects::ObjectError;
use serde_json::Value;
use stdx::Backoff;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::connection::Connection;

/// Maximum number of events in the queue. Further events are dropped and counted.
const QUEUE_MAX: usize = 256;
/// Maximum attempts to write one event: some 10 minutes of an outage.
const TRIES_MAX: u32 = 14;
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// Maximum length of a message, in bytes (Kubernetes, validation of Events).
const MESSAGE_BYTES_MAX: usize = 1024;
/// Namespace of events about cluster-scoped objects.
const CLUSTER_SCOPED: &str = "default";

/// Sender of events; clones share one queue.
#[derive(Clone)]
pub struct Queue {
    sender: mpsc::Sender<ObjectEvent>,
    dropped: Arc<AtomicU64>,
}

impl Queue {
    /// Adds an event, or counts it as dropped if the queue is full.
    pub fn push(&self, event: ObjectEvent) {
        if self.sender.try_send(event).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Task that writes the events of a [`super::RemoteObjects`].
pub struct EventWriter {
    connection: Connection,
    receiver: mpsc::Receiver<ObjectEvent>,
    dropped: Arc<AtomicU64>,
}

/// Creates a queue and its writer.
pub fn queue(connection: Connection) -> (Queue, EventWriter) {
    let (sender, receiver) = mpsc::channel(QUEUE_MAX);
    let dropped = Arc::<AtomicU64>::default();
    let queue = Queue { sender, dropped: Arc::clone(&dropped) };
    (queue, EventWriter { connection, receiver, dropped })
}

impl EventWriter {
    /// Writes events in order until `shutdown`, or until all clones of the client are dropped.
    /// Events that are then in the queue are lost.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let write_all = async {
            while let Some(event) = self.receiver.recv().await {
                write(&self.connection, &event).await;
                let dropped = self.dropped.swap(0, Ordering::Relaxed);
                if dropped > 0 {
                    tracing::warn!(dropped, "events for the management cluster were dropped");
                }
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = write_all => {}
        }
    }
}

async fn write(connection: &Connection, event: &ObjectEvent) {
    let mut backoff = Backoff::new(RETRY_FIRST, RETRY_MAX);
    // One name for all attempts: an attempt whose response was lost is not repeated.
    let object = to_object(event, &stdx::random_hex(8));
    for attempt in 1..=TRIES_MAX {
        match super::create(connection, EVENT, &object).await {
            Ok(_) | Err(ObjectError::AlreadyExists(_)) => return,
            Err(error @ ObjectError::Unavailable { .. }) if attempt < TRIES_MAX => {
                tracing::debug!(%error, attempt, "cannot write an event yet");
                tokio::time::sleep(backoff.next_wait()).await;
            }
            Err(error) => {
                let ObjectEvent { reason, name, .. } = event;
                return tracing::warn!(%error, reason, object = name, "cannot write an event");
            }
        }
    }
}

/// Returns the Event to create. Without `eventTime`, whose presence makes the API server require
/// an `action` too; client-go's recorder, which Cluster API uses, sends the same fields.
fn to_object(event: &ObjectEvent, suffix: &str) -> Value {
    let mut object = event.to_event(suffix);
    if let Some(fields) = object.as_object_mut() {
        fields.remove("eventTime");
    }
    if event.namespace.is_empty() {
        object["metadata"]["namespace"] = CLUSTER_SCOPED.into();
    }
    let end = event.message.floor_char_boundary(MESSAGE_BYTES_MAX);
    object["message"] = event.message[..end].into();
    object
}

#[cfg(test)]
mod tests {
    use api::core::{CLUSTER_ROLE_BINDING, ObjectEvent};

    use super::{MESSAGE_BYTES_MAX, to_object};

    #[test]
    fn an_event_fits_the_validation_of_the_api_server() {
        let event = ObjectEvent {
            about: CLUSTER_ROLE_BINDING,
            namespace: String::new(),
            name: "tinbox".to_owned(),
            uid: "u1".to_owned(),
            reason: "Paired".to_owned(),
            message: "ü".repeat(MESSAGE_BYTES_MAX),
            warning: false,
            component: "tinbox".to_owned(),
            at: jiff::Timestamp::UNIX_EPOCH,
        };
        let object = to_object(&event, "01");
        assert_eq!(object["metadata"]["name"], "tinbox.01");
        assert_eq!(object["metadata"]["namespace"], "default");
        assert_eq!(object["involvedObject"]["namespace"], "");
        assert!(object.get("eventTime").is_none());
        assert_eq!(object["message"].as_str().unwrap().len(), MESSAGE_BYTES_MAX);
    }
}
