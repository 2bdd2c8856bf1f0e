//! Catalog of Kubernetes' built-in types, parsed once from the tables in `types/`.
//!
//! A line `kind VERSION KIND TYPE` names the type of a kind. `type NAME` begins a message, and
//! `slice NAME` a message that is an array in JSON. Each field has a line: number, JSON name, type
//! and further facts. The JSON name is `-` for a field whose own fields are inlined.

use std::collections::HashMap;
use std::sync::OnceLock;

/// Tables of the types, one for each API group and version.
const TABLES: [&str; 21] = [
    include_str!("../types/admissionregistration.v1.types"),
    include_str!("../types/apiextensions.v1.types"),
    include_str!("../types/apiregistration.v1.types"),
    include_str!("../types/apps.v1.types"),
    include_str!("../types/authentication.v1.types"),
    include_str!("../types/authentication.v1alpha1.types"),
    include_str!("../types/authentication.v1beta1.types"),
    include_str!("../types/authorization.v1.types"),
    include_str!("../types/autoscaling.v1.types"),
    include_str!("../types/batch.v1.types"),
    include_str!("../types/certificates.v1.types"),
    include_str!("../types/coordination.v1.types"),
    include_str!("../types/core.v1.types"),
    include_str!("../types/discovery.v1.types"),
    include_str!("../types/events.v1.types"),
    include_str!("../types/flowcontrol.v1.types"),
    include_str!("../types/meta.v1.types"),
    include_str!("../types/networking.v1.types"),
    include_str!("../types/policy.v1.types"),
    include_str!("../types/rbac.v1.types"),
    include_str!("../types/scheduling.v1.types"),
];

/// Type of one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Boolean: `true` or `false`.
    Bool,
    /// Signed integer of 32 bits.
    Int32,
    /// Signed integer of 64 bits.
    Int64,
    /// Floating-point number of 64 bits.
    Double,
    /// Text in UTF-8 encoding.
    Text,
    /// Bytes, base64 in JSON.
    Bytes,
    /// Time in whole seconds (`metav1.Time`).
    Time,
    /// Time in microseconds (`metav1.MicroTime`).
    MicroTime,
    /// Duration in Go's notation: `1h2m3.5s`.
    Duration,
    /// Quantity with a suffix: `500m`, `2Gi`.
    Quantity,
    /// Integer or text (`IntOrString`).
    IntOrString,
    /// Object of any kind (`RawExtension`).
    RawExtension,
    /// Set of fields in `managedFields` (`FieldsV1`), stored as JSON.
    Fields,
    /// Any JSON value (`apiextensions.v1.JSON`).
    Json,
    /// Schema or boolean (`JSONSchemaPropsOrBool`).
    SchemaOrBool,
    /// Schema or list of schemas (`JSONSchemaPropsOrArray`).
    SchemaOrArray,
    /// Schema or list of property names (`JSONSchemaPropsOrStringArray`).
    SchemaOrStrings,
    /// Message type, by its index for [`Catalog::message`].
    Message(usize),
}

/// Multiplicity of a field: single value, list or map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Field with a single value.
    One,
    /// List of any number of values.
    List,
    /// Map from names to values.
    Map,
}

/// Field of a message.
#[derive(Debug)]
pub struct Field {
    /// Field number in protobuf messages.
    pub number: u32,
    /// JSON name; empty if the fields of this field are inlined in the outer message.
    pub name: &'static str,
    /// Multiplicity of the value.
    pub shape: Shape,
    /// Type of the value.
    pub kind: Kind,
    /// True if JSON omits an empty value (`omitempty` in Go).
    pub omit_empty: bool,
    /// True if JSON omits a time that was never set (`omitzero` in Go).
    pub omit_zero: bool,
    /// True if an absent value differs from an empty one (a pointer in Go).
    pub pointer: bool,
    /// True if a client must set the field.
    pub required: bool,
    facts: &'static str,
}

impl Field {
    /// Returns a schema attribute of the field: `listType`, `keys` (with commas), `mapType`,
    /// `strategy`, `mergeKey`, `enum` (with commas), `default` (JSON). `None` if not set.
    pub fn fact(&self, name: &str) -> Option<&'static str> {
        fact(self.facts, name)
    }
}

/// Message type with its fields.
#[derive(Debug)]
pub struct Type {
    /// Name of the type, such as `core.v1.Secret`.
    pub name: &'static str,
    /// True if the JSON form is an array: the values of the type's only field.
    pub slice: bool,
    /// Fields, sorted by number.
    pub fields: Vec<Field>,
    facts: &'static str,
}

impl Type {
    /// Returns the index in [`Self::fields`] of the field with this number; `None` if unknown.
    pub(crate) fn index(&self, number: u32) -> Option<usize> {
        self.fields.binary_search_by_key(&number, |field| field.number).ok()
    }

    /// Returns a schema attribute of the type: `mapType`. `None` if not set.
    pub fn fact(&self, name: &str) -> Option<&'static str> {
        fact(self.facts, name)
    }

    /// Returns the type's name in OpenAPI documents, such as `io.k8s.api.core.v1.Secret`.
    pub fn open_api_name(&self) -> String {
        let package = match self.name.split('.').next().unwrap_or_default() {
            "meta" => "io.k8s.apimachinery.pkg.apis.",
            "apiextensions" => "io.k8s.apiextensions-apiserver.pkg.apis.",
            "apiregistration" => "io.k8s.kube-aggregator.pkg.apis.",
            _ => "io.k8s.api.",
        };
        format!("{package}{}", self.name)
    }
}

fn fact(facts: &'static str, name: &str) -> Option<&'static str> {
    facts.split(' ').find_map(|one| one.strip_prefix(name)?.strip_prefix('='))
}

/// Catalog of all types, with the type of each kind.
#[derive(Debug, Default)]
pub struct Catalog {
    types: Vec<Type>,
    names: HashMap<&'static str, usize>,
    kinds: HashMap<(&'static str, &'static str), usize>,
}

impl Catalog {
    /// Returns the type of a kind by API version (`v1` or `group/version`) and name.
    pub fn kind(&self, api_version: &str, kind: &str) -> Option<&Type> {
        // `DeleteOptions` are the same in every group that accepts them.
        let api_version = if kind == "DeleteOptions" { "v1" } else { api_version };
        self.kinds.get(&(api_version, kind)).map(|place| &self.types[*place])
    }

    /// Returns a type by name, such as `meta.v1.ObjectMeta`; `None` if unknown.
    pub fn named(&self, name: &str) -> Option<&Type> {
        self.names.get(name).map(|place| &self.types[*place])
    }

    /// Returns the type with the index in a [`Kind::Message`].
    pub fn message(&self, place: usize) -> &Type {
        &self.types[place]
    }

    /// Returns all kinds: API version, name and type.
    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, &'static str, &Type)> {
        self.kinds.iter().map(|((version, kind), place)| (*version, *kind, &self.types[*place]))
    }
}

/// Returns the catalog of built-in types; parses the tables at the first call.
pub fn catalog() -> &'static Catalog {
    static CATALOGUE: OnceLock<Catalog> = OnceLock::new();
    CATALOGUE.get_or_init(|| read(&TABLES).expect("a test reads every table"))
}

/// Parses the tables; the error is the invalid line.
fn read(tables: &[&'static str]) -> Result<Catalog, &'static str> {
    let mut all = Catalog::default();
    let lines = || tables.iter().flat_map(|table| table.lines());
    for line in lines() {
        if let Some((name, slice, facts)) = head(line) {
            all.names.insert(name, all.types.len());
            all.types.push(Type { name, slice, fields: Vec::new(), facts });
        }
    }
    let mut current = None;
    for line in lines() {
        if let Some(text) = line.strip_prefix("kind ") {
            let parts: Vec<&'static str> = text.split(' ').collect();
            let [version, kind, name] = parts[..] else { return Err(line) };
            all.kinds.insert((version, kind), *all.names.get(name).ok_or(line)?);
        } else if let Some((name, ..)) = head(line) {
            current = all.names.get(name).copied();
        } else {
            let field = field(line, &all.names).ok_or(line)?;
            all.types[current.ok_or(line)?].fields.push(field);
        }
    }
    Ok(all)
}

fn head(line: &'static str) -> Option<(&'static str, bool, &'static str)> {
    let slice = line.starts_with("slice ");
    let rest = line.strip_prefix("type ").or_else(|| line.strip_prefix("slice "))?;
    let (name, facts) = rest.split_once(' ').unwrap_or((rest, ""));
    Some((name, slice, facts))
}

fn field(line: &'static str, names: &HashMap<&str, usize>) -> Option<Field> {
    let mut parts = line.trim_start().splitn(4, ' ');
    let (number, name, spelled) = (parts.next()?.parse().ok()?, parts.next()?, parts.next()?);
    let facts = parts.next().unwrap_or_default();
    let has = |flag: &str| facts.split(' ').any(|one| one == flag);
    let (shape, spelled) = if let Some(item) = spelled.strip_prefix("[]") {
        (Shape::List, item)
    } else if let Some(item) = spelled.strip_prefix("{}") {
        (Shape::Map, item)
    } else {
        (Shape::One, spelled)
    };
    Some(Field {
        number,
        name: if name == "-" { "" } else { name },
        shape,
        kind: kind(spelled, names)?,
        omit_empty: has("omitempty"),
        omit_zero: has("omitzero"),
        pointer: has("ptr"),
        required: has("required"),
        facts,
    })
}

fn kind(spelled: &str, names: &HashMap<&str, usize>) -> Option<Kind> {
    Some(match spelled {
        "bool" => Kind::Bool,
        "int32" => Kind::Int32,
        "int64" => Kind::Int64,
        "float64" => Kind::Double,
        "string" => Kind::Text,
        "bytes" => Kind::Bytes,
        "time" => Kind::Time,
        "microtime" => Kind::MicroTime,
        "duration" => Kind::Duration,
        "quantity" => Kind::Quantity,
        "intorstring" => Kind::IntOrString,
        "rawextension" => Kind::RawExtension,
        "raw" => Kind::Fields,
        "json" => Kind::Json,
        "schemaorbool" => Kind::SchemaOrBool,
        "schemaorarray" => Kind::SchemaOrArray,
        "schemaorstrings" => Kind::SchemaOrStrings,
        _ => Kind::Message(*names.get(spelled.strip_prefix('@')?)?),
    })
}

#[cfg(test)]
mod tests {
    use super::{Kind, Shape, TABLES, catalog, read};

    #[test]
    fn every_table_can_be_read() {
        let all = read(&TABLES).unwrap();
        assert!(all.types.len() > 300, "{}", all.types.len());
        assert!(all.types.iter().all(|one| one.fields.is_sorted_by_key(|field| field.number)));
        assert_eq!(all.named("apiextensions.v1.JSONSchemaProps").unwrap().fields.len(), 44);
    }

    #[test]
    fn a_secret() {
        let secret = catalog().kind("v1", "Secret").unwrap();
        assert_eq!(secret.open_api_name(), "io.k8s.api.core.v1.Secret");
        let data = &secret.fields[1];
        assert_eq!((data.number, data.name, data.shape), (2, "data", Shape::Map));
        assert_eq!((data.kind, data.omit_empty, data.pointer), (Kind::Bytes, true, false));
        assert!(catalog().kind("v2", "Secret").is_none());
    }

    #[test]
    fn facts_of_merging() {
        let spec = catalog().named("core.v1.PodSpec").unwrap();
        let containers = spec.fields.iter().find(|field| field.name == "containers").unwrap();
        assert!(containers.required);
        assert_eq!(containers.fact("listType"), Some("map"));
        assert_eq!(containers.fact("mergeKey"), Some("name"));
        assert_eq!(containers.fact("default"), None);
        let selector = catalog().named("meta.v1.LabelSelector").unwrap();
        assert_eq!(selector.fact("mapType"), Some("atomic"));
    }
}
