//! Maximum cost of expressions and maximum size of their values.

use super::declared::Declared;
use super::kind::Kind;
use super::place::Position;
use kube_cel::cel::common::ast::operators;

/// Cost of creating a list.
pub(in crate::rules) const LIST_COST: u64 = 10;
/// Cost of creating a map.
pub(in crate::rules) const MAP_COST: u64 = 30;

/// Assumed length of the regular expression of a named format, as upstream.
const FORMAT_LENGTH: u64 = 128;

/// Size of a value in characters, items or entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::rules) struct Size {
    pub min: u64,
    pub max: u64,
}

impl Size {
    pub const UNKNOWN: Self = Self { min: 0, max: u64::MAX };

    pub fn fixed(size: u64) -> Self {
        Self { min: size, max: size }
    }

    fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    fn times(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// Returns the maximum cost of reading every character, `times` times.
    fn traversed(self, times: u64) -> u64 {
        tenths(self.max, times)
    }
}

fn tenths(size: u64, times: u64) -> u64 {
    let tenths = (u128::from(size) * u128::from(times)).div_ceil(10);
    if size == u64::MAX { u64::MAX } else { u64::try_from(tenths).unwrap_or(u64::MAX) }
}

fn quarters(size: u64) -> u64 {
    if size == u64::MAX { u64::MAX } else { size.div_ceil(4) }
}

/// Known properties of an expression: type, maximum cost and maximum size.
#[derive(Debug, Clone)]
pub(in crate::rules) struct Estimate<'a> {
    pub kind: Kind<'a>,
    pub cost: u64,
    pub size: Option<Size>,
    /// Sizes of keys and values in a list or map that the rule created.
    pub entries: Option<(Size, Size)>,
    /// Declaration of the value in the schema; `None` for a value that the rule created.
    pub declared: Option<Declared<'a>>,
    /// Value of an integer literal that is not negative.
    pub number: Option<u64>,
    /// Position of the expression in the rule's text.
    pub place: Position,
}

impl<'a> Estimate<'a> {
    pub fn of(kind: Kind<'a>, cost: u64) -> Self {
        let place = Position::START;
        Self { kind, cost, size: None, entries: None, declared: None, number: None, place }
    }

    pub fn declared(kind: Kind<'a>, declared: Declared<'a>) -> Self {
        Self { declared: Some(declared), ..Self::of(kind, 0) }
    }

    fn size(&self) -> Size {
        let declared = self.declared.map(|place| Size { min: 0, max: place.max_elements() });
        let own = self.size.filter(|_| self.declared.is_none());
        let scalar = self.kind.is_scalar().then(|| Size::fixed(1));
        own.or(declared).or(scalar).unwrap_or(Size::UNKNOWN)
    }

    /// Returns the estimate of an element, when the value is iterated over or indexed.
    pub fn entry(
        &self,
        kind: Kind<'a>,
        below: impl Fn(Declared<'a>) -> Option<Declared<'a>>,
        is_key: bool,
    ) -> Self {
        match self.declared.and_then(below) {
            Some(below) => Self::declared(kind, below),
            None => {
                let size = self.entries.map(|(key, value)| if is_key { key } else { value });
                let size = size.filter(|_| !kind.is_scalar());
                Self { size, ..Self::of(kind, 0) }
            }
        }
    }
}

fn sum<'k, 'a: 'k>(parts: impl IntoIterator<Item = &'k Estimate<'a>>) -> u64 {
    parts.into_iter().fold(0, |sum, part| sum.saturating_add(part.cost))
}

fn joined(items: &[Estimate<'_>]) -> Size {
    let sizes = items.iter().map(Estimate::size);
    sizes.reduce(Size::union).unwrap_or(Size::fixed(0))
}

pub(in crate::rules) fn list<'a>(kind: Kind<'a>, items: &[Estimate<'a>]) -> Estimate<'a> {
    Estimate {
        size: Some(Size::fixed(items.len() as u64)),
        entries: Some((Size::fixed(1), joined(items))),
        ..Estimate::of(kind, sum(items).saturating_add(LIST_COST))
    }
}

pub(in crate::rules) fn map<'a>(
    kind: Kind<'a>,
    keys: &[Estimate<'a>],
    values: &[Estimate<'a>],
) -> Estimate<'a> {
    Estimate {
        size: Some(Size::fixed(keys.len() as u64)),
        entries: Some((joined(keys), joined(values))),
        ..Estimate::of(kind, sum(keys.iter().chain(values)).saturating_add(MAP_COST))
    }
}

pub(in crate::rules) fn comprehension<'a>(
    range: &Estimate<'a>,
    start: &Estimate<'a>,
    [condition, step]: [&Estimate<'a>; 2],
    result: &Estimate<'a>,
) -> Estimate<'a> {
    let count = range.size();
    let each = condition.cost.saturating_add(step.cost);
    let looped = count.max.saturating_mul(each);
    let cost = [range.cost, start.cost, looped, result.cost];
    let cost = cost.into_iter().fold(0, u64::saturating_add);
    let grows = matches!(start.kind, Kind::List(_) | Kind::Map(..));
    Estimate {
        size: if grows { Some(count) } else { start.size },
        entries: if grows { step.entries } else { None },
        ..Estimate::of(result.kind.clone(), cost)
    }
}

/// Returns the estimate for a function call whose overload is known.
pub(in crate::rules) fn call<'a>(
    name: &str,
    kind: Kind<'a>,
    target: Option<&Estimate<'a>>,
    args: &[Estimate<'a>],
) -> Estimate<'a> {
    let target_cost = target.map_or(0, |target| target.cost);
    let mut known = match target {
        Some(target) => method(name, kind.clone(), target, args),
        None => None,
    }
    .or_else(|| function(name, kind.clone(), args))
    .unwrap_or_else(|| Estimate::of(kind, 1));
    // A conditional costs only the more expensive branch; a logical operator costs both sides.
    let args_cost = match (name, args) {
        (operators::CONDITIONAL, [condition, yes, no]) => {
            condition.cost.saturating_add(yes.cost.max(no.cost))
        }
        _ => sum(args),
    };
    known.cost = known.cost.saturating_add(args_cost).saturating_add(target_cost);
    known
}

fn function<'a>(name: &str, kind: Kind<'a>, args: &[Estimate<'a>]) -> Option<Estimate<'a>> {
    let sized =
        |cost: u64, size: Size| Estimate { size: Some(size), ..Estimate::of(Kind::Dyn, cost) };
    let known = match (name, args) {
        (operators::LOGICAL_AND | operators::LOGICAL_OR, _) => Estimate::of(Kind::Dyn, 0),
        (operators::CONDITIONAL, [_, yes, no]) => {
            let entries = yes.entries.zip(no.entries);
            let entries = entries.map(|(yes, no)| (yes.0.union(no.0), yes.1.union(no.1)));
            Estimate { entries, ..sized(0, yes.size().union(no.size())) }
        }
        (operators::EQUALS | operators::NOT_EQUALS, [left, right]) => {
            let is_constant = |kind: &Kind<'_>| match kind {
                Kind::Library(name) => *name != "kubernetes.URL",
                _ => false,
            };
            match name == operators::EQUALS && is_constant(&left.kind) {
                true => Estimate::of(Kind::Dyn, 1),
                false => Estimate::of(Kind::Dyn, tenths(left.size().max.min(right.size().max), 1)),
            }
        }
        (
            operators::LESS
            | operators::LESS_EQUALS
            | operators::GREATER
            | operators::GREATER_EQUALS,
            [left, right],
        ) if matches!(left.kind, Kind::Text | Kind::Bytes | Kind::Dyn) => {
            Estimate::of(Kind::Dyn, tenths(left.size().max.min(right.size().max), 1).max(1))
        }
        (operators::ADD, [left, right]) => {
            let size = left.size().plus(right.size());
            let entries = left.entries.zip(right.entries);
            let entries =
                entries.map(|(left, right)| (left.0.union(right.0), left.1.union(right.1)));
            match kind {
                Kind::List(_) => Estimate { entries, ..sized(1, size) },
                Kind::Text | Kind::Bytes => sized(size.traversed(1), size),
                Kind::Dyn => sized(size.traversed(1).max(1), size),
                _ => return None,
            }
        }
        (operators::IN, [_, list]) if matches!(list.kind, Kind::List(_) | Kind::Dyn) => {
            Estimate::of(Kind::Dyn, list.size().max.max(1))
        }
        (operators::INDEX, [container, _]) => match &container.kind {
            Kind::List(_) => {
                Estimate { cost: 1, ..container.entry(kind.clone(), Declared::items, false) }
            }
            Kind::Map(..) => {
                Estimate { cost: 1, ..container.entry(kind.clone(), Declared::values, false) }
            }
            _ => return None,
        },
        _ => return conversion(name, kind, args),
    };
    Some(Estimate { kind, ..known })
}

/// Returns the estimate for a function that parses a string or converts a value.
fn conversion<'a>(name: &str, kind: Kind<'a>, args: &[Estimate<'a>]) -> Option<Estimate<'a>> {
    let sized =
        |cost: u64, size: Size| Estimate { size: Some(size), ..Estimate::of(Kind::Dyn, cost) };
    let known = match (name, args) {
        ("dyn", [value]) => Estimate { cost: 1, ..value.clone() },
        ("bytes", [text]) if text.kind == Kind::Text => {
            let size = text.size();
            sized(size.traversed(1), Size { min: size.min, max: size.max.saturating_mul(4) })
        }
        ("string", [bytes]) if bytes.kind == Kind::Bytes => {
            let size = bytes.size();
            sized(size.traversed(1), Size { min: size.min / 4, max: size.max })
        }
        ("strings.quote", [text]) => {
            let size = text.size();
            let max = size.max.saturating_mul(2).saturating_add(2);
            sized(size.traversed(1), Size { min: size.min.saturating_add(2), max })
        }
        ("lists.range", [end]) => {
            let size = Size::fixed(end.number.unwrap_or(u64::MAX));
            sized(size.max.saturating_add(1 + LIST_COST), size)
        }
        ("sets.contains" | "sets.intersects" | "sets.equivalent", [one, other]) => {
            let pairs = one.size().times(other.size()).max;
            let times = if name == "sets.equivalent" { 2 } else { 1 };
            Estimate::of(Kind::Dyn, pairs.saturating_mul(times).saturating_add(1))
        }
        ("matches", [text, pattern]) => Estimate::of(Kind::Dyn, matching(text, pattern)),
        ("url" | "jsonpatch.escapeKey", [text]) => sized(text.size().traversed(1), text.size()),
        ("ip.isCanonical", [text, ..]) => Estimate::of(Kind::Dyn, text.size().traversed(2)),
        (
            "ip" | "isIP" | "cidr" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver",
            [text, ..],
        ) => Estimate::of(Kind::Dyn, text.size().traversed(1)),
        _ => return None,
    };
    Some(Estimate { kind, ..known })
}

fn method<'a>(
    name: &str,
    kind: Kind<'a>,
    target: &Estimate<'a>,
    args: &[Estimate<'a>],
) -> Option<Estimate<'a>> {
    let own = target.size();
    let sized =
        |cost: u64, size: Size| Estimate { size: Some(size), ..Estimate::of(Kind::Dyn, cost) };
    let known = match (name, args) {
        ("startsWith" | "endsWith", [part]) => Estimate::of(Kind::Dyn, part.size().traversed(1)),
        ("contains", [part]) => {
            Estimate::of(Kind::Dyn, own.traversed(1).saturating_mul(part.size().traversed(1)))
        }
        ("matches", [pattern]) => Estimate::of(Kind::Dyn, matching(target, pattern)),
        ("find" | "findAll", [pattern, ..]) => {
            sized(matching(target, pattern), Size { min: 0, max: own.max })
        }
        ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", _) => match &target.kind {
            Kind::List(item) => {
                // Upstream finds the size of an element only by the element's path in the schema.
                let below = target.declared.and_then(Declared::items);
                let each = match (item.as_ref(), below) {
                    (Kind::Text | Kind::Bytes, Some(below)) => tenths(below.max_elements(), 1),
                    (Kind::Text | Kind::Bytes, None) => u64::MAX,
                    _ => 0,
                };
                Estimate::of(Kind::Dyn, own.max.saturating_mul(each.saturating_add(1)))
            }
            _ => Estimate::of(Kind::Dyn, own.traversed(1)),
        },
        ("slice" | "reverse" | "flatten" | "distinct" | "sort", _) => made_list(name, target, args),
        ("lowerAscii" | "upperAscii" | "substring" | "trim", _) => sized(own.traversed(1), own),
        ("replace", [from, to, ..]) => {
            sized(own.traversed(2), replaced(own, from.size(), to.size()))
        }
        ("split", _) => {
            let max = args.get(1).and_then(|limit| limit.number).unwrap_or(own.max);
            sized(own.traversed(2), Size { min: 0, max })
        }
        ("join", _) => {
            let item = match target.declared.and_then(Declared::items) {
                Some(below) => Size { min: 0, max: below.max_elements() },
                None => Size::UNKNOWN,
            };
            let mut size = own.times(item);
            if let [separator, ..] = args {
                let gaps = Size { min: own.min.saturating_sub(1), max: own.max.saturating_sub(1) };
                size = size.plus(separator.size().times(gaps));
            }
            sized(size.traversed(1), size)
        }
        ("format", _) => Estimate::of(Kind::Dyn, own.traversed(1)),
        ("containsIP" | "containsCIDR", [other]) => {
            let parsed = match other.kind {
                Kind::Library(_) => 0,
                _ => other.size().traversed(1),
            };
            let masked = if name == "containsCIDR" { 3 } else { 0 };
            Estimate::of(Kind::Dyn, parsed.saturating_add(4 + masked))
        }
        ("validate", [text]) => {
            Estimate::of(Kind::Dyn, text.size().traversed(1).saturating_mul(FORMAT_LENGTH / 4))
        }
        _ => return None,
    };
    Some(Estimate { kind, ..known })
}

/// Returns the estimate for a list created from the items of another (cel-go `ext/lists.go`).
fn made_list<'a>(name: &str, list: &Estimate<'a>, args: &[Estimate<'a>]) -> Estimate<'a> {
    let own = list.size();
    let number = |at: usize| args.get(at).and_then(|arg| arg.number);
    let (looked_at, size) = match (name, &list.kind) {
        ("slice", _) => {
            let end = number(1).unwrap_or(own.max);
            let size = end.saturating_sub(number(0).unwrap_or(0));
            (size, Size::fixed(size))
        }
        ("flatten", _) => {
            let levels = if args.is_empty() { 1 } else { number(0).unwrap_or(u64::MAX) };
            (own.max.saturating_mul(levels), own)
        }
        ("sort", Kind::List(item)) if matches!(**item, Kind::Text | Kind::Bytes) => {
            (tenths(own.times(own).max, 21), own.times(own))
        }
        ("distinct" | "sort", _) => (own.times(own).max.saturating_mul(2), own.times(own)),
        _ => (own.max, own),
    };
    let cost = looked_at.saturating_add(1 + LIST_COST);
    Estimate { size: Some(size), ..Estimate::of(Kind::Dyn, cost) }
}

/// Returns the cost of matching a regular expression: characters × estimated states.
fn matching(text: &Estimate<'_>, pattern: &Estimate<'_>) -> u64 {
    let characters = text.size().max.saturating_add(1);
    tenths(characters, 1).saturating_mul(quarters(pattern.size().max))
}

/// Returns the maximum size of the text that a replacement creates.
fn replaced(own: Size, from: Size, to: Size) -> Size {
    let (count, kept) = match from.min {
        0 => (own.max.saturating_add(1), own.max),
        least if to.max <= least => (0, own.max),
        least => (own.max.div_ceil(least), 0),
    };
    Size { min: 0, max: count.saturating_mul(to.max).saturating_add(kept) }
}
