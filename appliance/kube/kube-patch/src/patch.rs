//! Patches: JSON merge patch (RFC 7386), JSON patch (RFC 6902) and, for Kubernetes' own kinds,
//! strategic merge patch.

use go_text::json_kind;
use serde_json::{Map, Value};
use stdx::json::is_within;

use crate::error::{PatchError, Reason};
use crate::{MAX_DEPTH, strategic};

/// Maximum operations in one JSON patch.
pub const MAX_OPERATIONS: usize = 10_000;
/// Maximum values that all operations of one JSON patch may copy, move or shift in arrays.
pub const MAX_WORK: usize = 10_000_000;

/// Maximum bytes of values that one JSON patch may copy: the API's limit for a request body.
pub const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;

/// Parsed patch in one of three formats.
#[derive(Debug, Clone, PartialEq)]
pub enum Patch {
    /// JSON merge patch (RFC 7386): null removes a field, objects are merged, other values replace.
    Merge(Value),
    /// JSON patch (RFC 6902): operations in order; if one operation fails, the whole patch fails.
    Json(Vec<Operation>),
    /// Strategic merge patch: merges some lists of Kubernetes' own kinds by a key.
    Strategic(Value),
}

/// Operation of a JSON patch. Pointers are split into unescaped tokens (RFC 6901).
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)] // the names are the RFC's
pub enum Operation {
    Add { path: Vec<String>, value: Value },
    Remove { path: Vec<String> },
    Replace { path: Vec<String>, value: Value },
    Move { from: Vec<String>, path: Vec<String> },
    Copy { from: Vec<String>, path: Vec<String> },
    Test { path: Vec<String>, value: Value },
}

impl Patch {
    /// Makes a merge patch. A patch that is not a JSON object would replace the whole object, and
    /// is refused.
    ///
    /// # Errors
    /// 400 if the patch is not a JSON object.
    pub fn merge(patch: Value) -> Result<Self, PatchError> {
        match patch.is_object() {
            true => Ok(Self::Merge(patch)),
            false => {
                Err(PatchError::bad_request(format!("error decoding patch: {}", not_a_map(&patch))))
            }
        }
    }

    /// Makes a strategic merge patch.
    ///
    /// # Errors
    /// 400 if the patch is not a JSON object.
    pub fn strategic(patch: Value) -> Result<Self, PatchError> {
        match patch.is_object() {
            true => Ok(Self::Strategic(patch)),
            false => Err(PatchError::bad_request(not_a_map(&patch))),
        }
    }

    /// Makes a JSON patch from its array of operations.
    ///
    /// # Errors
    /// 400 if `patch` is not an array, 422 for an invalid operation, 413 for too many operations.
    pub fn json(patch: &Value) -> Result<Self, PatchError> {
        let Some(operations) = patch.as_array() else {
            let found = json_kind(patch);
            return Err(PatchError::bad_request(format!(
                "error decoding patch: json: cannot unmarshal {found} into Go value of type \
                 []handlers.jsonPatchOp"
            )));
        };
        if operations.len() > MAX_OPERATIONS {
            return Err(PatchError::new(
                Reason::RequestEntityTooLarge,
                format!("the JSON patch has more than {MAX_OPERATIONS} operations"),
            ));
        }
        operations
            .iter()
            .enumerate()
            .map(|(at, operation)| {
                Operation::read(operation).ok_or_else(|| Mismatch::NoOperation.status(at))
            })
            .collect::<Result<_, _>>()
            .map(Self::Json)
    }

    /// Returns `target` with the patch applied.
    ///
    /// # Errors
    /// 422 if the patch cannot be applied, 413 if a limit on copies or depth is exceeded.
    pub fn apply(&self, mut target: Value) -> Result<Value, PatchError> {
        match self {
            Self::Merge(patch) => merge(&mut target, patch),
            Self::Strategic(patch) => {
                let kind = target["kind"].as_str().unwrap_or_default().to_owned();
                target = strategic::apply(&kind, target, patch)?;
            }
            Self::Json(operations) => {
                let mut costs = Costs::default();
                for (at, operation) in operations.iter().enumerate() {
                    operation.apply(&mut target, &mut costs).map_err(|why| why.status(at))?;
                }
            }
        }
        Ok(target)
    }
}

fn not_a_map(patch: &Value) -> String {
    let found = json_kind(patch);
    format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}")
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(target) = target.as_object_mut() else { return };
    for (key, value) in patch {
        if value.is_null() {
            target.remove(key);
        } else {
            merge(target.entry(key).or_insert(Value::Null), value);
        }
    }
}

/// Work and copied bytes of one JSON patch, limited because short operations can request large
/// copies.
#[derive(Default)]
struct Costs {
    copied_bytes: usize,
    work: usize,
}

impl Costs {
    fn copies(&mut self, value: &Value) -> Result<(), Mismatch> {
        self.copied_bytes = self.copied_bytes.saturating_add(value.to_string().len());
        if self.copied_bytes > MAX_COPIED_BYTES { Err(Mismatch::Grows) } else { Ok(()) }
    }

    fn works(&mut self, values: usize) -> Result<(), Mismatch> {
        self.work = self.work.saturating_add(values);
        if self.work > MAX_WORK { Err(Mismatch::Grows) } else { Ok(()) }
    }
}

enum Mismatch {
    NoOperation,
    NoSuchPath,
    TestFailed,
    TooDeep,
    Grows,
}

impl Mismatch {
    fn status(&self, at: usize) -> PatchError {
        let why = match self {
            Self::NoOperation => "it is not an operation of RFC 6902",
            Self::NoSuchPath => "its path does not exist in the object",
            Self::TestFailed => "the test found another value",
            Self::TooDeep => "it would nest the object too deeply",
            Self::Grows => {
                let why =
                    format!("cannot apply operation {at} of the JSON patch: it copies too much");
                return PatchError::new(Reason::RequestEntityTooLarge, why);
            }
        };
        tracing::debug!(operation = at, why, "a JSON patch does not fit");
        PatchError::rejected()
    }
}

impl Operation {
    fn read(operation: &Value) -> Option<Self> {
        let path = pointer(operation.get("path")?.as_str()?)?;
        let from = || pointer(operation.get("from")?.as_str()?);
        let value = || operation.get("value").cloned();
        Some(match operation.get("op")?.as_str()? {
            "add" => Self::Add { path, value: value()? },
            "remove" => Self::Remove { path },
            "replace" => Self::Replace { path, value: value()? },
            "move" => Self::Move { from: from()?, path },
            "copy" => Self::Copy { from: from()?, path },
            "test" => Self::Test { path, value: value()? },
            _ => return None,
        })
    }

    fn apply(&self, root: &mut Value, costs: &mut Costs) -> Result<(), Mismatch> {
        match self {
            Self::Add { path, value } => add(root, path, value.clone(), costs),
            Self::Remove { path } => remove(root, path, costs).map(drop),
            // Upstream's library adds a field that does not exist yet.
            Self::Replace { path, value } => match find_mut(root, path) {
                Some(place) => {
                    check_depth(path, value)?;
                    value.clone_into(place);
                    Ok(())
                }
                None => match path.split_last().and_then(|(_, of)| find_mut(root, of)) {
                    Some(Value::Object(_)) => add(root, path, value.clone(), costs),
                    _ => Err(Mismatch::NoSuchPath),
                },
            },
            Self::Move { from, path } => {
                // The RFC forbids a move into a child of itself; the removal would lose the value.
                if path.len() > from.len() && path.starts_with(from) {
                    return Err(Mismatch::NoSuchPath);
                }
                let value = remove(root, from, costs)?;
                costs.works(size(&value))?;
                add(root, path, value, costs)
            }
            Self::Copy { from, path } => {
                let value = find(root, from).ok_or(Mismatch::NoSuchPath)?.clone();
                costs.copies(&value)?;
                add(root, path, value, costs)
            }
            Self::Test { path, value } => {
                if find(root, path) == Some(value) {
                    Ok(())
                } else {
                    Err(Mismatch::TestFailed)
                }
            }
        }
    }
}

fn pointer(text: &str) -> Option<Vec<String>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let tokens = text.strip_prefix('/')?.split('/');
    Some(tokens.map(|token| token.replace("~1", "/").replace("~0", "~")).collect())
}

fn index(token: &str) -> Option<usize> {
    let plain = token == "0" || !token.starts_with(['0', '+']);
    plain.then(|| token.parse().ok()).flatten()
}

fn find<'a>(root: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(root, |at, token| match at {
        Value::Array(items) => items.get(index(token)?),
        other => other.get(token),
    })
}

fn find_mut<'a>(root: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    path.iter().try_fold(root, |at, token| match at {
        Value::Array(items) => items.get_mut(index(token)?),
        other => other.get_mut(token),
    })
}

fn check_depth(path: &[String], value: &Value) -> Result<(), Mismatch> {
    let levels = MAX_DEPTH.checked_sub(path.len());
    if levels.is_some_and(|levels| is_within(value, levels)) {
        Ok(())
    } else {
        Err(Mismatch::TooDeep)
    }
}

/// Number of values in `value`, including `value` itself and nested values.
fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(size).sum::<usize>() + 1,
        Value::Object(map) => map.values().map(size).sum::<usize>() + 1,
        _ => 1,
    }
}

fn add(root: &mut Value, path: &[String], value: Value, costs: &mut Costs) -> Result<(), Mismatch> {
    check_depth(path, &value)?;
    let Some((last, parents)) = path.split_last() else {
        *root = value;
        return Ok(());
    };
    match find_mut(root, parents) {
        Some(Value::Object(map)) => {
            map.insert(last.clone(), value);
            Ok(())
        }
        Some(Value::Array(items)) if last == "-" => {
            items.push(value);
            Ok(())
        }
        Some(Value::Array(items)) => match index(last) {
            Some(at) if at <= items.len() => {
                costs.works(items.len() - at)?;
                items.insert(at, value);
                Ok(())
            }
            _ => Err(Mismatch::NoSuchPath),
        },
        _ => Err(Mismatch::NoSuchPath),
    }
}

fn remove(root: &mut Value, path: &[String], costs: &mut Costs) -> Result<Value, Mismatch> {
    let (last, parents) = path.split_last().ok_or(Mismatch::NoSuchPath)?;
    match find_mut(root, parents) {
        Some(Value::Object(map)) => map.remove(last).ok_or(Mismatch::NoSuchPath),
        Some(Value::Array(items)) => match index(last) {
            Some(at) if at < items.len() => {
                costs.works(items.len() - at)?;
                Ok(items.remove(at))
            }
            _ => Err(Mismatch::NoSuchPath),
        },
        _ => Err(Mismatch::NoSuchPath),
    }
}

#[cfg(test)]
mod tests;
