//! Operators on evaluated values.

use std::cmp::Ordering;
use std::rc::Rc;

use kube_cel::cel::Value as Foreign;
use kube_cel::cel::common::ast::operators;

use super::library::{self, NO_OVERLOAD};
use super::lists;
use super::val::{Field, Key, Val};

/// Message of a failed evaluation.
pub(in crate::rules) type Words = String;

fn no_overload<T>() -> Result<T, Words> {
    Err(NO_OVERLOAD.to_owned())
}

/// Applies the binary operator `name`.
pub(in crate::rules) fn binary<'a>(
    name: &str,
    left: Val<'a>,
    right: Val<'a>,
) -> Result<Val<'a>, Words> {
    let order = |wanted: fn(Ordering) -> bool| match compare(&left, &right) {
        Some(order) => Ok(Val::Bool(wanted(order))),
        // NaN has no order, so every comparison with it is false.
        None if is_number(&left) && is_number(&right) => Ok(Val::Bool(false)),
        None => no_overload(),
    };
    match name {
        operators::EQUALS => Ok(Val::Bool(equal(&left, &right))),
        operators::NOT_EQUALS => Ok(Val::Bool(!equal(&left, &right))),
        operators::LESS => order(Ordering::is_lt),
        operators::LESS_EQUALS => order(Ordering::is_le),
        operators::GREATER => order(Ordering::is_gt),
        operators::GREATER_EQUALS => order(Ordering::is_ge),
        operators::IN => contains(&right, &left).map(Val::Bool),
        operators::INDEX => index(&left, &right),
        _ => arithmetic(name, left, right),
    }
}

fn is_number(value: &Val<'_>) -> bool {
    matches!(value, Val::Int(_) | Val::Uint(_) | Val::Double(_))
}

/// Defines an operation on two integers of one type; `None` on overflow.
macro_rules! integers {
    ($name:expr, $one:expr, $other:expr) => {{
        let is_division = matches!($name, operators::DIVIDE | operators::MODULO);
        if is_division && *$other == 0 {
            return Err(by_zero($name));
        }
        match $name {
            operators::ADD => $one.checked_add(*$other),
            operators::SUBSTRACT => $one.checked_sub(*$other),
            operators::MULTIPLY => $one.checked_mul(*$other),
            operators::DIVIDE => $one.checked_div(*$other),
            operators::MODULO => $one.checked_rem(*$other),
            _ => return no_overload(),
        }
    }};
}

fn arithmetic<'a>(name: &str, left: Val<'a>, right: Val<'a>) -> Result<Val<'a>, Words> {
    match (&left, &right) {
        (Val::Int(one), Val::Int(other)) => {
            let result = integers!(name, one, other);
            result.map(Val::Int).ok_or_else(|| "integer overflow".to_owned())
        }
        (Val::Uint(one), Val::Uint(other)) => {
            let result = integers!(name, one, other);
            result.map(Val::Uint).ok_or_else(|| "unsigned integer overflow".to_owned())
        }
        (Val::Double(one), Val::Double(other)) => Ok(Val::Double(match name {
            operators::ADD => one + other,
            operators::SUBSTRACT => one - other,
            operators::MULTIPLY => one * other,
            operators::DIVIDE => one / other,
            _ => return no_overload(),
        })),
        (Val::Text(one), Val::Text(other)) if name == operators::ADD => {
            Ok(Val::text(&format!("{one}{other}")))
        }
        (one, other) if one.is_list() && other.is_list() && name == operators::ADD => {
            Ok(lists::concatenate(left, &right))
        }
        (Val::Foreign(Foreign::Duration(one)), Val::Foreign(Foreign::Duration(other)))
            if name == operators::ADD =>
        {
            // Go counts nanoseconds in 64 bits.
            let sum = one.checked_add(other).filter(|sum| sum.num_nanoseconds().is_some());
            let sum = sum.map(|sum| Val::Foreign(Foreign::Duration(sum)));
            sum.ok_or_else(|| "integer overflow".to_owned())
        }
        (Val::Foreign(_), _) | (_, Val::Foreign(_)) => library::call(name, None, &[left, right]),
        _ => no_overload(),
    }
}

fn by_zero(name: &str) -> Words {
    let what = if name == operators::DIVIDE { "division" } else { "modulus" };
    format!("{what} by zero")
}

/// Appends to a list; in place if nothing else refers to it.
pub(in crate::rules) fn append<'a>(list: Val<'a>, added: Vec<Val<'a>>) -> Result<Val<'a>, Words> {
    match list {
        Val::List(mut items, None) => {
            Rc::make_mut(&mut items).extend(added);
            Ok(Val::List(items, None))
        }
        other => binary(operators::ADD, other, Val::list(added)),
    }
}

/// Returns true if two values are equal. Numbers of different types are compared by value; other
/// values of different types are unequal.
pub(in crate::rules) fn equal(left: &Val<'_>, right: &Val<'_>) -> bool {
    match (left, right) {
        (Val::Null, Val::Null) => true,
        (Val::Bool(one), Val::Bool(other)) => one == other,
        (Val::Text(one), Val::Text(other)) => **one == **other,
        (Val::Kind(one), Val::Kind(other)) => one == other,
        (Val::Quantity(one), Val::Quantity(other)) => one == other,
        (Val::Foreign(one), Val::Foreign(other)) => one == other,
        (Val::Optional(one), Val::Optional(other)) => match (one, other) {
            (Some(one), Some(other)) => equal(one, other),
            (None, None) => true,
            _ => false,
        },
        (one, other) if one.is_list() && other.is_list() => lists::equal(left, right),
        _ if is_number(left) && is_number(right) => compare(left, right) == Some(Ordering::Equal),
        _ => equal_maps(left, right),
    }
}

fn is_map(value: &Val<'_>) -> bool {
    matches!(value, Val::Object(_) | Val::Keyed(..) | Val::Map(_))
}

fn equal_maps(left: &Val<'_>, right: &Val<'_>) -> bool {
    if !is_map(left) || !is_map(right) || left.size() != right.size() {
        return false;
    }
    let mut keys = left.elements().into_iter().flatten();
    keys.all(|key| match (entry(left, &key), entry(right, &key)) {
        (Some(one), Some(other)) => equal(&one, &other),
        _ => false,
    })
}

/// Returns the value of a key; the key of an object is the unescaped field name.
pub(in crate::rules) fn entry<'a>(map: &Val<'a>, key: &Val<'_>) -> Option<Val<'a>> {
    match (map, key) {
        (Val::Object(object), Val::Text(name)) => {
            let node = object.node.properties.get(&**name);
            object.map.get(&**name).map(|value| Val::keyed_value(value, node))
        }
        (Val::Keyed(map, node), Val::Text(name)) => {
            map.get(&**name).map(|value| Val::keyed_value(value, *node))
        }
        (Val::Map(entries), key) => {
            let (_, value) = entries.get(&Key::of(key)?)?;
            Some(value.clone())
        }
        _ => None,
    }
}

pub(in crate::rules) fn compare(left: &Val<'_>, right: &Val<'_>) -> Option<Ordering> {
    #[expect(clippy::cast_precision_loss, reason = "Go compares through float64 as well")]
    fn float(value: &Val<'_>) -> Option<f64> {
        match value {
            Val::Int(number) => Some(*number as f64),
            Val::Uint(number) => Some(*number as f64),
            Val::Double(number) => Some(*number),
            _ => None,
        }
    }
    match (left, right) {
        (Val::Int(one), Val::Int(other)) => Some(one.cmp(other)),
        (Val::Uint(one), Val::Uint(other)) => Some(one.cmp(other)),
        (Val::Int(one), Val::Uint(other)) => Some(i128::from(*one).cmp(&i128::from(*other))),
        (Val::Uint(one), Val::Int(other)) => Some(i128::from(*one).cmp(&i128::from(*other))),
        (Val::Bool(one), Val::Bool(other)) => Some(one.cmp(other)),
        (Val::Text(one), Val::Text(other)) => Some((**one).cmp(&**other)),
        (Val::Foreign(Foreign::Bytes(one)), Val::Foreign(Foreign::Bytes(other))) => {
            Some(one.cmp(other))
        }
        (Val::Foreign(one), Val::Foreign(other)) => one.partial_cmp(other),
        _ => float(left).zip(float(right)).and_then(|(one, other)| one.partial_cmp(&other)),
    }
}

fn contains(container: &Val<'_>, value: &Val<'_>) -> Result<bool, Words> {
    if is_map(container) {
        return Ok(match container {
            Val::Object(object) => match value {
                Val::Text(name) => matches!(object.field(name), Field::Present(_)),
                _ => false,
            },
            other => entry(other, value).is_some(),
        });
    }
    match container.elements() {
        Some(mut items) => Ok(items.any(|item| equal(&item, value))),
        None => no_overload(),
    }
}

/// Returns the value at an index or key; `None` if it does not exist.
fn found<'a>(container: &Val<'a>, key: &Val<'a>) -> Result<Option<Val<'a>>, Words> {
    if is_map(container) {
        return Ok(entry(container, key));
    }
    if !container.is_list() {
        return no_overload();
    }
    match key {
        Val::Int(at) => Ok(usize::try_from(*at).ok().and_then(|at| container.item(at))),
        Val::Uint(at) => Ok(usize::try_from(*at).ok().and_then(|at| container.item(at))),
        _ => no_overload(),
    }
}

fn index<'a>(container: &Val<'a>, key: &Val<'a>) -> Result<Val<'a>, Words> {
    if let Val::Optional(_) = container {
        return optional_index(container, key);
    }
    let what = if is_map(container) { "no such key" } else { "index out of bounds" };
    found(container, key)?.ok_or_else(|| format!("{what}: {}", key.printed()))
}

/// Evaluates `container[?key]`; an empty optional if the value or the container is missing.
pub(in crate::rules) fn optional_index<'a>(
    container: &Val<'a>,
    key: &Val<'a>,
) -> Result<Val<'a>, Words> {
    let found = match container {
        Val::Optional(None) => None,
        Val::Optional(Some(inner)) => found(inner, key)?,
        container => found(container, key)?,
    };
    Ok(Val::Optional(found.map(Rc::new)))
}

/// Applies the unary operator `name`.
pub(in crate::rules) fn unary<'a>(name: &str, value: &Val<'a>) -> Result<Val<'a>, Words> {
    match (name, value) {
        (operators::LOGICAL_NOT, Val::Bool(flag)) => Ok(Val::Bool(!flag)),
        (operators::NEGATE, Val::Int(number)) => {
            number.checked_neg().map(Val::Int).ok_or_else(|| "integer overflow".to_owned())
        }
        (operators::NEGATE, Val::Double(number)) => Ok(Val::Double(-number)),
        _ => no_overload(),
    }
}
