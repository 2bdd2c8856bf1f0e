//! Writes the changes of a manifest to the box's object; without a change, writes nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use box_client::{Client, ClientError, Path};
use serde_json::{Value, json};

use super::{Manifest, apply};
use crate::error::Error;

/// Maximum number of attempts if other clients write at the same time (409).
const ATTEMPTS: usize = 5;

/// Effect of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushEffect {
    /// The object did not exist.
    Created,
    /// The object was different.
    Changed,
    /// The object was equal; nothing was written.
    Unchanged,
}

impl PushEffect {
    pub fn word(self) -> &'static str {
        match self {
            PushEffect::Created => "created",
            PushEffect::Changed => "changed",
            PushEffect::Unchanged => "unchanged",
        }
    }
}

/// Creates or changes the object of a manifest. Returns the resulting object and the effect.
///
/// # Errors
/// The box refuses the object or is unreachable.
pub async fn push(
    client: &Client,
    manifest: &Manifest,
    default_namespace: &str,
) -> Result<(Value, PushEffect), Error> {
    let namespace = manifest.namespace(default_namespace);
    let collection = Path::collection(manifest.resource, namespace);
    let path = Path::object(manifest.resource, namespace, manifest.name());
    let mut attempt = 1;
    loop {
        let outcome = match client.get_if_any(&path).await? {
            None => client
                .create(&collection, &apply::created(&encoded(manifest, namespace)))
                .await
                .map(|object| (object, PushEffect::Created)),
            Some(live) => {
                let wanted = apply::applied(&live, &encoded(manifest, namespace));
                if wanted == live {
                    return Ok((live, PushEffect::Unchanged));
                }
                // The manifest lacks fields that the box fills in. A write that leaves the revision
                // unchanged therefore counts as no change.
                let revision = live["metadata"]["resourceVersion"].clone();
                client.replace(&path, &wanted).await.map(|object| {
                    let same = object["metadata"]["resourceVersion"] == revision;
                    (object, if same { PushEffect::Unchanged } else { PushEffect::Changed })
                })
            }
        };
        match outcome {
            Err(ClientError::Refused { code: 409, .. }) if attempt < ATTEMPTS => attempt += 1,
            outcome => return Ok(outcome?),
        }
    }
}

/// Returns the object with its namespace, without `status`, and `stringData` encoded as `data`.
fn encoded(manifest: &Manifest, namespace: &str) -> Value {
    let mut object = manifest.object.clone();
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = json!(namespace);
    }
    let texts = object.as_object_mut().and_then(|object| {
        object.remove("status");
        object.remove("stringData")
    });
    for (key, text) in texts.as_ref().and_then(Value::as_object).into_iter().flatten() {
        object["data"][key] = base64_of(text);
    }
    object
}

fn base64_of(text: &Value) -> Value {
    text.as_str().map_or_else(|| text.clone(), |text| json!(STANDARD.encode(text)))
}

/// Returns the live object with the parts that the manifest contains.
///
/// A part such as `spec` or `data` is replaced as a whole, so that a field removed from the file is
/// removed from the box. Other labels and annotations stay.
pub fn desired(live: &Value, manifest: &Value) -> Value {
    let mut wanted = live.clone();
    for (key, value) in manifest.as_object().into_iter().flatten() {
        match key.as_str() {
            "apiVersion" | "kind" | "status" | "stringData" => {}
            "metadata" => {
                for part in ["labels", "annotations"] {
                    for (key, value) in value[part].as_object().into_iter().flatten() {
                        wanted["metadata"][part][key] = value.clone();
                    }
                }
            }
            _ => wanted[key] = value.clone(),
        }
    }
    if let Some(texts) = manifest["stringData"].as_object() {
        if manifest.get("data").is_none() {
            wanted["data"] = json!({});
        }
        for (key, text) in texts {
            wanted["data"][key] = base64_of(text);
        }
    }
    wanted
}
