//! Values of a template, with their Go types: `printf "%T"`, `eq` and function parameters
//! distinguish `int` from `int64`. Lists and maps are shared as in Go: `set` changes a map for
//! every reference to it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::limits::{
    HEAP_BYTES_MAX, LIST_ITEMS_MAX, STEP_BYTES, STEPS_MAX, TEXT_BYTES_MAX, VALUE_DEPTH_MAX,
};
use crate::pattern::Patterns;
use crate::version::{Version, VersionRef};

/// Bytes charged to the heap limit for each list element or map entry, in addition to its text.
const ELEMENT_BYTES: usize = 64;

/// Value in a template.
#[derive(Clone)]
pub enum Value {
    /// No value: Go's invalid `reflect.Value`.
    Nil,
    /// Nil inside a list or map: an empty `interface {}`, which is not a nil map.
    Hollow,
    /// A boolean: Go's type `bool`.
    Bool(bool),
    /// An integer: Go's type `int`.
    Int(i64),
    /// An integer: Go's type `int64`.
    Int64(i64),
    /// A byte of a string: Go's type `uint8`.
    Byte(u8),
    /// A number of a version: Go's type `uint64`.
    Word(u64),
    /// A float: Go's type `float64`.
    Float(f64),
    /// A string: Go's type `string`.
    Text(Rc<str>),
    /// A list: Go's slice.
    List(List),
    /// A map with `string` keys.
    Map(Map),
    /// A version, as returned by `semver`.
    Version(VersionRef),
}

/// Type of a list's elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Element {
    /// Any type: Go's `interface {}`.
    Any,
    /// A string: Go's type `string`.
    Text,
    /// An integer: Go's type `int`.
    Int,
    /// A list: Go's `[]interface {}`.
    List,
}

/// List, Go's slice: a window of items that other lists may share.
#[derive(Clone)]
pub struct List {
    /// Type of the elements.
    pub element: Element,
    items: Rc<RefCell<Vec<Value>>>,
    from: usize,
    len: usize,
    /// True for Go's nil slice. It prints as an empty slice, but as JSON it is `null`.
    pub nil: bool,
}

/// Entries of a map, shared by all references to the map.
type Entries = Rc<RefCell<BTreeMap<Rc<str>, Value>>>;

/// Map with string keys, as in Go.
#[derive(Clone)]
pub struct Map {
    /// Type of the values: [`Element::Any`] or [`Element::Text`].
    pub element: Element,
    /// Entries of the map.
    pub entries: Entries,
    /// True for Go's nil map, which cannot be written to.
    pub nil: bool,
}

impl List {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the element at `at`, if it exists; a nil element is [`Value::Hollow`].
    pub fn get(&self, at: usize) -> Option<Value> {
        if at >= self.len {
            return None;
        }
        self.items.borrow().get(self.from + at).map(held)
    }

    /// Returns a copy of the elements. A nil element is [`Value::Nil`], as in function arguments.
    pub fn items(&self) -> Vec<Value> {
        self.items.borrow().iter().skip(self.from).take(self.len).cloned().collect()
    }

    /// Returns a window `from..to` of the shared items; `None` if there are too few items.
    pub fn window(&self, from: usize, to: usize) -> Option<List> {
        let end = self.items.borrow().len();
        (from <= to && self.from + to <= end).then(|| List {
            from: self.from + from,
            len: to - from,
            ..self.clone()
        })
    }

    /// Sorts the texts of this list in place, for every list that shares them.
    pub fn sort_texts(&self) {
        let mut items = self.items.borrow_mut();
        items[self.from..self.from + self.len].sort_by(|a, b| match (a, b) {
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            _ => std::cmp::Ordering::Equal,
        });
    }
}

impl Map {
    /// Returns the value of a key, if it exists; a nil value is [`Value::Hollow`].
    pub fn get(&self, key: &str) -> Option<Value> {
        self.entries.borrow().get(key).map(held)
    }

    /// Returns key and value of every entry, in the order of the keys.
    pub fn pairs(&self) -> Vec<(Rc<str>, Value)> {
        self.entries.borrow().iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

/// Returns a value as an element of a list or map: nil becomes [`Value::Hollow`].
fn held(value: &Value) -> Value {
    match value {
        Value::Nil => Value::Hollow,
        value => value.clone(),
    }
}

impl Value {
    /// Returns the value without the interface around it: [`Value::Hollow`] becomes [`Value::Nil`].
    pub fn bare(self) -> Value {
        match self {
            Value::Hollow => Value::Nil,
            value => value,
        }
    }

    /// Returns true for nil, but not for a nil slice or a nil map.
    pub fn is_nil(&self) -> bool {
        matches!(self, Value::Nil | Value::Hollow)
    }

    /// Returns the truth of a condition: false for `false`, 0, nil, and an empty text, list or map.
    pub fn truth(&self) -> bool {
        match self {
            Value::Nil | Value::Hollow => false,
            Value::Bool(is) => *is,
            Value::Int(number) | Value::Int64(number) => *number != 0,
            Value::Byte(byte) => *byte != 0,
            Value::Word(number) => *number != 0,
            Value::Float(number) => *number != 0.0,
            Value::Text(text) => !text.is_empty(),
            Value::List(list) => list.len > 0,
            Value::Map(map) => !map.entries.borrow().is_empty(),
            Value::Version(_) => true,
        }
    }

    /// Returns the name of the type, as `%T` prints it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Nil | Value::Hollow => "<nil>",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Int64(_) => "int64",
            Value::Byte(_) => "uint8",
            Value::Word(_) => "uint64",
            Value::Float(_) => "float64",
            Value::Text(_) => "string",
            Value::List(List { element: Element::Any, .. }) => "[]interface {}",
            Value::List(List { element: Element::Text, .. }) => "[]string",
            Value::List(List { element: Element::Int, .. }) => "[]int",
            Value::List(List { element: Element::List, .. }) => "[][]interface {}",
            Value::Map(Map { element: Element::Text, .. }) => "map[string]string",
            Value::Map(_) => "map[string]interface {}",
            Value::Version(VersionRef { is_pointer: true, .. }) => "*semver.Version",
            Value::Version(_) => "semver.Version",
        }
    }

    /// Returns the name of the kind, as Sprig's `kindOf` does.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Value::Nil | Value::Hollow => "invalid",
            Value::List(_) => "slice",
            Value::Map(_) => "map",
            Value::Version(VersionRef { is_pointer: true, .. }) => "ptr",
            Value::Version(_) => "struct",
            value => value.type_name(),
        }
    }
}

/// Owner of the lists and maps of one rendering. Counts their bytes and empties them on drop: a
/// list that contains itself would otherwise never be freed, and dropping a deep list would
/// overflow the stack.
#[derive(Default)]
pub struct Heap {
    lists: RefCell<Vec<Rc<RefCell<Vec<Value>>>>>,
    maps: RefCell<Vec<Entries>>,
    bytes: Cell<usize>,
    steps: Cell<usize>,
    /// Cache of compiled patterns.
    pub patterns: Patterns,
}

impl Drop for Heap {
    fn drop(&mut self) {
        for list in self.lists.borrow().iter() {
            list.borrow_mut().clear();
        }
        for map in self.maps.borrow().iter() {
            map.borrow_mut().clear();
        }
    }
}

impl Heap {
    /// Counts `count` steps; an error beyond [`STEPS_MAX`].
    pub fn step(&self, count: usize) -> Result<(), String> {
        self.steps.set(self.steps.get().saturating_add(count));
        if self.steps.get() > STEPS_MAX {
            return Err(format!("takes more than {STEPS_MAX} steps"));
        }
        Ok(())
    }

    fn pay(&self, bytes: usize) -> Result<(), String> {
        self.step(1 + bytes / STEP_BYTES)?;
        self.bytes.set(self.bytes.get().saturating_add(bytes));
        if self.bytes.get() > HEAP_BYTES_MAX {
            return Err(format!("its values take more than {HEAP_BYTES_MAX} bytes"));
        }
        Ok(())
    }

    /// Creates a text value, and charges its size.
    pub fn text(&self, text: impl Into<Rc<str>>) -> Result<Value, String> {
        let text = text.into();
        may_make(text.len())?;
        self.pay(text.len())?;
        Ok(Value::Text(text))
    }

    /// Creates a list value, and charges its size.
    pub fn list(&self, element: Element, items: Vec<Value>) -> Result<Value, String> {
        self.may_hold(items.len())?;
        self.pay(ELEMENT_BYTES * (1 + items.len()))?;
        let len = items.len();
        let items = Rc::new(RefCell::new(items));
        self.lists.borrow_mut().push(items.clone());
        Ok(Value::List(List { element, items, from: 0, len, nil: false }))
    }

    /// Creates a version value, and charges its size.
    pub fn version(&self, version: Version, is_pointer: bool) -> Result<Value, String> {
        self.pay(ELEMENT_BYTES + version.size())?;
        Ok(Value::Version(VersionRef { version: Rc::new(version), is_pointer }))
    }

    /// Creates a list of text values, and charges its size.
    pub fn texts<T: Into<Rc<str>>>(
        &self,
        texts: impl IntoIterator<Item = T>,
    ) -> Result<Value, String> {
        let mut items = Vec::new();
        for text in texts {
            self.may_hold(items.len() + 1)?;
            items.push(self.text(text)?);
        }
        self.list(Element::Text, items)
    }

    /// Creates Go's nil slice.
    pub fn nil_list(&self, element: Element) -> Result<Value, String> {
        let Value::List(list) = self.list(element, Vec::new())? else { return Ok(Value::Nil) };
        Ok(Value::List(List { nil: true, ..list }))
    }

    /// Creates a map, and charges its size.
    pub fn map(&self, element: Element, entries: BTreeMap<Rc<str>, Value>) -> Result<Map, String> {
        self.may_hold(entries.len())?;
        let texts: usize = entries.keys().map(|key| key.len()).sum();
        self.pay(texts + ELEMENT_BYTES * (1 + entries.len()))?;
        let entries = Rc::new(RefCell::new(entries));
        self.maps.borrow_mut().push(entries.clone());
        Ok(Map { element, entries, nil: false })
    }

    /// Inserts an entry into a map, and charges its size; an error for a nil map.
    pub fn set(&self, map: &Map, key: Rc<str>, value: Value) -> Result<(), String> {
        if map.nil {
            return Err("assignment to entry in nil map".to_owned());
        }
        self.pay(key.len() + ELEMENT_BYTES)?;
        self.may_hold(map.entries.borrow().len() + 1)?;
        map.entries.borrow_mut().insert(key, value);
        Ok(())
    }

    fn may_hold(&self, items: usize) -> Result<(), String> {
        if items > LIST_ITEMS_MAX {
            return Err(format!("a list or map of more than {LIST_ITEMS_MAX} elements"));
        }
        Ok(())
    }

    /// Converts JSON as Go's `encoding/json`: numbers become `float64`.
    pub fn json(&self, json: &serde_json::Value, depth: usize) -> Result<Value, String> {
        self.typed(json, Numbers::Floats, depth)
    }

    /// Creates the dot of a template from JSON. Whole numbers below the fields `structs`, which are
    /// Go structs upstream, become `int64`.
    pub fn dot(&self, json: &serde_json::Value, structs: &[&str]) -> Result<Value, String> {
        let serde_json::Value::Object(fields) = json else { return self.json(json, 0) };
        let entries = fields.iter().map(|(key, value)| {
            let is_struct = structs.contains(&key.as_str());
            let numbers = if is_struct { Numbers::Integers } else { Numbers::Floats };
            Ok::<_, String>((Rc::from(key.as_str()), self.typed(value, numbers, 1)?))
        });
        Ok(Value::Map(self.map(Element::Any, entries.collect::<Result<_, _>>()?)?))
    }

    fn typed(
        &self,
        json: &serde_json::Value,
        numbers: Numbers,
        depth: usize,
    ) -> Result<Value, String> {
        deep(depth)?;
        Ok(match json {
            serde_json::Value::Null => Value::Nil,
            serde_json::Value::Bool(is) => Value::Bool(*is),
            serde_json::Value::Number(number) => match (numbers, number.as_i64()) {
                (Numbers::Integers, Some(number)) => Value::Int64(number),
                _ => Value::Float(number.as_f64().unwrap_or_default()),
            },
            serde_json::Value::String(text) => self.text(text.as_str())?,
            serde_json::Value::Array(items) => {
                let items = items.iter().map(|item| self.typed(item, numbers, depth + 1));
                self.list(Element::Any, items.collect::<Result<_, _>>()?)?
            }
            serde_json::Value::Object(fields) => {
                let entries = fields.iter().map(|(key, value)| {
                    let value = self.typed(value, numbers, depth + 1)?;
                    Ok::<_, String>((Rc::from(key.as_str()), value))
                });
                Value::Map(self.map(Element::Any, entries.collect::<Result<_, _>>()?)?)
            }
        })
    }
}

/// Go type of the integers in a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// `float64`, as `encoding/json` creates them.
    Floats,
    /// `int64`, as in upstream's structs.
    Integers,
}

/// Returns an error if a text of `bytes` bytes would exceed [`TEXT_BYTES_MAX`].
pub fn may_make(bytes: usize) -> Result<(), String> {
    if bytes > TEXT_BYTES_MAX {
        return Err(format!("makes a text of more than {TEXT_BYTES_MAX} bytes"));
    }
    Ok(())
}

/// Returns an error for a nesting `depth` beyond [`VALUE_DEPTH_MAX`].
pub fn deep(depth: usize) -> Result<(), String> {
    if depth > VALUE_DEPTH_MAX {
        return Err(format!("a value nested more than {VALUE_DEPTH_MAX} deep"));
    }
    Ok(())
}
