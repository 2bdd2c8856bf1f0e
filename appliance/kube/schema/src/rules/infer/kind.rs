//! CEL types, and their compatibility.

use std::fmt;
use std::rc::Rc;

use super::declared::Declared;

/// Type of a CEL value.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::rules) enum Kind<'a> {
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Null,
    Duration,
    Timestamp,
    /// Type that is known only at run time.
    Dyn,
    /// Type of types: its values are types.
    Type,
    List(Rc<Kind<'a>>),
    Map(Rc<Kind<'a>>, Rc<Kind<'a>>),
    Optional(Rc<Kind<'a>>),
    /// Object with named fields.
    Object(Declared<'a>),
    /// Type that a library defines, by name.
    Library(&'static str),
    /// Type parameter in a signature, as one letter.
    Any(char),
}

/// Types that are bound to the type parameters of a signature.
pub(in crate::rules) type Bindings<'a> = Vec<(char, Kind<'a>)>;

/// Returns true if `name` is the name of a type in a rule.
pub(in crate::rules) fn is_type_name(name: &str) -> bool {
    const NAMES: [&str; 10] =
        ["int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type"];
    NAMES.contains(&name)
}

impl<'a> Kind<'a> {
    /// Returns true if a value of the type `given` is accepted; binds type parameters.
    pub fn accepts(&self, given: &Kind<'a>, bindings: &mut Bindings<'a>) -> bool {
        match (self, given) {
            (Self::Any(letter), given) => {
                match bindings.iter().find(|(bound, _)| bound == letter).cloned() {
                    None => {
                        bindings.push((*letter, given.clone()));
                        true
                    }
                    // A placeholder bound to `Dyn` is bound again to the more specific type.
                    Some((_, Self::Dyn)) => {
                        bindings.retain(|(bound, _)| bound != letter);
                        bindings.push((*letter, given.clone()));
                        true
                    }
                    Some((_, bound)) => {
                        bound.accepts(given, bindings) || given.accepts(&bound, bindings)
                    }
                }
            }
            (Self::Dyn, _) | (_, Self::Dyn) => true,
            (Self::List(one), Self::List(other)) | (Self::Optional(one), Self::Optional(other)) => {
                one.accepts(other, bindings)
            }
            (Self::Map(key, value), Self::Map(given_key, given_value)) => {
                key.accepts(given_key, bindings) && value.accepts(given_value, bindings)
            }
            (
                Self::Object(_)
                | Self::Library(_)
                | Self::Optional(_)
                | Self::Timestamp
                | Self::Duration,
                Self::Null,
            ) => true,
            (one, other) => one == other,
        }
    }

    /// Returns the type with its type parameters replaced; by `Dyn` if there is no binding.
    pub fn filled(&self, bindings: &Bindings<'a>) -> Kind<'a> {
        match self {
            Self::Any(letter) => {
                let bound = bindings.iter().find(|(bound, _)| bound == letter);
                bound.map_or(Self::Dyn, |(_, kind)| kind.clone())
            }
            Self::List(item) => Self::List(Rc::new(item.filled(bindings))),
            Self::Optional(inner) => Self::Optional(Rc::new(inner.filled(bindings))),
            Self::Map(key, value) => {
                Self::Map(Rc::new(key.filled(bindings)), Rc::new(value.filled(bindings)))
            }
            other => other.clone(),
        }
    }

    /// Returns true if the type contains other types.
    pub fn has_parts(&self) -> bool {
        matches!(self, Self::List(_) | Self::Map(..) | Self::Optional(_))
    }

    /// Returns true if every value of the type has the same size.
    pub fn is_scalar(&self) -> bool {
        match self {
            Self::Optional(inner) => inner.is_scalar(),
            Self::Bool
            | Self::Double
            | Self::Duration
            | Self::Int
            | Self::Timestamp
            | Self::Uint => true,
            _ => false,
        }
    }
}

impl fmt::Display for Kind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::Text => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Null => f.write_str("null"),
            Self::Duration => f.write_str("duration"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Dyn => f.write_str("dyn"),
            Self::Type => f.write_str("type"),
            Self::List(item) => write!(f, "list({item})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Optional(inner) => write!(f, "optional_type({inner})"),
            Self::Object(_) => f.write_str("object"),
            Self::Library(name) => f.write_str(name),
            Self::Any(letter) => write!(f, "{letter}"),
        }
    }
}
