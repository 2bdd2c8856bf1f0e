//! Server-side apply: a client sends fields of an object and becomes the owner of the fields.

use jiff::Timestamp;
use serde_json::Value;
use store::Txn;

use super::modify::{self, Change, Configuration};
use super::{create, weight};
use crate::engine::fields::{FieldValidation, Strictness};
use crate::engine::metadata;
use crate::engine::ownership::Ownership;
use crate::engine::{Abort, Engine, Part, Place, WriteOptions};
use crate::object::{meta, metadata_mut, set_revision};
use crate::status_error::{StatusError, failed};

/// Result of an apply.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// Object after the apply.
    pub object: Value,
    /// True if the apply created the object.
    pub created: bool,
}

impl Engine {
    /// Applies a configuration; creates a missing object. A field that the manager in `options`
    /// owned and now omits is removed, unless another manager owns it too.
    ///
    /// Returns 409 with a cause for each changed field that another manager owns, or an error of
    /// [`Self::create`] or [`Self::patch`].
    pub async fn apply(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        config: Configuration,
        options: WriteOptions,
    ) -> Result<Applied, StatusError> {
        let place = self.place(resource, namespace)?;
        modify::check_part(&place, options.part)?;
        let _turn = self.turn(&config.object).await?;
        let name = name.to_owned();
        let now = self.inner.clock.now();
        let ownership = Ownership::of(&self.registry(), &place, &options, now);
        self.commit(move |txn| {
            let call = Apply { place: &place, name: &name, ownership: &ownership, now };
            let applied = call.run(txn, config, &options)?;
            if options.dry_run { Err(Abort::DryRun(applied)) } else { Ok(applied) }
        })
        .await
    }
}

struct Apply<'a> {
    place: &'a Place,
    name: &'a str,
    ownership: &'a Ownership,
    now: Timestamp,
}

impl Apply<'_> {
    fn run(
        &self,
        txn: &mut Txn<'_>,
        config: Configuration,
        options: &WriteOptions,
    ) -> Result<Applied, StatusError> {
        let there = txn.get(&self.place.key(self.name));
        let created = there.map_err(|error| failed("read an object", &error))?.is_none();
        let object = if !created {
            let change = Change::Apply(config);
            let rules = (options, self.ownership);
            let (mut object, before) =
                modify::modify(txn, self.place, self.name, change, rules, self.now)?;
            if options.dry_run {
                set_revision(&mut object, before);
            }
            object
        } else if options.part == Part::Main {
            let mut object = self.create(txn, config, options)?;
            if options.dry_run {
                metadata_mut(&mut object).remove("resourceVersion");
            }
            object
        } else {
            return Err(StatusError::not_found(&self.place.definition, self.name));
        };
        // As upstream, which reports duplicate fields only if the configuration is valid.
        judge(&options.fields)?;
        Ok(Applied { object, created })
    }

    fn create(
        &self,
        txn: &mut Txn<'_>,
        config: Configuration,
        options: &WriteOptions,
    ) -> Result<Value, StatusError> {
        let definition = self.place.definition.as_ref();
        if let Some(refused) = config.uncreatable {
            return Err(refused);
        }
        weight::check_items(definition, self.name, &config.object, None)?;
        let mut object = self.ownership.apply(None, &config.object, config.force)?;
        let uid = meta(&object, "uid");
        if !uid.is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object \
                 was found"
            );
            return Err(StatusError::conflict(definition, self.name, &why));
        }
        if meta(&object, "name").is_empty() {
            return Err(StatusError::bad_request(format!(
                "the name of the object ({} based on URL) was undeterminable: name must be \
                 provided",
                self.name
            )));
        }
        // A new object has no earlier copy, so the revision has no meaning.
        metadata_mut(&mut object).remove("resourceVersion");
        let namespace = &self.place.namespace;
        metadata::check_identity(definition, namespace, Some(self.name), &mut object)?;
        let fields = modify::lenient(options);
        let object = create::prepare(self.place, object, &fields, None, self.now)?;
        create::insert(txn, self.place, object, (options, self.now))
    }
}

/// Ignores, warns about, or refuses duplicate fields, as the client requested.
fn judge(fields: &FieldValidation) -> Result<(), StatusError> {
    match fields.strictness {
        _ if fields.found.is_empty() => {}
        Strictness::Ignore => {}
        Strictness::Warn => fields.found.iter().for_each(|text| fields.warnings.add(text.as_str())),
        Strictness::Strict => {
            let found = fields.found.join(", ");
            return Err(StatusError::bad_request(format!("error strict decoding YAML: {found}")));
        }
    }
    Ok(())
}
