//! Lists and sets: equality, `+`, and library functions (cel-go `ext/{lists,sets}.go`, apiserver
//! `pkg/cel/library/lists.go`, `pkg/cel/common/valuesunstructured.go`).

use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use kube_cel::cel::Value as Foreign;
use kube_cel::cel::common::ast::operators;

use super::library::NO_OVERLOAD;
use super::operator::{Words, binary, compare, entry, equal as equal_values};
use super::val::Val;
use crate::node::{ListType, Node};

fn no_overload<T>() -> Result<T, Words> {
    Err(NO_OVERLOAD.to_owned())
}

/// Returns true if two lists are equal. The type of the left list decides if order matters.
pub(in crate::rules) fn equal(left: &Val<'_>, right: &Val<'_>) -> bool {
    if left.size() != right.size() {
        return false;
    }
    let (Some(ones), Some(mut others)) = (left.elements(), right.elements()) else { return false };
    match ItemIdentity::apart(left) {
        None => ones.zip(others).all(|(one, other)| equal_values(&one, &other)),
        Some(identity) => {
            let index = Index::of(identity, ones.collect());
            others.all(|other| index.has(&other))
        }
    }
}

/// Computes `left + right`. A set adds only new items. In a list of type map, items of `right`
/// replace items with the same keys. The result has the type of the left list.
pub(in crate::rules) fn concatenate<'a>(left: Val<'a>, right: &Val<'a>) -> Val<'a> {
    let identity = ItemIdentity::apart(&left);
    let like = left.list_type().map(|(node, _)| node);
    let items = match left {
        Val::List(items, _) => items,
        other => Rc::new(other.elements().into_iter().flatten().collect()),
    };
    let added = right.elements().into_iter().flatten();
    let Some(identity) = identity else {
        let mut items = items;
        Rc::make_mut(&mut items).extend(added);
        return Val::List(items, like);
    };
    let mut index = Index::of(identity, Rc::unwrap_or_clone(items));
    let own = index.items.len();
    for item in added {
        match (identity, index.like(&item)) {
            (ItemIdentity::ByKeys(_), Some(at)) if at < own => index.items[at] = item,
            (ItemIdentity::ByValue, Some(_)) => {}
            _ => index.push(item),
        }
    }
    Val::List(Rc::new(index.items), like)
}

/// Identity of the items of a list.
#[derive(Clone, Copy)]
enum ItemIdentity<'n> {
    ByValue,
    ByKeys(&'n Node),
}

impl<'n> ItemIdentity<'n> {
    /// Returns the identity rule of a list; `None` if items are identified by position.
    fn apart(list: &Val<'n>) -> Option<Self> {
        match list.list_type()? {
            (_, ListType::Set) => Some(Self::ByValue),
            (node, ListType::Map) => Some(Self::ByKeys(node)),
            (_, ListType::Atomic) => None,
        }
    }

    fn keys<'v>(self, item: &'v Val<'_>) -> impl Iterator<Item = Option<Val<'v>>> + use<'v, 'n>
    where
        'n: 'v,
    {
        let names = match self {
            Self::ByValue => &[],
            Self::ByKeys(node) => node.list_map_keys(),
        };
        names.iter().map(|name| entry(item, &Val::text(name)))
    }

    fn mark(self, item: &Val<'_>) -> u64 {
        match self {
            Self::ByValue => mark(item),
            Self::ByKeys(_) => {
                let mut hasher = DefaultHasher::new();
                for key in self.keys(item) {
                    key.map(|key| mark(&key)).hash(&mut hasher);
                }
                hasher.finish()
            }
        }
    }

    fn alike(self, one: &Val<'_>, other: &Val<'_>) -> bool {
        match self {
            Self::ByValue => equal_values(one, other),
            Self::ByKeys(_) => self.keys(one).zip(self.keys(other)).all(|pair| match pair {
                (Some(one), Some(other)) => equal_values(&one, &other),
                (one, other) => one.is_none() && other.is_none(),
            }),
        }
    }
}

/// Items with an index for fast lookup.
struct Index<'n, 'a> {
    identity: ItemIdentity<'n>,
    items: Vec<Val<'a>>,
    by_mark: HashMap<u64, Vec<usize>>,
}

impl<'n, 'a> Index<'n, 'a> {
    fn of(identity: ItemIdentity<'n>, items: Vec<Val<'a>>) -> Self {
        let mut by_mark: HashMap<u64, Vec<usize>> = HashMap::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            by_mark.entry(identity.mark(item)).or_default().push(at);
        }
        Self { identity, items, by_mark }
    }

    fn push(&mut self, item: Val<'a>) {
        let places = self.by_mark.entry(self.identity.mark(&item)).or_default();
        places.push(self.items.len());
        self.items.push(item);
    }

    /// Returns the positions of items that may match `item`.
    fn near(&self, item: &Val<'_>) -> impl Iterator<Item = usize> {
        let places = self.by_mark.get(&self.identity.mark(item));
        places.into_iter().flatten().copied()
    }

    /// Returns the position of an item with the same identity as `item`.
    fn like(&self, item: &Val<'_>) -> Option<usize> {
        self.near(item).find(|at| self.identity.alike(&self.items[*at], item))
    }

    /// Returns true if an item equals `item`.
    fn has(&self, item: &Val<'_>) -> bool {
        self.near(item).any(|at| equal_values(&self.items[at], item))
    }
}

/// Returns a hash that is the same for equal values; item order matters except in sets and maps.
#[expect(clippy::cast_precision_loss, reason = "equal numbers are the same float")]
fn mark(value: &Val<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    let number = |number: f64| if number == 0.0 { 0 } else { number.to_bits() };
    match value {
        Val::Null | Val::Failed(_) => {}
        Val::Bool(flag) => flag.hash(&mut hasher),
        Val::Int(one) => number(*one as f64).hash(&mut hasher),
        Val::Uint(one) => number(*one as f64).hash(&mut hasher),
        Val::Double(one) => number(*one).hash(&mut hasher),
        Val::Text(text) => text.hash(&mut hasher),
        Val::Kind(name) => name.hash(&mut hasher),
        Val::Quantity(quantity) => quantity.hash(&mut hasher),
        Val::Optional(inner) => inner.as_deref().map(mark).hash(&mut hasher),
        Val::Foreign(Foreign::Bytes(bytes)) => bytes.hash(&mut hasher),
        Val::Foreign(Foreign::Duration(duration)) => duration.num_seconds().hash(&mut hasher),
        Val::Foreign(Foreign::Timestamp(time)) => time.timestamp().hash(&mut hasher),
        Val::Foreign(_) => {}
        Val::Items(..) | Val::List(..) => {
            let marks = value.elements().into_iter().flatten().map(|item| mark(&item));
            match ItemIdentity::apart(value) {
                None => marks.for_each(|mark| mark.hash(&mut hasher)),
                Some(_) => marks.fold(0, u64::wrapping_add).hash(&mut hasher),
            }
        }
        Val::Object(_) | Val::Keyed(..) | Val::Map(_) => {
            let marks = value.elements().into_iter().flatten().map(|key| {
                let below = entry(value, &key).map(|below| mark(&below));
                (mark(&key), below).hash_alone()
            });
            marks.fold(0, u64::wrapping_add).hash(&mut hasher);
        }
    }
    hasher.finish()
}

trait HashAlone: Hash {
    fn hash_alone(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

impl<T: Hash> HashAlone for T {}

/// Calls a function of lists; `None` if there is no list function `name`.
pub(in crate::rules) fn function<'a>(
    name: &str,
    args: &[Val<'a>],
) -> Option<Result<Val<'a>, Words>> {
    let result = match (name, args) {
        ("lists.range", [Val::Int(end)]) => Val::list((0..*end).map(Val::Int).collect()),
        ("sets.contains", [all, some]) if all.is_list() => Val::Bool(contains(all, some)?),
        ("sets.intersects", [one, other]) if one.is_list() => {
            let index = Index::of(ItemIdentity::ByValue, one.elements()?.collect());
            Val::Bool(other.elements()?.any(|item| index.has(&item)))
        }
        ("sets.equivalent", [one, other]) if one.is_list() => {
            Val::Bool(contains(one, other)? && contains(other, one)?)
        }
        ("optional.ofNonZeroValue", [value]) => match is_zero(value) {
            true => Val::Optional(None),
            false => Val::some(value.clone()),
        },
        ("lists.range" | "sets.contains" | "sets.intersects" | "sets.equivalent", _) => {
            return Some(no_overload());
        }
        _ => return None,
    };
    Some(Ok(result))
}

fn contains(all: &Val<'_>, some: &Val<'_>) -> Option<bool> {
    let index = Index::of(ItemIdentity::ByValue, all.elements()?.collect());
    Some(some.elements()?.all(|item| index.has(&item)))
}

fn is_zero(value: &Val<'_>) -> bool {
    match value {
        Val::Null | Val::Optional(None) => true,
        Val::Bool(flag) => !flag,
        Val::Int(number) => *number == 0,
        Val::Uint(number) => *number == 0,
        Val::Double(number) => *number == 0.0,
        Val::Foreign(Foreign::Duration(duration)) => duration.is_zero(),
        other => other.size() == Some(0),
    }
}

/// Calls a method of a list; `None` if there is no list method `name`.
pub(in crate::rules) fn method<'a>(
    name: &str,
    list: &Val<'a>,
    args: &[Val<'a>],
) -> Option<Result<Val<'a>, Words>> {
    let mut items = list.elements()?;
    Some(match (name, args) {
        ("isSorted", []) => is_sorted(items),
        ("sum", []) => sum(items),
        ("min", []) => extreme(name, items, Ordering::is_lt),
        ("max", []) => extreme(name, items, Ordering::is_gt),
        ("slice", [Val::Int(start), Val::Int(end)]) => slice(list, *start, *end),
        ("flatten", []) => flatten(list, 1).map(Val::list),
        ("flatten", [Val::Int(levels)]) => flatten(list, *levels).map(Val::list),
        ("distinct", []) => {
            let mut index = Index::of(ItemIdentity::ByValue, Vec::new());
            for item in items {
                if !index.has(&item) {
                    index.push(item);
                }
            }
            Ok(Val::list(index.items))
        }
        ("reverse", []) => {
            let mut all: Vec<_> = items.collect();
            all.reverse();
            Ok(Val::list(all))
        }
        ("sort", []) => sort(items.collect()).map(Val::list),
        ("first", []) => Ok(Val::Optional(items.next().map(Rc::new))),
        ("last", []) => Ok(Val::Optional(items.last().map(Rc::new))),
        ("indexOf", [value]) => Ok(place(items.position(|item| equal_values(&item, value)))),
        ("lastIndexOf", [value]) => {
            let places = items.enumerate().filter(|(_, item)| equal_values(item, value));
            Ok(place(places.last().map(|(at, _)| at)))
        }
        _ => return None,
    })
}

fn place<'a>(at: Option<usize>) -> Val<'a> {
    Val::Int(at.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1))
}

fn is_sorted<'a>(items: impl Iterator<Item = Val<'a>>) -> Result<Val<'a>, Words> {
    let mut before: Option<Val<'a>> = None;
    for item in items {
        if let Some(before) = &before {
            match compare(before, &item) {
                None => return no_overload(),
                Some(Ordering::Greater) => return Ok(Val::Bool(false)),
                Some(_) => {}
            }
        }
        before = Some(item);
    }
    Ok(Val::Bool(true))
}

fn sum<'a>(items: impl Iterator<Item = Val<'a>>) -> Result<Val<'a>, Words> {
    let mut sum: Option<Val<'a>> = None;
    for item in items {
        let is_summable = matches!(
            item,
            Val::Int(_) | Val::Uint(_) | Val::Double(_) | Val::Foreign(Foreign::Duration(_))
        );
        sum = match sum {
            _ if !is_summable => return no_overload(),
            None => Some(item),
            Some(sum) => Some(binary(operators::ADD, sum, item)?),
        };
    }
    Ok(sum.unwrap_or(Val::Int(0)))
}

fn extreme<'a>(
    name: &str,
    mut items: impl Iterator<Item = Val<'a>>,
    is_better: fn(Ordering) -> bool,
) -> Result<Val<'a>, Words> {
    let Some(mut best) = items.next() else { return Err(format!("{name} called on empty list")) };
    for item in items {
        match compare(&item, &best) {
            None => return no_overload(),
            Some(order) if is_better(order) => best = item,
            Some(_) => {}
        }
    }
    Ok(best)
}

fn slice<'a>(list: &Val<'a>, start: i64, end: i64) -> Result<Val<'a>, Words> {
    let size = list.size().unwrap_or_default();
    let cannot = |why: String| Err(format!("cannot slice({start}, {end}), {why}"));
    let (Ok(from), Ok(to)) = (usize::try_from(start), usize::try_from(end)) else {
        return cannot("negative indexes not supported".to_owned());
    };
    if from > to {
        return cannot("start index must be less than or equal to end index".to_owned());
    }
    if size < to {
        return cannot(format!("list is length {size}"));
    }
    Ok(Val::list((from..to).filter_map(|at| list.item(at)).collect()))
}

/// Flattens `levels` levels of a list; the recursion is limited by the depth of the lists.
fn flatten<'a>(list: &Val<'a>, levels: i64) -> Result<Vec<Val<'a>>, Words> {
    if levels < 0 {
        return Err("level must be non-negative".to_owned());
    }
    let mut flat = Vec::new();
    for item in list.elements().into_iter().flatten() {
        match levels > 0 && item.is_list() {
            true => flat.extend(flatten(&item, levels - 1)?),
            false => flat.push(item),
        }
    }
    Ok(flat)
}

fn sort(mut items: Vec<Val<'_>>) -> Result<Vec<Val<'_>>, Words> {
    let Some(first) = items.first() else { return Ok(items) };
    // Items that cannot be compared with themselves cannot be sorted.
    if items.iter().any(|item| compare(item, item).is_none()) {
        return Err("list elements must be comparable".to_owned());
    }
    let kind = first.kind_name();
    if items.iter().any(|item| item.kind_name() != kind) {
        return Err("list elements must have the same type".to_owned());
    }
    items.sort_by(|one, other| compare(one, other).unwrap_or(Ordering::Equal));
    Ok(items)
}
