//! Walks the tree (Go `text/template`, exec.go) with `missingkey=error`.

use serde_json::{Map, Value};

use super::parse::{Node, Operand, Pipe};
use super::weight::{STEP_BYTES, may_make, weight};
use super::{OUTPUT_BYTES_MAX, RenderError, functions};

/// How many steps one rendering may take: nodes and commands walked, and the bytes they handled.
const STEPS_MAX: usize = 200_000;
/// The longest message of an error, in characters.
const MESSAGE_CHARS_MAX: usize = 400;

/// Render a tree.
pub fn render(nodes: &[Node], data: &Value) -> Result<String, RenderError> {
    let mut walk =
        Walk { output: String::new(), steps: 0, variables: vec![(String::new(), data.clone())] };
    walk.nodes(nodes, data)?;
    Ok(walk.output)
}

struct Walk {
    output: String,
    steps: usize,
    variables: Vec<(String, Value)>,
}

/// Go's truth: false, 0, "", nil and empty collections are false.
pub fn truth(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(bool) => *bool,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

/// What a value is, without what it holds: an error must not print a secret.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nil",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// A value as Go prints it with `%v`.
pub fn print(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(bool) => bool.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(print).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(key, value)| format!("{key}:{}", print(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}

impl Walk {
    fn step(&mut self, line: usize) -> Result<(), RenderError> {
        self.steps(1, line)
    }

    /// Pays for a value that was copied or made.
    fn pay(&mut self, value: &Value, line: usize) -> Result<(), RenderError> {
        let Some(bytes) = weight(value) else {
            return Err(RenderError { line, message: "nested too deeply".to_owned() });
        };
        self.steps(bytes / STEP_BYTES, line)
    }

    fn steps(&mut self, count: usize, line: usize) -> Result<(), RenderError> {
        self.steps += count;
        if self.steps > STEPS_MAX {
            let message = format!("takes more than {STEPS_MAX} steps");
            return Err(RenderError { line, message });
        }
        Ok(())
    }

    fn emit(&mut self, text: &str, line: usize) -> Result<(), RenderError> {
        if self.output.len() + text.len() > OUTPUT_BYTES_MAX {
            let message = format!("renders to more than {OUTPUT_BYTES_MAX} bytes");
            return Err(RenderError { line, message });
        }
        self.output.push_str(text);
        Ok(())
    }

    fn nodes(&mut self, nodes: &[Node], dot: &Value) -> Result<(), RenderError> {
        nodes.iter().try_for_each(|node| self.node(node, dot))
    }

    /// Runs `body` and forgets the variables it declared.
    fn scope<T>(
        &mut self,
        body: impl FnOnce(&mut Self) -> Result<T, RenderError>,
    ) -> Result<T, RenderError> {
        let mark = self.variables.len();
        let result = body(self);
        self.variables.truncate(mark);
        result
    }

    fn node(&mut self, node: &Node, dot: &Value) -> Result<(), RenderError> {
        match node {
            Node::Text(text) => self.emit(text, 0),
            Node::Action(pipe) => {
                let value = self.pipe(pipe, dot)?;
                match (&value, pipe.variables.is_empty()) {
                    (_, false) => Ok(()),
                    (Value::Null, true) => self.emit("<no value>", pipe.line),
                    (value, true) => self.emit(&print(value), pipe.line),
                }
            }
            Node::If(arms, otherwise) => self.scope(|walk| {
                for (pipe, nodes) in arms {
                    if truth(&walk.pipe(pipe, dot)?) {
                        return walk.nodes(nodes, dot);
                    }
                }
                walk.nodes(otherwise, dot)
            }),
            Node::With(pipe, nodes, otherwise) => self.scope(|walk| {
                let value = walk.pipe(pipe, dot)?;
                if truth(&value) { walk.nodes(nodes, &value) } else { walk.nodes(otherwise, dot) }
            }),
            Node::Range(pipe, nodes, otherwise) => {
                self.scope(|walk| walk.range(pipe, nodes, otherwise, dot))
            }
        }
    }

    fn range(
        &mut self,
        pipe: &Pipe,
        nodes: &[Node],
        otherwise: &[Node],
        dot: &Value,
    ) -> Result<(), RenderError> {
        let value = self.commands(pipe, dot)?;
        let items: Vec<(Value, Value)> = match value {
            Value::Null => Vec::new(),
            Value::Array(items) => {
                items.into_iter().enumerate().map(|(at, item)| (at.into(), item)).collect()
            }
            Value::Object(fields) => {
                fields.into_iter().map(|(key, value)| (key.into(), value)).collect()
            }
            other => {
                let message = format!("range can't iterate over {}", kind(&other));
                return Err(RenderError { line: pipe.line, message });
            }
        };
        if items.is_empty() {
            return self.nodes(otherwise, dot);
        }
        for (key, item) in items {
            self.step(pipe.line)?;
            self.pay(&item, pipe.line)?;
            self.scope(|walk| {
                match pipe.variables.as_slice() {
                    [] => {}
                    [x] => walk.variables.push((x.clone(), item.clone())),
                    [i, x, ..] => {
                        walk.variables.push((i.clone(), key));
                        walk.variables.push((x.clone(), item.clone()));
                    }
                }
                walk.nodes(nodes, &item)
            })?;
        }
        Ok(())
    }

    fn pipe(&mut self, pipe: &Pipe, dot: &Value) -> Result<Value, RenderError> {
        let value = self.commands(pipe, dot)?;
        if let [name] = pipe.variables.as_slice() {
            if pipe.assigns {
                let slot = self.variables.iter_mut().rev().find(|(known, _)| known == name);
                match slot {
                    Some((_, slot)) => *slot = value.clone(),
                    None => return fail(pipe, format!("undefined variable: ${name}")),
                }
            } else {
                self.variables.push((name.clone(), value.clone()));
            }
        }
        Ok(value)
    }

    fn commands(&mut self, pipe: &Pipe, dot: &Value) -> Result<Value, RenderError> {
        let mut last: Option<Value> = None;
        for command in &pipe.commands {
            self.step(pipe.line)?;
            last = Some(self.command(command, pipe, dot, last)?);
        }
        Ok(last.unwrap_or(Value::Null))
    }

    fn command(
        &mut self,
        command: &[Operand],
        pipe: &Pipe,
        dot: &Value,
        last: Option<Value>,
    ) -> Result<Value, RenderError> {
        if let Some(Operand::Function(name)) = command.first() {
            return self.call(name, &command[1..], pipe, dot, last);
        }
        match command {
            [operand] if last.is_none() => self.operand(operand, pipe, dot),
            _ => fail(pipe, "can't give argument to a value that is no function".to_owned()),
        }
    }

    fn call(
        &mut self,
        name: &str,
        operands: &[Operand],
        pipe: &Pipe,
        dot: &Value,
        last: Option<Value>,
    ) -> Result<Value, RenderError> {
        let mut arguments = Vec::with_capacity(operands.len() + 1);
        for operand in operands {
            let value = self.operand(operand, pipe, dot)?;
            // `and` and `or` stop at the argument that decides.
            let decided = match name {
                "and" => !truth(&value),
                "or" => truth(&value),
                _ => false,
            };
            if decided {
                return Ok(value);
            }
            arguments.push(value);
        }
        arguments.extend(last);
        self.steps(functions::cost(name), pipe.line)?;
        let value = functions::call(name, arguments).or_else(|message| fail(pipe, message))?;
        if let Some(bytes) = weight(&value) {
            may_make(bytes).or_else(|message| fail(pipe, format!("{name}: {message}")))?;
        }
        self.pay(&value, pipe.line)?;
        Ok(value)
    }

    fn operand(
        &mut self,
        operand: &Operand,
        pipe: &Pipe,
        dot: &Value,
    ) -> Result<Value, RenderError> {
        let value = self.look_up(operand, pipe, dot)?;
        self.pay(&value, pipe.line)?;
        Ok(value)
    }

    fn look_up(
        &mut self,
        operand: &Operand,
        pipe: &Pipe,
        dot: &Value,
    ) -> Result<Value, RenderError> {
        match operand {
            Operand::Dot => Ok(dot.clone()),
            Operand::Nil => Ok(Value::Null),
            Operand::Constant(value) => Ok(value.clone()),
            Operand::Function(name) => self.call(name, &[], pipe, dot, None),
            Operand::Fields(fields) => walk_fields(dot, fields, pipe),
            Operand::Variable(name, fields) => {
                let found = self.variables.iter().rev().find(|(known, _)| known == name);
                match found {
                    Some((_, value)) => walk_fields(value, fields, pipe),
                    None => fail(pipe, format!("undefined variable: ${name}")),
                }
            }
            Operand::Group(group, fields) => {
                let value = self.pipe(group, dot)?;
                walk_fields(&value, fields, pipe)
            }
        }
    }
}

fn walk_fields(value: &Value, fields: &[String], pipe: &Pipe) -> Result<Value, RenderError> {
    let mut value = value;
    for field in fields {
        let object: &Map<String, Value> = match value {
            Value::Object(object) => object,
            Value::Null => return fail(pipe, format!("nil data; no entry for key {field:?}")),
            other => {
                return fail(pipe, format!("can't evaluate field {field} in {}", kind(other)));
            }
        };
        value = match object.get(field) {
            Some(value) => value,
            None => return fail(pipe, format!("map has no entry for key {field:?}")),
        };
    }
    Ok(value.clone())
}

fn fail<T>(pipe: &Pipe, message: String) -> Result<T, RenderError> {
    let message = message.chars().take(MESSAGE_CHARS_MAX).collect();
    Err(RenderError { line: pipe.line, message })
}
