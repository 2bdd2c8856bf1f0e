//! Functions that a template can call: name, parameters and code. A function accepts the types that
//! its counterpart in Go accepts, because other templates fail in Go too.

mod builtin;
mod compare;
mod escape;

use crate::value::{Element, Heap, Map, Value};
use crate::version::Version;
use crate::{sprig, tinkerbell};

/// Result of a function, or the reason of its failure.
pub type Answer = Result<Value, String>;

/// The type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Any type: Go's `interface {}`.
    Any,
    /// `reflect.Value`, of Go's own functions: it takes anything.
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

/// A function that templates can call.
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

/// Creates a function with exactly these parameters.
pub const fn exact(
    name: &'static str,
    fixed: &'static [Type],
    run: fn(&Args) -> Answer,
) -> Function {
    Function { name, fixed, rest: None, run }
}

/// Creates a function with these parameters and any number of further arguments.
pub const fn variadic(
    name: &'static str,
    fixed: &'static [Type],
    rest: Type,
    run: fn(&Args) -> Answer,
) -> Function {
    Function { name, fixed, rest: Some(rest), run }
}

/// Names of upstream functions that are refused here, with the reason.
const REFUSED: [(&[&str], &str); 3] = [
    (
        &[
            "randInt",
            "shuffle",
            "bcrypt",
            "htpasswd",
            "encryptAES",
            "genPrivateKey",
            "genCA",
            "genCAWithKey",
            "genSelfSignedCert",
            "genSelfSignedCertWithKey",
            "genSignedCert",
            "genSignedCertWithKey",
            "buildCustomCert",
        ],
        "returns another value at each call, but a template must always render the same",
    ),
    (
        &["ago", "toDate", "mustToDate", "mustDateModify", "must_date_modify", "unixEpoch"],
        "depends on the clock or the time zone, but a template must always render the same",
    ),
    (&["derivePassword"], "uses 32 MiB of memory at each call, which is too much for a box"),
];

/// Every function; of two functions with one name, the first counts.
pub fn all() -> impl Iterator<Item = &'static Function> {
    // Sprig's functions come before Go's: Sprig's `slice` hides Go's.
    tinkerbell::FUNCTIONS.iter().chain(sprig::tables()).chain(builtin::FUNCTIONS)
}

/// Names of functions that are refused, with the reason.
pub fn refused() -> impl Iterator<Item = (&'static str, &'static str)> {
    REFUSED.iter().flat_map(|(names, why)| names.iter().map(|name| (*name, *why)))
}

impl Function {
    /// Returns the parameters in Go's notation: `string, int, ...interface {}`.
    pub fn parameters(&self) -> String {
        let fixed = self.fixed.iter().map(|kind| kind.name().to_owned());
        let rest = self.rest.map(|kind| format!("...{}", kind.name()));
        fixed.chain(rest).collect::<Vec<_>>().join(", ")
    }
}

/// Finds a function by name.
///
/// # Errors
/// There is no such function, or it is refused.
pub fn find(name: &str) -> Result<&'static Function, String> {
    if let Some(function) = all().find(|function| function.name == name) {
        return Ok(function);
    }
    let refused = REFUSED.iter().find(|(names, _)| names.contains(&name));
    Err(match refused {
        Some((_, why)) => format!("function {name:?} {why}"),
        None => format!("function {name:?} not defined"),
    })
}

/// The arguments of a call; each fits its parameter. An accessor gives an empty value where the
/// parameter has another type, which the table rules out.
pub struct Args<'a> {
    /// Heap for new values.
    pub heap: &'a Heap,
    /// Arguments of the call.
    pub values: &'a [Value],
}

impl<'a> Args<'a> {
    /// Argument of any type.
    pub fn any(&self, at: usize) -> &'a Value {
        self.values.get(at).unwrap_or(&Value::Nil)
    }

    /// Argument of type string.
    pub fn text(&self, at: usize) -> &'a str {
        match self.any(at) {
            Value::Text(text) => text,
            _ => "",
        }
    }

    /// Argument of type int.
    pub fn int(&self, at: usize) -> i64 {
        match self.any(at) {
            Value::Int(number) => *number,
            _ => 0,
        }
    }

    /// Argument of type bool.
    pub fn bool(&self, at: usize) -> bool {
        matches!(self.any(at), Value::Bool(true))
    }

    /// Argument of type float.
    pub fn float(&self, at: usize) -> f64 {
        match self.any(at) {
            Value::Float(number) => *number,
            _ => 0.0,
        }
    }

    /// Argument of type version; `None` is Go's nil pointer.
    pub fn version(&self, at: usize) -> Option<&'a Version> {
        match self.any(at) {
            Value::Version(it) => Some(&it.version),
            _ => None,
        }
    }

    /// Argument of type map; nil is Go's nil map.
    pub fn map(&self, at: usize) -> Result<Map, String> {
        match self.any(at) {
            Value::Map(map) => Ok(map.clone()),
            _ => {
                let map = self.heap.map(Element::Any, Default::default())?;
                Ok(Map { nil: true, ..map })
            }
        }
    }

    /// Arguments from `at` on.
    pub fn from(&self, at: usize) -> &'a [Value] {
        self.values.get(at..).unwrap_or_default()
    }

    /// Makes a new text.
    pub fn made(&self, text: impl Into<std::rc::Rc<str>>) -> Answer {
        self.heap.text(text)
    }
}
