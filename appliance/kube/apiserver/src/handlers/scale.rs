//! Subresource `/scale`: the replica fields of an object, which its kind defines, as
//! `autoscaling/v1 Scale` (apiextensions-apiserver `pkg/registry/customresource/etcd.go`).

use serde_json::{Map, Value, json};

use resources::definition::{ResourceDefinition, Scale};
use resources::engine::{Configuration, Engine, Patch, WriteOptions};
use resources::{JsonPath, Reason, StatusError};

/// Maximum attempts of a patch if other clients write the same object meanwhile (upstream's limit).
const MAX_ATTEMPTS: usize = 5;

/// Returns the Scale of an object.
///
/// # Errors
/// 500 if the object lacks the replica field that its kind defines, or if the field is not a
/// number.
pub fn read(scale: &Scale, object: &Value) -> Result<Value, StatusError> {
    let asked = number(object, &scale.spec_replicas)?.ok_or_else(|| {
        let path = &scale.spec_replicas;
        let why = format!("the spec replicas field {path:?} does not exist");
        StatusError::new(Reason::InternalError, format!("Internal error occurred: {why}"))
    })?;
    let mut status = json!({ "replicas": number(object, &scale.status_replicas)?.unwrap_or(0) });
    if let Some(path) = &scale.label_selector
        && let Some(selector) = JsonPath::dotted(path).first(object).and_then(Value::as_str)
        && !selector.is_empty()
    {
        status["selector"] = json!(selector);
    }
    let mut metadata = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    Ok(json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": { "replicas": asked },
        "status": status,
    }))
}

fn number(object: &Value, path: &str) -> Result<Option<i64>, StatusError> {
    match JsonPath::dotted(path).first(object) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or_else(|| {
            let why = format!("Internal error occurred: the field {path:?} is not an integer");
            StatusError::new(Reason::InternalError, why)
        }),
    }
}

/// Requested change of a Scale.
pub enum Change {
    /// PUT with a Scale.
    Replace(Value),
    /// PATCH in one of the patch formats.
    Patch(Patch),
    /// PATCH with a server-side apply.
    Apply {
        /// Scale with the fields that the manager sets.
        config: Value,
        /// True if the manager takes over fields of other managers, instead of a conflict.
        force: bool,
    },
}

/// Object whose subresource `/scale` is written.
#[derive(Clone, Copy)]
pub struct Scaled<'a> {
    pub engine: &'a Engine,
    pub definition: &'a ResourceDefinition,
    pub scale: &'a Scale,
    pub namespace: &'a str,
    pub name: &'a str,
}

impl Scaled<'_> {
    /// Writes a Scale and returns its new state.
    ///
    /// # Errors
    /// Returns the errors of a patch; 422 for negative replicas; 400 for a body of another kind.
    pub async fn write(self, change: Change, options: WriteOptions) -> Result<Value, StatusError> {
        let patch = match change {
            Change::Apply { config, force } => return self.apply(config, force, options).await,
            Change::Replace(wanted) => return self.put(&wanted, options).await,
            Change::Patch(patch) => patch,
        };
        let mut more_attempts = 1..MAX_ATTEMPTS;
        loop {
            let wanted = patch.apply(self.read().await?)?;
            // The revision on which the patch is based is a precondition, so no other write is
            // undone.
            match self.put(&wanted, options.clone()).await {
                Err(error)
                    if error.reason == Reason::Conflict && more_attempts.next().is_some() => {}
                done => return done,
            }
        }
    }

    async fn read(self) -> Result<Value, StatusError> {
        let resource = self.definition.address();
        read(self.scale, &self.engine.get(&resource, self.namespace, self.name).await?)
    }

    async fn put(self, wanted: &Value, options: WriteOptions) -> Result<Value, StatusError> {
        let replicas = replicas(wanted, self.name)?;
        let mut patch = nested(&self.scale.spec_replicas, json!(replicas));
        demand(&mut patch, wanted);
        let (resource, patch) = (self.definition.address(), Patch::merge(patch)?);
        let written =
            self.engine.patch(&resource, self.namespace, self.name, patch, options).await?;
        read(self.scale, &written)
    }

    /// Applies a Scale: the field manager then owns only the replica field of the object.
    async fn apply(
        self,
        wanted: Value,
        force: bool,
        options: WriteOptions,
    ) -> Result<Value, StatusError> {
        let Self { definition, name, .. } = self;
        let asked = replicas(&wanted, name)?;
        // An omitted number gets no owner.
        let mut object = match wanted["spec"]["replicas"] {
            Value::Null => json!({}),
            _ => nested(&self.scale.spec_replicas, json!(asked)),
        };
        object["apiVersion"] = json!(definition.api_version());
        object["kind"] = json!(definition.kind);
        object["metadata"] = json!({ "name": name });
        demand(&mut object, &wanted);
        let uncreatable = Some(StatusError::not_found(definition, name));
        let config = Configuration { object, force, uncreatable };
        let resource = definition.address();
        let applied = self.engine.apply(&resource, self.namespace, name, config, options).await?;
        read(self.scale, &applied.object)
    }
}

/// Copies the preconditions resourceVersion and uid of the Scale `wanted` into `change`.
fn demand(change: &mut Value, wanted: &Value) {
    for field in ["resourceVersion", "uid"] {
        if let Some(value) = wanted["metadata"][field].as_str().filter(|text| !text.is_empty()) {
            change["metadata"][field] = json!(value);
        }
    }
}

/// Returns the desired replicas of a Scale; 0 if omitted.
fn replicas(wanted: &Value, name: &str) -> Result<i64, StatusError> {
    let kind = (wanted["apiVersion"].as_str(), wanted["kind"].as_str());
    if !matches!(kind, (Some("autoscaling/v1") | None, Some("Scale") | None)) {
        return Err(StatusError::bad_request("the object is not an autoscaling/v1 Scale"));
    }
    let replicas = match &wanted["spec"]["replicas"] {
        Value::Null => 0,
        number => number.as_i64().ok_or_else(|| {
            StatusError::bad_request("the replicas of a Scale must be an integer")
        })?,
    };
    if replicas < 0 {
        let rule = "must be greater than or equal to 0";
        let error = schema::FieldError::invalid("spec.replicas", &json!(replicas), rule);
        let scale = ResourceDefinition::new("autoscaling", "v1", "Scale", "scales");
        return Err(StatusError::invalid(&scale, name, &[error]));
    }
    Ok(replicas)
}

/// Returns an object that contains only `value`, at the dotted path `path`.
fn nested(path: &str, value: Value) -> Value {
    let steps: Vec<&str> = path.split('.').filter(|step| !step.is_empty()).collect();
    steps
        .iter()
        .rev()
        .fold(value, |inner, step| Value::Object(Map::from_iter([((*step).to_owned(), inner)])))
}

#[cfg(test)]
mod tests {
    use super::{nested, read, replicas};
    use resources::Reason;
    use resources::definition::Scale;
    use serde_json::json;

    fn scale() -> Scale {
        Scale {
            spec_replicas: ".spec.count".to_owned(),
            status_replicas: ".status.count".to_owned(),
            label_selector: Some(".status.selector".to_owned()),
        }
    }

    #[test]
    fn a_scale_says_what_the_object_says() {
        let object = json!({
            "metadata": { "name": "a", "labels": {}, "resourceVersion": "7" },
            "spec": { "count": 3 }, "status": { "count": 2, "selector": "a=b" },
        });
        let read_back = read(&scale(), &object).unwrap();
        assert_eq!(read_back["metadata"], json!({ "name": "a", "resourceVersion": "7" }));
        assert_eq!(read_back["spec"], json!({ "replicas": 3 }));
        assert_eq!(read_back["status"], json!({ "replicas": 2, "selector": "a=b" }));
        let fresh = read(&scale(), &json!({ "spec": { "count": 0 } })).unwrap();
        assert_eq!(fresh["status"], json!({ "replicas": 0 }));
        assert!(read(&scale(), &json!({ "spec": {} })).is_err());
        assert!(read(&scale(), &json!({ "spec": { "count": "3" } })).is_err());
    }

    #[test]
    fn only_a_scale_is_taken() {
        assert_eq!(nested(".spec.a.b", json!(1)), json!({ "spec": { "a": { "b": 1 } } }));
        assert_eq!(replicas(&json!({ "spec": { "replicas": 4 } }), "a").unwrap(), 4);
        assert_eq!(replicas(&json!({}), "a").unwrap(), 0);
        let reason = |wanted| replicas(&wanted, "a").unwrap_err().reason;
        assert_eq!(reason(json!({ "spec": { "replicas": -1 } })), Reason::Invalid);
        assert_eq!(reason(json!({ "spec": { "replicas": "1" } })), Reason::BadRequest);
        assert_eq!(reason(json!({ "kind": "Deployment" })), Reason::BadRequest);
    }
}
