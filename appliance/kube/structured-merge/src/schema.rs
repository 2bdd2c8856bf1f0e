//! Merge rules for the fields of a kind (structured-merge-diff, `schema/elements.go`).

use std::collections::BTreeMap;

use serde_json::Value;

/// Index of a type in one [`Schema`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TypeId(usize);

/// Scalar types that a field may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// Integer or floating-point number.
    Numeric,
    /// Text of any length.
    String,
    /// Boolean: true or false.
    Boolean,
    /// Scalar of any type.
    Untyped,
}

/// Values that a type allows: scalars, arrays, objects, or several of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Atom {
    /// Rule for scalars; `None` if the type does not allow them.
    pub scalar: Option<Scalar>,
    /// Rule for arrays; `None` if the type does not allow them.
    pub list: Option<List>,
    /// Rule for objects; `None` if the type does not allow them.
    pub map: Option<Map>,
}

/// Merge rule for arrays.
#[derive(Debug, Clone, PartialEq)]
pub struct List {
    /// Type of the items.
    pub element: TypeId,
    /// True if the whole array has one owner.
    pub atomic: bool,
    /// Key fields that identify items, for an array that is not atomic. Without keys, the array is
    /// a set of scalars.
    pub keys: Vec<String>,
}

/// Merge rule for objects.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Map {
    /// Declared fields by name.
    pub fields: BTreeMap<String, Field>,
    /// Type of undeclared fields; `None` if undeclared fields are not allowed.
    pub element: Option<TypeId>,
    /// True if the whole object has one owner.
    pub atomic: bool,
}

/// Declared field of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Type of the field.
    pub of: TypeId,
    /// Default of a missing field; used only if the field is a key of list items.
    pub default: Option<Value>,
}

#[derive(Debug, Clone)]
struct Type {
    atom: Atom,
    named: bool,
}

/// Types of a kind. Types refer to each other by [`TypeId`], and may therefore be recursive.
#[derive(Debug, Clone)]
pub struct Schema {
    types: Vec<Type>,
    root: TypeId,
}

static NOTHING: Atom = Atom { scalar: None, list: None, map: None };

impl Schema {
    /// Type of any value that has one owner as a whole.
    pub const ATOMIC: TypeId = TypeId(0);
    /// Type of any value: objects are owned field by field, arrays as a whole.
    pub const DEDUCED: TypeId = TypeId(1);

    /// Creates a schema for unknown objects, with [`Schema::DEDUCED`] as the root.
    pub fn deduced() -> Self {
        let untyped = |element, atomic| Atom {
            scalar: Some(Scalar::Untyped),
            list: Some(List { element: Self::ATOMIC, atomic: true, keys: Vec::new() }),
            map: Some(Map { fields: BTreeMap::new(), element: Some(element), atomic }),
        };
        let types = vec![
            Type { atom: untyped(Self::ATOMIC, true), named: true },
            Type { atom: untyped(Self::DEDUCED, false), named: true },
        ];
        Self { types, root: Self::DEDUCED }
    }

    /// Adds a type for one location, which is never referenced by name.
    pub fn inline(&mut self, atom: Atom) -> TypeId {
        self.push(Type { atom, named: false })
    }

    /// Adds a named type that other types can refer to; [`Schema::define`] sets its content later.
    pub fn declare(&mut self) -> TypeId {
        self.push(Type { atom: Atom::default(), named: true })
    }

    /// Sets the content of a type.
    pub fn define(&mut self, id: TypeId, atom: Atom) {
        if let Some(of) = self.types.get_mut(id.0) {
            of.atom = atom;
        }
    }

    /// Sets the type of whole objects to `id`.
    #[must_use]
    pub fn rooted(mut self, id: TypeId) -> Self {
        self.root = id;
        self
    }

    fn push(&mut self, of: Type) -> TypeId {
        self.types.push(of);
        TypeId(self.types.len() - 1)
    }

    /// Returns the type of whole objects.
    pub fn root(&self) -> TypeId {
        self.root
    }

    /// Returns the values that a type allows.
    pub fn atom(&self, id: TypeId) -> &Atom {
        self.types.get(id.0).map_or(&NOTHING, |of| &of.atom)
    }

    /// Returns true for an object type without declared fields. A later change of its type cannot
    /// be detected, because its fields were never known.
    pub(crate) fn is_untyped_map(&self, map: &Map) -> bool {
        let Some(element) = map.element.filter(|_| map.fields.is_empty()) else { return false };
        let inline_scalar = || {
            let inline = self.types.get(element.0).is_some_and(|of| !of.named);
            inline && self.atom(element).scalar == Some(Scalar::Untyped)
        };
        element == Self::DEDUCED || inline_scalar()
    }
}

/// Part of an atom that applies to a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part<'s> {
    Scalar(Scalar),
    List(&'s List),
    Map(&'s Map),
    Nothing,
}

/// Part of an atom that a value selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    Scalar,
    List,
    Map,
    /// The value selects no part: it is missing, null or of a kind that the type does not allow.
    Whole,
}

impl Atom {
    /// Returns the part that `value` selects. An atom with one part always selects that part.
    pub(crate) fn choose(&self, value: Option<&Value>) -> Choice {
        match (&self.scalar, &self.list, &self.map) {
            (Some(_), None, None) => return Choice::Scalar,
            (None, Some(_), None) => return Choice::List,
            (None, None, Some(_)) => return Choice::Map,
            _ => {}
        }
        match value {
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) if self.scalar.is_some() => {
                Choice::Scalar
            }
            Some(Value::Array(_)) if self.list.is_some() => Choice::List,
            Some(Value::Object(_)) if self.map.is_some() => Choice::Map,
            _ => Choice::Whole,
        }
    }

    /// Returns the selected part; for [`Choice::Whole`], the first of map, scalar and list.
    pub(crate) fn part(&self, choice: Choice) -> Part<'_> {
        let scalar = self.scalar.map(Part::Scalar);
        let list = self.list.as_ref().map(Part::List);
        let map = self.map.as_ref().map(Part::Map);
        let part = match choice {
            Choice::Scalar => scalar,
            Choice::List => list,
            Choice::Map => map,
            Choice::Whole => map.or(scalar).or(list),
        };
        part.unwrap_or(Part::Nothing)
    }

    /// Returns the part that applies to `value`.
    pub(crate) fn part_for(&self, value: Option<&Value>) -> Part<'_> {
        self.part(self.choose(value))
    }
}

impl Map {
    /// Returns the type of the field `name`; `None` if the field is not allowed.
    pub(crate) fn field(&self, name: &str) -> Option<TypeId> {
        self.fields.get(name).map(|field| field.of).or(self.element)
    }
}
