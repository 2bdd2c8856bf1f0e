//! Definition of a function that a template can call: name, parameters and code. A function accepts
//! the same types as its counterpart in Go, because a template with other types fails in Go too.

use crate::value::{Element, Heap, Map, Value};
use crate::version::Version;

/// Result of a function, or its error message.
pub type Answer = Result<Value, String>;

/// Type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Any type: Go's `interface {}`.
    Any,
    /// Any value: Go's `reflect.Value`, used by the built-in functions.
    Reflect,
    /// A string: Go's type `string`.
    Text,
    /// An integer: Go's type `int`.
    Int,
    /// A float: Go's type `float64`.
    Float,
    /// A boolean: Go's type `bool`.
    Bool,
    /// A map: Go's `map[string]interface {}`.
    Map,
    /// A version: the type `*semver.Version`.
    Version,
}

impl Type {
    /// Returns the name of the type in Go.
    pub fn name(self) -> &'static str {
        match self {
            Type::Any => "interface {}",
            Type::Reflect => "reflect.Value",
            Type::Text => "string",
            Type::Int => "int",
            Type::Float => "float64",
            Type::Bool => "bool",
            Type::Map => "map[string]interface {}",
            Type::Version => "*semver.Version",
        }
    }
}

/// Function that templates can call.
pub struct Function {
    /// Name of the function in templates.
    pub name: &'static str,
    /// Types of the required parameters.
    pub fixed: &'static [Type],
    /// Type of any further arguments; `None` if no more are allowed.
    pub rest: Option<Type>,
    /// Code of the function; its arguments fit the parameters.
    pub run: fn(&Args) -> Answer,
}

/// Creates a function with exactly the parameters `fixed`.
pub const fn exact(
    name: &'static str,
    fixed: &'static [Type],
    run: fn(&Args) -> Answer,
) -> Function {
    Function { name, fixed, rest: None, run }
}

/// Creates a function with the parameters `fixed`, then any number of type `rest`.
pub const fn variadic(
    name: &'static str,
    fixed: &'static [Type],
    rest: Type,
    run: fn(&Args) -> Answer,
) -> Function {
    Function { name, fixed, rest: Some(rest), run }
}

impl Function {
    /// Returns the parameters in Go's notation: `string, int, ...interface {}`.
    pub fn parameters(&self) -> String {
        let fixed = self.fixed.iter().map(|kind| kind.name().to_owned());
        let rest = self.rest.map(|kind| format!("...{}", kind.name()));
        fixed.chain(rest).collect::<Vec<_>>().join(", ")
    }
}

/// Arguments of a call; each has the type of its parameter. An accessor for another type returns an
/// empty value, which the function table prevents.
pub struct Args<'a> {
    /// Heap for new values.
    pub heap: &'a Heap,
    /// Arguments of the call.
    pub values: &'a [Value],
}

impl<'a> Args<'a> {
    /// Returns the argument at `at`; nil if it is missing.
    pub fn any(&self, at: usize) -> &'a Value {
        self.values.get(at).unwrap_or(&Value::Nil)
    }

    /// Returns the string argument at `at`.
    pub fn text(&self, at: usize) -> &'a str {
        match self.any(at) {
            Value::Text(text) => text,
            _ => "",
        }
    }

    /// Returns the int argument at `at`.
    pub fn int(&self, at: usize) -> i64 {
        match self.any(at) {
            Value::Int(number) => *number,
            _ => 0,
        }
    }

    /// Returns the bool argument at `at`.
    pub fn bool(&self, at: usize) -> bool {
        matches!(self.any(at), Value::Bool(true))
    }

    /// Returns the float argument at `at`.
    pub fn float(&self, at: usize) -> f64 {
        match self.any(at) {
            Value::Float(number) => *number,
            _ => 0.0,
        }
    }

    /// Returns the version argument at `at`; `None` for Go's nil pointer.
    pub fn version(&self, at: usize) -> Option<&'a Version> {
        match self.any(at) {
            Value::Version(it) => Some(&it.version),
            _ => None,
        }
    }

    /// Returns the map argument at `at`; for nil, Go's nil map.
    pub fn map(&self, at: usize) -> Result<Map, String> {
        match self.any(at) {
            Value::Map(map) => Ok(map.clone()),
            _ => {
                let map = self.heap.map(Element::Any, Default::default())?;
                Ok(Map { nil: true, ..map })
            }
        }
    }

    /// Returns the arguments from `at` on.
    pub fn from(&self, at: usize) -> &'a [Value] {
        self.values.get(at..).unwrap_or_default()
    }

    /// Creates a text value, within the limits of the heap.
    pub fn made(&self, text: impl Into<std::rc::Rc<str>>) -> Answer {
        self.heap.text(text)
    }
}
