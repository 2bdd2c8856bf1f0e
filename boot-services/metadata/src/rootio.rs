//! Metadata for the action rootio, as Tootles returns it (`tootles/internal/frontend/hack`): fixed
//! fields in a fixed order.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::Instance;

#[derive(Serialize)]
struct Answer {
    metadata: Metadata,
}

#[derive(Serialize)]
struct Metadata {
    instance: Machine,
}

#[derive(Serialize)]
struct Machine {
    storage: Storage,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Storage {
    #[serde(deserialize_with = "list")]
    disks: Option<Vec<Disk>>,
    #[serde(deserialize_with = "list")]
    filesystems: Option<Vec<Filesystem>>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Disk {
    device: String,
    #[serde(deserialize_with = "list")]
    partitions: Option<Vec<Partition>>,
    wipe_table: bool,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Partition {
    label: String,
    number: i64,
    size: u64,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Filesystem {
    mount: Mount,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Mount {
    create: Create,
    device: String,
    format: String,
    point: String,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Create {
    #[serde(deserialize_with = "list")]
    options: Option<Vec<String>>,
}

/// Deserializes a list; `null` counts as empty. Go omits an empty list in Hardware, and writes a
/// missing one as `null`.
fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<Vec<T>>, D::Error> {
    let items: Option<Vec<T>> = Option::deserialize(from)?;
    Ok(items.filter(|items| !items.is_empty()))
}

/// Returns the JSON; `None` if rootio could not read the recorded storage layout.
pub(crate) fn json(instance: &Instance) -> Option<String> {
    let storage = match &instance.storage {
        None | Some(Value::Null) => Storage::default(),
        Some(storage) => Storage::deserialize(storage).ok()?,
    };
    let answer = Answer { metadata: Metadata { instance: Machine { storage } } };
    Some(escaped(&serde_json::to_string(&answer).ok()?))
}

/// Escapes characters as Go's encoder does, so that HTML may contain the text (`encoding/json`,
/// `HTMLEscape`). These characters occur only inside strings.
fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Instance;

    fn answer(storage: serde_json::Value) -> Option<String> {
        super::json(&Instance { storage: Some(storage), ..Instance::default() })
    }

    #[test]
    fn the_fields_are_fixed() {
        let nothing = r#"{"metadata":{"instance":{"storage":{"disks":null,"filesystems":null}}}}"#;
        assert_eq!(super::json(&Instance::default()).unwrap(), nothing);
        assert_eq!(answer(json!({"disks": [], "raid": [{}]})).unwrap(), nothing);
        let storage = json!({
            "disks": [{
                "wipe_table": true,
                "partitions": [{"size": 7, "start": 3, "label": "a<&>b", "type_guid": "x"}],
                "device": "/dev/sda",
            }],
            "filesystems": [{"mount": {"point": "/", "files": [], "create": {"force": true}}}, {}],
        });
        let wanted = concat!(
            r#"{"metadata":{"instance":{"storage":{"disks":[{"device":"/dev/sda","partitions":["#,
            r#"{"label":"a\u003c\u0026\u003eb","number":0,"size":7}],"wipe_table":true}],"#,
            r#""filesystems":[{"mount":{"create":{"options":null},"device":"","format":"","#,
            r#""point":"/"}},{"mount":{"create":{"options":null},"device":"","format":"","#,
            r#""point":""}}]}}}}"#,
        );
        assert_eq!(answer(storage).unwrap(), wanted);
    }

    #[test]
    fn what_is_no_storage_is_not_served() {
        assert_eq!(answer(json!({"disks": "all"})), None);
        assert_eq!(answer(json!([1])), None);
    }
}
