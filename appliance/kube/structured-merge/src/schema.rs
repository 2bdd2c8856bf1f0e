//! How the fields of a kind merge (structured-merge-diff, `schema/elements.go`).

use std::collections::BTreeMap;

use serde_json::Value;

/// A type of one [`Schema`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TypeId(usize);

/// What a single value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// A number.
    Numeric,
    /// A text.
    String,
    /// True or false.
    Boolean,
    /// Any of them.
    Untyped,
}

/// What values a type admits: any of the parts that are set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Atom {
    /// Single values.
    pub scalar: Option<Scalar>,
    /// Arrays.
    pub list: Option<List>,
    /// Objects.
    pub map: Option<Map>,
}

/// How arrays merge.
#[derive(Debug, Clone, PartialEq)]
pub struct List {
    /// The items' type.
    pub element: TypeId,
    /// The whole array has one owner.
    pub atomic: bool,
    /// The fields that tell items apart, where it is not atomic; none makes it a set of scalars.
    pub keys: Vec<String>,
}

/// How objects merge.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Map {
    /// The declared fields.
    pub fields: BTreeMap<String, Field>,
    /// The type of all other fields; without one there may be no others.
    pub element: Option<TypeId>,
    /// The whole object has one owner.
    pub atomic: bool,
}

/// A declared field.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its type.
    pub of: TypeId,
    /// What it is when it is missing; counts where the field is a key of a list's items.
    pub default: Option<Value>,
}

#[derive(Debug, Clone)]
struct Type {
    atom: Atom,
    named: bool,
}

/// The types of a kind. Types refer to each other by [`TypeId`], so they may be recursive.
#[derive(Debug, Clone)]
pub struct Schema {
    types: Vec<Type>,
    root: TypeId,
}

static NOTHING: Atom = Atom { scalar: None, list: None, map: None };

impl Schema {
    /// Anything, owned as a whole.
    pub const ATOMIC: TypeId = TypeId(0);
    /// Anything: objects field by field, arrays as a whole.
    pub const DEDUCED: TypeId = TypeId(1);

    /// A schema with the two types of unknown content, of which [`Schema::DEDUCED`] is the root.
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

    /// Adds a type that stands where it is used.
    pub fn inline(&mut self, atom: Atom) -> TypeId {
        self.push(Type { atom, named: false })
    }

    /// Adds a type that others refer to; [`Schema::define`] says later what it is.
    pub fn declare(&mut self) -> TypeId {
        self.push(Type { atom: Atom::default(), named: true })
    }

    /// Says what a type is.
    pub fn define(&mut self, id: TypeId, atom: Atom) {
        if let Some(of) = self.types.get_mut(id.0) {
            of.atom = atom;
        }
    }

    /// Makes `id` the type of whole objects.
    #[must_use]
    pub fn rooted(mut self, id: TypeId) -> Self {
        self.root = id;
        self
    }

    fn push(&mut self, of: Type) -> TypeId {
        self.types.push(of);
        TypeId(self.types.len() - 1)
    }

    /// The type of whole objects.
    pub fn root(&self) -> TypeId {
        self.root
    }

    /// What a type admits.
    pub fn atom(&self, id: TypeId) -> &Atom {
        self.types.get(id.0).map_or(&NOTHING, |of| &of.atom)
    }

    /// Whether an object type declares nothing: its content was never known well enough to notice
    /// that it changed.
    pub(crate) fn is_untyped_map(&self, map: &Map) -> bool {
        let Some(element) = map.element.filter(|_| map.fields.is_empty()) else { return false };
        let inline_scalar = || {
            let inline = self.types.get(element.0).is_some_and(|of| !of.named);
            inline && self.atom(element).scalar == Some(Scalar::Untyped)
        };
        element == Self::DEDUCED || inline_scalar()
    }
}

/// The part of an atom that applies to a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part<'s> {
    Scalar(Scalar),
    List(&'s List),
    Map(&'s Map),
    Nothing,
}

/// Which part of an atom a value selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    Scalar,
    List,
    Map,
    /// None: the value is missing, null or of a kind that the atom does not admit.
    Whole,
}

impl Atom {
    /// Which part `value` selects. An atom of one part leaves no choice.
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

    /// The chosen part; of the whole, the first of map, scalar and list.
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

    /// The part that applies to `value`.
    pub(crate) fn part_for(&self, value: Option<&Value>) -> Part<'_> {
        self.part(self.choose(value))
    }
}

impl Map {
    /// The type of the field `name`.
    pub(crate) fn field(&self, name: &str) -> Option<TypeId> {
        self.fields.get(name).map(|field| field.of).or(self.element)
    }
}
