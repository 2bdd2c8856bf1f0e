//! Parts of an archive, and their paths.

use crate::Error;

/// Maximum length of a part's path in the archive, in bytes.
pub(crate) const PATH_BYTES_MAX: usize = 2048;
/// Maximum number of components in the path of a state file.
const DEPTH_MAX: usize = 4;
/// Folder name for the core group, whose real name is empty.
const CORE: &str = "core";
/// Folder name for objects without a namespace.
const NOWHERE: &str = "_";

/// Part of a backup.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Object of the API, as JSON.
    Object {
        /// Group and plural, such as `tinkerbell.org/hardware`, or `/secrets` in the core group.
        resource: String,
        /// Namespace of the object; empty for a cluster-scoped object.
        namespace: String,
        /// Name of the object.
        name: String,
    },
    /// Leases of an interface, as JSON.
    Leases {
        /// Name of the interface.
        interface: String,
    },
    /// File of the state folder.
    File {
        /// Path of the file in the state folder, such as `pki/ca.key`.
        path: String,
    },
    /// Settings file `box.toml` of the owner.
    Settings,
    /// List of the cached files, as JSON.
    Images,
}

/// Returns the path of an object in the archive, or `None` if `resource` has no `/`.
pub fn object_path(resource: &str, namespace: &str, name: &str) -> Option<String> {
    let (group, plural) = resource.split_once('/')?;
    let group = if group.is_empty() { CORE.to_owned() } else { escaped(group) };
    let namespace = if namespace.is_empty() { NOWHERE.to_owned() } else { escaped(namespace) };
    let (plural, name) = (escaped(plural), escaped(name));
    Some(format!("objects/{group}/{plural}/{namespace}/{name}.json"))
}

impl Part {
    /// Returns the path of the part in the archive.
    ///
    /// # Errors
    /// A name is too long or cannot be encoded.
    pub(crate) fn path(&self) -> Result<String, Error> {
        let unkept = |why: &str| Error::Unkept { what: self.what(), why: why.to_owned() };
        let path = match self {
            Part::Object { resource, namespace, name } => object_path(resource, namespace, name)
                .ok_or_else(|| unkept("its resource has no group"))?,
            Part::Leases { interface } => format!("leases/{}.json", escaped(interface)),
            Part::File { path } => {
                let parts: Vec<&str> = path.split('/').collect();
                let bad = |part: &&str| part.is_empty() || *part == "." || *part == "..";
                if parts.iter().any(bad) || parts.len() > DEPTH_MAX {
                    return Err(unkept("its path is not below the state folder"));
                }
                let parts: Vec<String> = parts.into_iter().map(escaped).collect();
                format!("state/{}", parts.join("/"))
            }
            Part::Settings => "settings/box.toml".to_owned(),
            Part::Images => "images.json".to_owned(),
        };
        if path.len() > PATH_BYTES_MAX {
            return Err(unkept("its name is too long"));
        }
        Ok(path)
    }

    /// Returns the part with the path `path`, or `None` for an invalid path.
    pub(crate) fn at(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').collect();
        let part = match parts.as_slice() {
            ["images.json"] => Part::Images,
            ["settings", "box.toml"] => Part::Settings,
            ["leases", file] => Part::Leases { interface: plain(file.strip_suffix(".json")?)? },
            ["objects", group, plural, namespace, file] => {
                let group = if *group == CORE { String::new() } else { plain(group)? };
                let bare = *namespace == NOWHERE;
                Part::Object {
                    resource: format!("{group}/{}", plain(plural)?),
                    namespace: if bare { String::new() } else { plain(namespace)? },
                    name: plain(file.strip_suffix(".json")?)?,
                }
            }
            ["state", rest @ ..] if !rest.is_empty() => {
                let names: Option<Vec<String>> = rest.iter().map(|part| plain(part)).collect();
                Part::File { path: names?.join("/") }
            }
            _ => return None,
        };
        // Each part has exactly one path: another spelling would allow the same part twice.
        (part.path().ok()? == path).then_some(part)
    }

    /// Returns a description of the part for people.
    pub fn what(&self) -> String {
        match self {
            Part::Object { resource, namespace, name } if namespace.is_empty() => {
                format!("{} {name}", resource.trim_start_matches('/'))
            }
            Part::Object { resource, namespace, name } => {
                format!("{} {namespace}/{name}", resource.trim_start_matches('/'))
            }
            Part::Leases { interface } => format!("the leases of {interface}"),
            Part::File { path } => format!("the file {path}"),
            Part::Settings => "box.toml".to_owned(),
            Part::Images => "the list of images".to_owned(),
        }
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, byte) in text.bytes().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || b":_-".contains(&byte);
        if plain || (byte == b'.' && at > 0) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    // These names stand for the core group and for no namespace.
    match out.as_str() {
        CORE => "%63ore".to_owned(),
        NOWHERE => "%5F".to_owned(),
        _ => out,
    }
}

/// Reverses [`escaped`]. Returns `None` for invalid escapes or empty text.
fn plain(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digits = [bytes.next()?, bytes.next()?];
            let digits = std::str::from_utf8(&digits).ok()?;
            out.push(u8::from_str_radix(digits, 16).ok()?);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).ok().filter(|text| !text.is_empty())
}
