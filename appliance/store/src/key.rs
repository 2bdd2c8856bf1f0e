//! Key of an object, and its encoding in bytes of the same order.
//!
//! ```text
//! resource 00 namespace 00 name        a 00 byte inside a part is written 00 FF
//! ```
//!
//! FF never occurs in UTF-8, so the separators are unambiguous. The bytes order exactly as the
//! three strings do. A resource is one range, and a namespace a range in it.

use std::fmt;

/// Key of one object.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key {
    /// API group and plural name: `tinkerbell.org/hardware`; without group (core): `/secrets`.
    pub resource: String,
    /// Namespace; empty for an object without a namespace.
    pub namespace: String,
    /// Name, unique within resource and namespace.
    pub name: String,
}

impl Key {
    /// Creates the key of the object `name` of `resource`. An empty `namespace` means an object
    /// without a namespace.
    pub fn new(
        resource: impl Into<String>,
        namespace: impl Into<String>,
        name: impl Into<String>,
    ) -> Self {
        Self { resource: resource.into(), namespace: namespace.into(), name: name.into() }
    }

    /// Encodes the key as the tables store it.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = prefix(&self.resource, Some(&self.namespace));
        escape(&mut bytes, &self.name);
        bytes
    }

    /// Decodes a key; `None` if `bytes` are not a valid key.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (resource, rest) = part(bytes)?;
        let (namespace, rest) = part(rest?)?;
        let (name, rest) = part(rest?)?;
        rest.is_none().then_some(Self { resource, namespace, name })
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => write!(f, "{} {}", self.resource, self.name),
            namespace => write!(f, "{} {namespace}/{}", self.resource, self.name),
        }
    }
}

/// Returns the bounds `from..to` of every key of `resource`, or of only its `namespace`.
pub(crate) fn bounds(resource: &str, namespace: Option<&str>) -> (Vec<u8>, Vec<u8>) {
    let from = prefix(resource, namespace);
    let mut to = from.clone();
    to.push(0xff);
    (from, to)
}

fn prefix(resource: &str, namespace: Option<&str>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(96);
    for text in std::iter::once(resource).chain(namespace) {
        escape(&mut bytes, text);
        bytes.push(0);
    }
    bytes
}

fn escape(bytes: &mut Vec<u8>, text: &str) {
    for byte in text.bytes() {
        bytes.push(byte);
        if byte == 0 {
            bytes.push(0xff);
        }
    }
}

/// Returns the first part of `bytes`, and the bytes after its separator; `None` for the bytes if no
/// separator follows.
fn part(bytes: &[u8]) -> Option<(String, Option<&[u8]>)> {
    let mut text = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match (byte, bytes.get(at + 1)) {
            (0, Some(0xff)) => at += 1,
            (0, _) => return Some((String::from_utf8(text).ok()?, bytes.get(at + 1..))),
            _ => {}
        }
        text.push(byte);
        at += 1;
    }
    Some((String::from_utf8(text).ok()?, None))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Key, bounds};

    fn key() -> impl Strategy<Value = Key> {
        let part = "[\\x00\\x01ab/é]{0,4}";
        (part, part, part).prop_map(|(resource, namespace, name)| Key { resource, namespace, name })
    }

    proptest! {
        #[test]
        fn round_trip(key in key()) {
            prop_assert_eq!(Key::decode(&key.encode()), Some(key));
        }

        #[test]
        fn bytes_sort_as_keys_do(a in key(), b in key()) {
            prop_assert_eq!(a.encode().cmp(&b.encode()), a.cmp(&b));
        }

        #[test]
        fn bounds_hold_exactly_their_own(a in key(), b in key()) {
            let within = |namespace| {
                let (from, to) = bounds(&b.resource, namespace);
                (from..to).contains(&a.encode())
            };
            prop_assert_eq!(within(None), a.resource == b.resource);
            let same = a.resource == b.resource && a.namespace == b.namespace;
            prop_assert_eq!(within(Some(&b.namespace)), same);
        }

        #[test]
        fn foreign_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..32)) {
            let _ = Key::decode(&bytes);
        }
    }
}
