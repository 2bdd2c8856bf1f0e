//! Reader of objects for templates (`.references.NAME`). A Hardware names the object, and a rule of
//! the configuration must allow the access.

use ::objects::{ObjectError, Pending};
use api::meta::ObjectKey;
use api::tinkerbell::Reference;
use config::Templates;
use controllers::References;
use event_pattern::{Event, Pattern};
use resources::Engine;
use serde_json::Value;

use crate::objects;

/// Implementation of [`References`] on the engine of the API server.
pub struct EngineReferences {
    engine: Engine,
    rules: Vec<Pattern>,
}

impl EngineReferences {
    /// Creates a reader for the objects of `engine` that the rules of `config` allow.
    pub fn new(engine: &Engine, config: &Templates) -> Self {
        Self { engine: engine.clone(), rules: config.rules() }
    }

    fn may_read(&self, from: &ObjectKey, to: &Reference) -> bool {
        match Event::new(&to.event(from)) {
            Ok(event) => self.rules.iter().any(|rule| rule.fits(&event) == Ok(true)),
            Err(_) => false,
        }
    }
}

impl References for EngineReferences {
    fn read<'a>(&'a self, from: &'a ObjectKey, to: &'a Reference) -> Pending<'a, Value> {
        Box::pin(async move {
            // Without access, the error must not reveal if the object exists.
            if !self.may_read(from, to) {
                let why = "no rule of `[templates] references` allows the access";
                return Err(ObjectError::Invalid(why.to_owned()));
            }
            let resource = format!("{}/{}@{}", to.group, to.resource, to.version);
            let found = self.engine.get(&resource, &to.namespace, &to.name).await;
            found.map_err(objects::error)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ::objects::ObjectError;
    use api::meta::ObjectKey;
    use api::tinkerbell::Reference;
    use config::Templates;
    use controllers::References as _;
    use resources::{Engine, WriteOptions, builtin};
    use serde_json::json;
    use store::{Options, Store};

    use super::EngineReferences;

    #[tokio::test]
    async fn a_rule_opens_what_it_names_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("objects.redb"), Options::default()).unwrap();
        let clock = Arc::new(stdx::SystemClock);
        let engine = Engine::new(store, builtin::registry().unwrap(), clock);
        engine.ensure_permanent().await.unwrap();
        let map = json!({ "metadata": { "name": "lvm" }, "data": { "group": "vg0" } });
        engine.create("/configmaps", "default", map, WriteOptions::default()).await.unwrap();

        let reference = |resource: &str, name: &str| Reference {
            version: "v1".into(),
            resource: resource.into(),
            namespace: "default".into(),
            name: name.into(),
            ..Reference::default()
        };
        let from = ObjectKey::new("default", "nuc1");
        let closed = EngineReferences::new(&engine, &Templates::default());
        let lvm = reference("configmaps", "lvm");
        let refused = closed.read(&from, &lvm).await.unwrap_err();
        assert!(matches!(&refused, ObjectError::Invalid(why) if why.contains("[templates]")));

        let rule = r#"{"source": {"name": ["nuc1"]}, "reference": {"resource": ["configmaps"]}}"#;
        let open = EngineReferences::new(&engine, &Templates { references: vec![rule.into()] });
        assert_eq!(open.read(&from, &lvm).await.unwrap()["data"]["group"], "vg0");
        let missing = reference("configmaps", "none");
        let missing = open.read(&from, &missing).await.unwrap_err();
        assert!(matches!(missing, ObjectError::NotFound(_)), "{missing}");
        let secret = reference("secrets", "lvm");
        assert!(matches!(open.read(&from, &secret).await, Err(ObjectError::Invalid(_))));
        let other = ObjectKey::new("default", "nuc2");
        assert!(matches!(open.read(&other, &lvm).await, Err(ObjectError::Invalid(_))));
    }
}
