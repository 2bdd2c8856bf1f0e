//! Declarations of values for rules: types, and maximum sizes in one request (apiserver
//! `pkg/cel/common/schemas.go`, `pkg/cel/limits.go`).

use std::rc::Rc;

use super::kind::Kind;
use crate::node::{Additional, Node};
use crate::rules::field_name::{escape, property_of};
use crate::text::format::Format;

/// Maximum size of a request, in bytes.
const MAX_REQUEST_BYTES: u64 = 3 * 1024 * 1024;

/// Declaration of a value that a rule can use.
#[derive(Debug, Clone, Copy)]
pub(in crate::rules) enum Declared<'a> {
    /// Value with a schema; the flag is true for a whole object with type and metadata.
    Of(&'a Node, bool),
    /// Metadata of a whole object.
    Metadata,
    /// String without a length limit.
    Text,
    /// Key of a map.
    Key,
}

impl PartialEq for Declared<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Of(one, _), Self::Of(other, _)) => std::ptr::eq(*one, *other),
            (Self::Metadata, Self::Metadata)
            | (Self::Text, Self::Text)
            | (Self::Key, Self::Key) => true,
            _ => false,
        }
    }
}

impl<'a> Declared<'a> {
    /// Returns the CEL type; `None` for a schema without type, whose value rules cannot use.
    pub fn kind(self) -> Option<Kind<'a>> {
        match self {
            Self::Text | Self::Key => Some(Kind::Text),
            Self::Metadata => Some(Kind::Object(self)),
            Self::Of(node, _) if node.int_or_string => Some(Kind::Dyn),
            Self::Of(node, _) => Some(match node.kind() {
                "array" => Kind::List(Rc::new(self.items()?.kind()?)),
                "object" => match &node.additional {
                    Some(Additional::Of(_)) => {
                        Kind::Map(Rc::new(Kind::Text), Rc::new(self.values()?.kind()?))
                    }
                    _ => Kind::Object(self),
                },
                "string" => match node.limits.format {
                    Some(Format::Byte) => Kind::Bytes,
                    Some(Format::Duration) => Kind::Duration,
                    Some(Format::Date | Format::DateTime) => Kind::Timestamp,
                    _ => Kind::Text,
                },
                "boolean" => Kind::Bool,
                "number" => Kind::Double,
                "integer" => Kind::Int,
                _ => return None,
            }),
        }
    }

    pub fn items(self) -> Option<Self> {
        match self {
            Self::Of(node, _) => node.items().map(|items| Self::Of(items, items.embedded)),
            _ => None,
        }
    }

    pub fn values(self) -> Option<Self> {
        match self {
            Self::Of(node, _) => {
                node.additional_node().map(|values| Self::Of(values, values.embedded))
            }
            _ => None,
        }
    }

    /// Returns the declaration of a field by its name in rules; `None` if rules cannot use it.
    pub fn field(self, name: &str) -> Option<Self> {
        match self {
            Self::Metadata if matches!(name, "name" | "generateName") => Some(Self::Text),
            Self::Of(_, true) if matches!(name, "apiVersion" | "kind") => Some(Self::Text),
            Self::Of(_, true) if name == "metadata" => Some(Self::Metadata),
            Self::Of(node, _) => {
                let (_, below) = property_of(node, name)?;
                let below = Self::Of(below, below.embedded);
                below.kind().is_some().then_some(below)
            }
            _ => None,
        }
    }

    /// Returns the maximum number of characters, items or entries of the value.
    pub fn max_elements(self) -> u64 {
        let limit = |limit: Option<i64>| limit.map(|limit| u64::try_from(limit).unwrap_or(0));
        let Self::Of(node, _) = self else {
            return if self == Self::Text { MAX_REQUEST_BYTES - 2 } else { 0 };
        };
        // A character takes up to four bytes.
        let max_length = limit(node.limits.max_length).map(|length| length.saturating_mul(4));
        if node.int_or_string {
            return max_length.unwrap_or(MAX_REQUEST_BYTES - 2);
        }
        match (node.kind(), node.limits.format) {
            ("array", _) => limit(node.limits.max_items).unwrap_or_else(|| {
                let item = self.items().map_or(0, Self::min_bytes);
                (MAX_REQUEST_BYTES - 2) / (item + 1)
            }),
            ("object", _) => match self.values() {
                None => 0,
                Some(values) => limit(node.limits.max_properties)
                    .unwrap_or_else(|| (MAX_REQUEST_BYTES - 2) / (values.min_bytes() + 6)),
            },
            ("string", Some(Format::Duration | Format::DateTime)) => 32,
            ("string", Some(Format::Date)) => 12,
            ("string", Some(Format::Byte)) => {
                limit(node.limits.max_length).unwrap_or(MAX_REQUEST_BYTES - 2)
            }
            ("string", _) => max_length.unwrap_or_else(|| match node.allowed.is_empty() {
                true => MAX_REQUEST_BYTES - 2,
                false => {
                    let lengths = node.allowed.iter().filter_map(|one| one.as_str().map(str::len));
                    lengths.max().unwrap_or_default() as u64
                }
            }),
            _ => 0,
        }
    }

    /// Returns the minimum size of the value's JSON, in bytes.
    pub fn min_bytes(self) -> u64 {
        let Self::Of(node, _) = self else { return 2 };
        if node.int_or_string {
            return 1;
        }
        match (node.kind(), node.limits.format) {
            ("object", _) if node.additional_node().is_none() => {
                let required = node.required.iter().filter_map(|name| {
                    let below = node.properties.get(name).filter(|one| one.default.is_none())?;
                    let below = Self::Of(below, below.embedded);
                    below.kind()?;
                    escape(name)?;
                    Some(name.len() as u64 + below.min_bytes() + 4)
                });
                2 + required.sum::<u64>()
            }
            ("string", Some(Format::Duration)) => 3,
            ("string", Some(Format::DateTime)) => 21,
            ("string", Some(Format::Date)) => 12,
            ("boolean", _) => 4,
            ("integer" | "number", _) => 1,
            _ => 2,
        }
    }

    /// Returns the maximum number of values of this declaration in one request.
    pub fn max_cardinality(self) -> u64 {
        MAX_REQUEST_BYTES / (self.min_bytes() + 1)
    }
}
