//! Changes of single keys in a TOML text. Comments and all other lines stay unchanged.

use std::collections::BTreeMap;

use config::mistakes::bare;
use config::sections;
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, TableLike, Value};

/// Maximum number of dotted parts in a key.
const DEPTH_MAX: usize = 8;

/// Sets keys to values; `None` removes a key. A value that is not valid TOML becomes a string.
///
/// # Errors
/// A sentence with the key that cannot be set, and the reason.
pub fn set(text: &str, keys: &BTreeMap<String, Option<String>>) -> Result<String, String> {
    let mark = text.len() - bare(text).len();
    let ends = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut document: DocumentMut =
        bare(text).parse().map_err(|error| format!("cannot parse the current text: {error}"))?;
    for (key, value) in keys {
        let key = &*sections::key_in(key, |name| document.contains_key(name));
        let path = parts(key)?;
        let (last, above) = path.split_last().ok_or("a key is empty")?;
        if last.1.is_some() && value.is_some() {
            return Err(format!("{key} is a table: use the name of a key in the table"));
        }
        let table = walk(document.as_table_mut(), above, value.is_some())
            .map_err(|why| format!("cannot set {key}: {why}"))?;
        match (table, value) {
            (Some(table), Some(value)) => put(table, last.0, value),
            (Some(table), None) => take(table, *last),
            (None, _) => {}
        }
    }
    let new = document.to_string();
    let new = if ends == "\n" { new } else { new.replace("\r\n", "\n").replace('\n', ends) };
    Ok(format!("{}{new}", &text[..mark]))
}

/// Splits a key such as `network[1].mode` into names and indices.
fn parts(key: &str) -> Result<Vec<(&str, Option<usize>)>, String> {
    let wrong = || format!("{key:?} is not a valid key such as time.zone or network[1].mode");
    let part = |part: &'_ str| -> Option<(usize, Option<usize>)> {
        let (name, index) = match part.split_once('[') {
            Some((name, index)) => (name, Some(index.strip_suffix(']')?.parse().ok()?)),
            None => (part, None),
        };
        let good = |char: char| char.is_ascii_alphanumeric() || char == '_' || char == '-';
        (!name.is_empty() && name.chars().all(good)).then_some((name.len(), index))
    };
    let found: Option<Vec<_>> =
        key.split('.').map(|text| part(text).map(|(end, index)| (&text[..end], index))).collect();
    found.filter(|parts| parts.len() <= DEPTH_MAX).ok_or_else(wrong)
}

/// Returns the table at `path`, or `None` if the table is missing and `make` is false.
fn walk<'a>(
    table: &'a mut dyn TableLike,
    path: &[(&str, Option<usize>)],
    make: bool,
) -> Result<Option<&'a mut dyn TableLike>, String> {
    let Some(((key, index), rest)) = path.split_first() else { return Ok(Some(table)) };
    if !table.contains_key(key) {
        if !make {
            return Ok(None);
        }
        let new = match index {
            None => Item::Table(Table::new()),
            Some(_) => Item::ArrayOfTables(ArrayOfTables::new()),
        };
        table.insert(key, new);
    }
    let below: &mut dyn TableLike = match (table.get_mut(key), index) {
        (Some(Item::ArrayOfTables(all)), index) => {
            let (count, index) = (all.len(), index.unwrap_or(0));
            if index == 0 && path[0].1.is_none() && count > 1 {
                return Err(format!("{key} exists {count} times: use {key}[0] or another"));
            }
            if index == count && make {
                all.push(Table::new());
            }
            all.get_mut(index)
                .ok_or_else(|| format!("{key}[{index}] does not exist, only {count}"))?
        }
        (Some(item), None | Some(0)) => {
            item.as_table_like_mut().ok_or_else(|| format!("{key} is not a table"))?
        }
        (_, Some(index)) => {
            return Err(format!("[{key}] is one table, so {key}[{index}] is not possible"));
        }
        (None, None) => return Ok(None),
    };
    walk(below, rest, make)
}

fn put(table: &mut dyn TableLike, key: &str, value: &str) {
    let mut new: Value = match value.trim().parse() {
        Ok(value) => value,
        Err(_) => Value::from(value),
    };
    match table.get_mut(key) {
        Some(Item::Value(old)) => {
            // A comment after the value stays.
            *new.decor_mut() = old.decor().clone();
            *old = new;
        }
        _ => {
            table.insert(key, Item::Value(new));
        }
    }
}

fn take(table: &mut dyn TableLike, (key, index): (&str, Option<usize>)) {
    match (table.get_mut(key), index) {
        (Some(Item::ArrayOfTables(all)), Some(index)) if index < all.len() => {
            all.remove(index);
        }
        (_, Some(_)) => {}
        (_, None) => {
            table.remove(key);
        }
    }
}

/// Returns every value as TOML text, by its full key such as `update.hold`. Renamed sections have
/// their current name. Empty for invalid TOML.
pub fn leaves(text: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    if let Ok(table) = toml::from_str::<toml::Table>(bare(text)) {
        for (key, value) in &table {
            gather(sections::current(key).into_owned(), value, &mut all);
        }
    }
    all
}

fn gather(path: String, value: &toml::Value, all: &mut BTreeMap<String, String>) {
    match value {
        toml::Value::Table(table) => {
            table.iter().for_each(|(key, value)| gather(format!("{path}.{key}"), value, all));
        }
        toml::Value::Array(list) if list.iter().any(toml::Value::is_table) => {
            let numbered = list.iter().enumerate();
            numbered.for_each(|(at, value)| gather(format!("{path}[{at}]"), value, all));
        }
        value => {
            all.insert(path, value.to_string());
        }
    }
}
