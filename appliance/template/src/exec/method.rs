//! Method calls. Only versions have methods.

use super::call::fit;
use super::{RenderError, Value, Walk, at, fail};
use crate::function::{Args, Function, Type};
use crate::functions::sprig::versions::{METHODS, POINTER_METHODS};
use crate::parse::Operand;
use crate::version::VersionRef;

impl<'w> Walk<'w> {
    /// Evaluates an operand with arguments: its last field is the method.
    pub(super) fn method_call(
        &mut self,
        word: &'w Operand,
        operands: &'w [Operand],
        line: usize,
        dot: &Value,
        last: Option<Value>,
    ) -> Result<Value, RenderError> {
        let (value, fields) = match word {
            Operand::Field(fields) => (dot.clone(), fields),
            Operand::Variable(name, fields) => (self.variable(name, line)?, fields),
            Operand::Chain(inner, fields) => (self.operand(inner, line, dot)?, fields),
            _ => return fail(line, "can't give argument to non-function"),
        };
        let Some((method, fields)) = fields.split_last() else {
            return fail(line, "can't give argument to non-function");
        };
        match self.fields(value, fields, line)? {
            Value::Version(it) => self.method(&it, method, operands, line, dot, last),
            _ => fail(line, format!("{method} is not a method but has arguments")),
        }
    }

    /// Calls a method of a version.
    pub(super) fn method(
        &mut self,
        receiver: &VersionRef,
        name: &str,
        operands: &'w [Operand],
        line: usize,
        dot: &Value,
        last: Option<Value>,
    ) -> Result<Value, RenderError> {
        let pointer: &[Function] = if receiver.is_pointer { POINTER_METHODS } else { &[] };
        let Some(method) = METHODS.iter().chain(pointer).find(|method| method.name == name) else {
            let receiver = Value::Version(receiver.clone()).type_name();
            return fail(line, format!("can't evaluate field {name} in type {receiver}"));
        };
        let wanted = method.fixed.get(1..).unwrap_or_default();
        let count = operands.len() + usize::from(last.is_some());
        if count != wanted.len() {
            let wanted = wanted.len();
            return fail(
                line,
                format!("wrong number of args for {name}: want {wanted} got {count}"),
            );
        }
        let mut values = vec![Value::Version(receiver.clone())];
        for operand in operands {
            let wanted = method.fixed.get(values.len()).copied().unwrap_or(Type::Any);
            values.push(self.argument(operand, wanted, line, dot)?);
        }
        if let Some(last) = last {
            let wanted = method.fixed.get(values.len()).copied().unwrap_or(Type::Any);
            values.push(fit(last, wanted, line)?);
        }
        at(line, self.heap.step(values.len()))?;
        let args = Args { heap: self.heap, values: &values };
        (method.run)(&args).or_else(|why| fail(line, format!("error calling {name}: {why}")))
    }
}
