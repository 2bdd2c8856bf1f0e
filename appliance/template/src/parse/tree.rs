//! Tree of a parsed template.

use std::collections::BTreeMap;

use crate::function::Function;
use crate::number::Number;

/// Template, with the templates that it defines by `define` and `block`.
pub struct Templates {
    /// Nodes of the template itself.
    pub root: Vec<Node>,
    /// Templates of `define` and `block`, by name.
    pub named: BTreeMap<String, Vec<Node>>,
}

/// Node of a template.
pub enum Node {
    Text(String),
    Action(Pipe),
    If(Vec<(Pipe, Vec<Node>)>, Vec<Node>),
    With(Vec<(Pipe, Vec<Node>)>, Vec<Node>),
    Range(Pipe, Vec<Node>, Vec<Node>),
    Template(usize, String, Option<Pipe>),
    Break,
    Continue,
}

/// Pipeline: commands, of which each gets the result of the previous as its last argument, and
/// variables that get the final result.
pub struct Pipe {
    pub line: usize,
    /// True for `=`, false for `:=`.
    pub assigns: bool,
    pub variables: Vec<String>,
    pub commands: Vec<Command>,
}

/// Function or value, with its arguments; has at least one operand.
pub struct Command {
    pub line: usize,
    pub words: Vec<Operand>,
}

/// Function, value or argument of a command.
pub enum Operand {
    Dot,
    Nil,
    Bool(bool),
    Number(Number),
    Text(String),
    /// Fields of the dot: `.a.b`.
    Field(Vec<String>),
    /// Fields of a variable: `$x.a.b`.
    Variable(String, Vec<String>),
    Function(&'static Function),
    Pipe(Box<Pipe>),
    /// Fields of a pipeline or a function result: `(…).a.b`.
    Chain(Box<Operand>, Vec<String>),
}

/// Returns true if the nodes are only white space.
pub fn is_empty(nodes: &[Node]) -> bool {
    nodes.iter().all(|node| matches!(node, Node::Text(text) if text.trim().is_empty()))
}
