//! Function calls: evaluation and type check of the arguments.

use super::{RenderError, Value, Walk, at, fail};
use crate::function::{Args, Function, Type};
use crate::parse::Operand;
use crate::value::{Element, Map};

impl<'w> Walk<'w> {
    pub(super) fn call(
        &mut self,
        function: &'static Function,
        operands: &'w [Operand],
        line: usize,
        dot: &Value,
        last: Option<Value>,
    ) -> Result<Value, RenderError> {
        let count = operands.len() + usize::from(last.is_some());
        let (name, fixed) = (function.name, function.fixed.len());
        if count < fixed || (function.rest.is_none() && count > fixed) {
            let least = if function.rest.is_some() { "at least " } else { "" };
            let message =
                format!("wrong number of args for {name}: want {least}{fixed} got {count}");
            return fail(line, message);
        }
        if matches!(name, "and" | "or") {
            return self.decide(name == "or", operands, line, dot, last);
        }
        let mut values = Vec::with_capacity(count);
        for operand in operands {
            let wanted = parameter(function, values.len());
            values.push(self.argument(operand, wanted, line, dot)?);
        }
        if let Some(last) = last {
            values.push(fit(last, parameter(function, values.len()), line)?);
        }
        at(line, self.heap.step(1 + values.len()))?;
        let args = Args { heap: self.heap, values: &values };
        match (function.run)(&args) {
            Ok(value) => Ok(value),
            Err(message) => fail(line, format!("error calling {name}: {message}")),
        }
    }

    /// Evaluates `and` or `or` up to the first argument whose truth is `wanted`.
    fn decide(
        &mut self,
        wanted: bool,
        operands: &'w [Operand],
        line: usize,
        dot: &Value,
        last: Option<Value>,
    ) -> Result<Value, RenderError> {
        let mut value = Value::Nil;
        for operand in operands {
            value = self.argument(operand, Type::Reflect, line, dot)?;
            if value.truth() == wanted {
                return Ok(value);
            }
        }
        Ok(last.unwrap_or(value))
    }

    pub(super) fn argument(
        &mut self,
        operand: &'w Operand,
        wanted: Type,
        line: usize,
        dot: &Value,
    ) -> Result<Value, RenderError> {
        let mismatch = |what: &str| fail(line, format!("expected {}; found {what}", wanted.name()));
        match (operand, wanted) {
            (Operand::Nil, Type::Any | Type::Reflect | Type::Map | Type::Version) => Ok(Value::Nil),
            (Operand::Nil, _) => fail(line, format!("cannot assign nil to {}", wanted.name())),
            (
                Operand::Bool(_) | Operand::Number(_) | Operand::Text(_),
                Type::Any | Type::Reflect,
            ) => self.operand(operand, line, dot),
            (Operand::Bool(is), Type::Bool) => Ok(Value::Bool(*is)),
            (Operand::Text(_), Type::Text) => self.operand(operand, line, dot),
            (Operand::Number(number), Type::Float) => Ok(Value::Float(number.float)),
            (Operand::Number(number), Type::Int) => match number.int {
                Some(int) => Ok(Value::Int(int)),
                None => mismatch("another number"),
            },
            (Operand::Bool(_), _) => mismatch("a bool"),
            (Operand::Number(_), _) => mismatch("a number"),
            (Operand::Text(_), _) => mismatch("a string"),
            _ => {
                let value = self.operand(operand, line, dot)?;
                fit(value, wanted, line)
            }
        }
    }
}

/// Returns the type of the parameter at `at`.
fn parameter(function: &Function, at: usize) -> Type {
    function.fixed.get(at).copied().or(function.rest).unwrap_or(Type::Any)
}

/// Returns the value as an argument of type `wanted`; an error if the types differ.
pub(super) fn fit(value: Value, wanted: Type, line: usize) -> Result<Value, RenderError> {
    let fits = match (&value, wanted) {
        (_, Type::Any | Type::Reflect) => true,
        (Value::Nil, Type::Map | Type::Version) => true,
        (Value::Text(_), Type::Text)
        | (Value::Int(_), Type::Int)
        | (Value::Float(_), Type::Float)
        | (Value::Bool(_), Type::Bool) => true,
        (Value::Version(it), Type::Version) => it.is_pointer,
        (Value::Map(Map { element, .. }), Type::Map) => *element == Element::Any,
        _ => false,
    };
    if fits {
        return Ok(value.bare());
    }
    let (wanted, got) = (wanted.name(), value.type_name());
    fail(line, format!("wrong type for value; expected {wanted}; got {got}"))
}
