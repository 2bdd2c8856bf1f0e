//! The action `range` over integers, lists and maps.

use super::{Stop, Walk, at, fail};
use crate::parse::{Node, Pipe};
use crate::value::{List, Map, Value};

impl<'w> Walk<'w> {
    pub(super) fn range(
        &mut self,
        pipe: &'w Pipe,
        nodes: &'w [Node],
        otherwise: &'w [Node],
        dot: &Value,
    ) -> Result<(), Stop> {
        let value = self.pipe(pipe, dot)?;
        let ran = match &value {
            Value::Nil | Value::Hollow => false,
            Value::Int(count) => self.counted(*count, Value::Int, pipe, nodes)?,
            Value::Int64(count) => self.counted(*count, Value::Int64, pipe, nodes)?,
            Value::Byte(count) => {
                let number = |number: i64| Value::Byte(u8::try_from(number).unwrap_or(0));
                self.counted(i64::from(*count), number, pipe, nodes)?
            }
            Value::Word(count) => {
                let count = i64::try_from(*count).unwrap_or(i64::MAX);
                let number = |number: i64| Value::Word(number.unsigned_abs());
                self.counted(count, number, pipe, nodes)?
            }
            Value::List(list) => self.listed(list, pipe, nodes)?,
            Value::Map(map) => self.mapped(map, pipe, nodes)?,
            other => {
                let name = other.type_name();
                return Ok(fail(pipe.line, format!("range can't iterate over {name}"))?);
            }
        };
        if ran { Ok(()) } else { self.nodes(otherwise, dot) }
    }

    fn counted(
        &mut self,
        count: i64,
        number: impl Fn(i64) -> Value,
        pipe: &'w Pipe,
        nodes: &'w [Node],
    ) -> Result<bool, Stop> {
        if pipe.variables.len() > 1 {
            let message = "can't iterate over a number with more than one variable";
            return Ok(fail(pipe.line, message)?);
        }
        for at in 0..count {
            self.round(Value::Nil, number(at), pipe, nodes)?;
        }
        Ok(count > 0)
    }

    fn listed(&mut self, list: &List, pipe: &'w Pipe, nodes: &'w [Node]) -> Result<bool, Stop> {
        for at in 0..list.len() {
            let index = Value::Int(i64::try_from(at).unwrap_or(i64::MAX));
            self.round(index, list.get(at).unwrap_or(Value::Nil), pipe, nodes)?;
        }
        Ok(list.len() > 0)
    }

    /// Visits the entries of a map in the order of their keys. Entries that the loop adds are not
    /// visited. Returns false for an empty map.
    fn mapped(&mut self, map: &Map, pipe: &'w Pipe, nodes: &'w [Node]) -> Result<bool, Stop> {
        let pairs = map.pairs();
        at(pipe.line, self.heap.step(pairs.len()))?;
        let is_filled = !pairs.is_empty();
        for (key, value) in pairs {
            let value = if value.is_nil() { Value::Hollow } else { value };
            self.round(Value::Text(key), value, pipe, nodes)?;
        }
        Ok(is_filled)
    }

    fn round(
        &mut self,
        index: Value,
        item: Value,
        pipe: &'w Pipe,
        nodes: &'w [Node],
    ) -> Result<(), Stop> {
        at(pipe.line, self.heap.step(1))?;
        match (pipe.variables.as_slice(), pipe.assigns) {
            ([name], true) => self.assign(name, item.clone(), pipe.line)?,
            ([first, second], true) => {
                self.assign(first, index, pipe.line)?;
                self.assign(second, item.clone(), pipe.line)?;
            }
            (names, _) => {
                // They were declared with the pipeline, last of all.
                let top = self.variables.len();
                let mut values = vec![item.clone(), index];
                values.truncate(names.len());
                for (slot, value) in self.variables[..top].iter_mut().rev().zip(values) {
                    slot.1 = value;
                }
            }
        }
        match self.scope(|walk| walk.nodes(nodes, &item)) {
            Err(Stop::Continue) => Ok(()),
            result => result,
        }
    }
}
