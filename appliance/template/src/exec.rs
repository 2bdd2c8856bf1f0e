//! Evaluation of a template (Go `text/template`, exec.go) with the option `missingkey=error`.

mod call;
mod method;
mod range;

use crate::RenderError;
use crate::limits::{NESTING_MAX, OUTPUT_BYTES_MAX};
use crate::parse::{Command, Node, Operand, Pipe, Templates};
use crate::print;
use crate::value::{Heap, Value};

/// Renders a parsed tree with its data.
///
/// # Errors
/// [`RenderError`] with the line of the failed action.
pub fn render(
    templates: &Templates,
    data: &serde_json::Value,
    structs: &[&str],
) -> Result<String, RenderError> {
    let heap = Heap::default();
    let at_start = |message: String| RenderError::new(1, message);
    let dot = heap.dot(data, structs).map_err(at_start)?;
    let mut walk = Walk {
        heap: &heap,
        templates,
        output: String::new(),
        depth: 0,
        variables: vec![("$".to_owned(), dot.clone())],
    };
    match walk.nodes(&templates.root, &dot) {
        Ok(()) => Ok(std::mem::take(&mut walk.output)),
        Err(Stop::Error(error)) => Err(error),
        Err(Stop::Break | Stop::Continue) => Err(at_start("break outside range".to_owned())),
    }
}

/// Reason to leave a list of nodes before its end: an error, `break` or `continue`.
enum Stop {
    Error(RenderError),
    Break,
    Continue,
}

impl From<RenderError> for Stop {
    fn from(error: RenderError) -> Self {
        Stop::Error(error)
    }
}

struct Walk<'w> {
    heap: &'w Heap,
    templates: &'w Templates,
    output: String,
    /// Depth of nested template calls.
    depth: usize,
    variables: Vec<(String, Value)>,
}

/// Adds the line to the message of an error.
fn at<T>(line: usize, result: Result<T, String>) -> Result<T, RenderError> {
    result.map_err(|message| RenderError::new(line, message))
}

fn fail<T>(line: usize, message: impl Into<String>) -> Result<T, RenderError> {
    Err(RenderError::new(line, message))
}

impl<'w> Walk<'w> {
    fn emit(&mut self, text: &str, line: usize) -> Result<(), RenderError> {
        if self.output.len() + text.len() > OUTPUT_BYTES_MAX {
            return fail(line, format!("renders to more than {OUTPUT_BYTES_MAX} bytes"));
        }
        self.output.push_str(text);
        Ok(())
    }

    fn nodes(&mut self, nodes: &'w [Node], dot: &Value) -> Result<(), Stop> {
        nodes.iter().try_for_each(|node| self.node(node, dot))
    }

    /// Runs `body`, then removes the variables that it declared.
    fn scope<T>(&mut self, body: impl FnOnce(&mut Self) -> T) -> T {
        let mark = self.variables.len();
        let result = body(self);
        self.variables.truncate(mark);
        result
    }

    fn node(&mut self, node: &'w Node, dot: &Value) -> Result<(), Stop> {
        match node {
            Node::Text(text) => self.emit(text, self.line_of_output())?,
            Node::Action(pipe) => {
                let value = self.pipe(pipe, dot)?;
                if pipe.variables.is_empty() {
                    self.show(&value, pipe.line)?;
                }
            }
            Node::If(arms, otherwise) => {
                self.scope(|walk| walk.branches(arms, otherwise, dot, false))?;
            }
            Node::With(arms, otherwise) => {
                self.scope(|walk| walk.branches(arms, otherwise, dot, true))?;
            }
            Node::Range(pipe, nodes, otherwise) => {
                match self.scope(|walk| walk.range(pipe, nodes, otherwise, dot)) {
                    Err(Stop::Break) => {}
                    result => result?,
                }
            }
            Node::Template(line, name, pipe) => self.template(*line, name, pipe.as_ref(), dot)?,
            Node::Break => return Err(Stop::Break),
            Node::Continue => return Err(Stop::Continue),
        }
        Ok(())
    }

    /// Returns 1. Text nodes have no line number; their only error is too much output.
    fn line_of_output(&self) -> usize {
        1
    }

    fn show(&mut self, value: &Value, line: usize) -> Result<(), RenderError> {
        if value.is_nil() {
            return self.emit("<no value>", line);
        }
        let text = at(line, print::plain(self.heap, value))?;
        self.emit(&text, line)
    }

    fn branches(
        &mut self,
        arms: &'w [(Pipe, Vec<Node>)],
        otherwise: &'w [Node],
        dot: &Value,
        moves_dot: bool,
    ) -> Result<(), Stop> {
        for (pipe, nodes) in arms {
            let value = self.pipe(pipe, dot)?;
            if value.truth() {
                return self.nodes(nodes, if moves_dot { &value } else { dot });
            }
        }
        self.nodes(otherwise, dot)
    }

    fn template(
        &mut self,
        line: usize,
        name: &str,
        pipe: Option<&'w Pipe>,
        dot: &Value,
    ) -> Result<(), Stop> {
        let Some(nodes) = self.templates.named.get(name) else {
            return Ok(fail(line, format!("template {name:?} not defined"))?);
        };
        if self.depth >= NESTING_MAX {
            let message = format!("templates call one another more than {NESTING_MAX} deep");
            return Ok(fail(line, message)?);
        }
        at(line, self.heap.step(1))?;
        let dot = match pipe {
            Some(pipe) => self.pipe(pipe, dot)?,
            None => Value::Nil,
        };
        self.depth += 1;
        // A template does not see the variables of its caller.
        let outer = std::mem::replace(&mut self.variables, vec![("$".to_owned(), dot.clone())]);
        let result = self.nodes(nodes, &dot);
        self.variables = outer;
        self.depth -= 1;
        result
    }

    fn pipe(&mut self, pipe: &'w Pipe, dot: &Value) -> Result<Value, RenderError> {
        let mut last: Option<Value> = None;
        for command in &pipe.commands {
            at(command.line, self.heap.step(1))?;
            last = Some(self.command(command, dot, last)?.bare());
        }
        let value = last.unwrap_or(Value::Nil);
        for name in &pipe.variables {
            if pipe.assigns {
                self.assign(name, value.clone(), pipe.line)?;
            } else {
                self.variables.push((name.clone(), value.clone()));
            }
        }
        Ok(value)
    }

    fn assign(&mut self, name: &str, value: Value, line: usize) -> Result<(), RenderError> {
        match self.variables.iter_mut().rev().find(|(known, _)| known == name) {
            Some((_, slot)) => *slot = value,
            None => return fail(line, format!("undefined variable: {name}")),
        }
        Ok(())
    }

    fn variable(&self, name: &str, line: usize) -> Result<Value, RenderError> {
        match self.variables.iter().rev().find(|(known, _)| known == name) {
            Some((_, value)) => Ok(value.clone()),
            None => fail(line, format!("undefined variable: {name}")),
        }
    }

    fn command(
        &mut self,
        command: &'w Command,
        dot: &Value,
        last: Option<Value>,
    ) -> Result<Value, RenderError> {
        let Some((word, arguments)) = command.words.split_first() else {
            return fail(command.line, "empty command");
        };
        if let Operand::Function(function) = word {
            return self.call(function, arguments, command.line, dot, last);
        }
        if !arguments.is_empty() || last.is_some() {
            return self.method_call(word, arguments, command.line, dot, last);
        }
        if matches!(word, Operand::Nil) {
            return fail(command.line, "nil is not a command");
        }
        self.operand(word, command.line, dot)
    }

    /// Returns the value of an operand in a place without an expected type.
    fn operand(
        &mut self,
        operand: &'w Operand,
        line: usize,
        dot: &Value,
    ) -> Result<Value, RenderError> {
        match operand {
            Operand::Dot => Ok(dot.clone()),
            Operand::Nil => Ok(Value::Hollow),
            Operand::Bool(is) => Ok(Value::Bool(*is)),
            Operand::Text(text) => at(line, self.heap.text(text.as_str())),
            Operand::Number(number) if number.overflows => fail(line, "a number overflows int"),
            Operand::Number(number) => Ok(match number.int {
                Some(int) if !number.is_float => Value::Int(int),
                _ => Value::Float(number.float),
            }),
            Operand::Field(fields) => self.fields(dot.clone(), fields, line),
            Operand::Variable(name, fields) => {
                let value = self.variable(name, line)?;
                self.fields(value, fields, line)
            }
            Operand::Function(function) => self.call(function, &[], line, dot, None),
            Operand::Pipe(pipe) => self.pipe(pipe, dot),
            Operand::Chain(inner, fields) => {
                let value = self.operand(inner, line, dot)?;
                self.fields(value, fields, line)
            }
        }
    }

    fn fields(
        &mut self,
        value: Value,
        fields: &'w [String],
        line: usize,
    ) -> Result<Value, RenderError> {
        let mut value = value;
        for field in fields {
            at(line, self.heap.step(1))?;
            value = match &value {
                Value::Map(map) => match map.get(field) {
                    Some(value) => value,
                    None => return fail(line, format!("map has no entry for key {field:?}")),
                },
                Value::Version(it) => self.method(it, field, &[], line, &Value::Nil, None)?,
                value if value.is_nil() => {
                    return fail(line, format!("nil data; no entry for key {field:?}"));
                }
                other => {
                    let name = other.type_name();
                    return fail(line, format!("can't evaluate field {field} in type {name}"));
                }
            };
        }
        Ok(value)
    }
}
