//! Tree of a parsed template.

use std::collections::BTreeMap;

use super::Number;
use crate::function::Function;

/// A template and those that it defines.
pub struct Templates {
    /// Nodes of the template itself.
    pub root: Vec<Node>,
    /// Templates of `define` and `block`, by name.
    pub named: BTreeMap<String, Vec<Node>>,
}

/// One piece of a template.
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

/// Commands, each given the last one's value, and the variables that get the result.
pub struct Pipe {
    pub line: usize,
    /// `=` instead of `:=`.
    pub assigns: bool,
    pub variables: Vec<String>,
    pub commands: Vec<Command>,
}

/// A word and its arguments; there is always the word.
pub struct Command {
    pub line: usize,
    pub words: Vec<Operand>,
}

/// A word of a command.
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
    /// `(…).a.b`, or fields of what a function gives.
    Chain(Box<Operand>, Vec<String>),
}

/// True if the nodes are only white space.
pub fn is_empty(nodes: &[Node]) -> bool {
    nodes.iter().all(|node| matches!(node, Node::Text(text) if text.trim().is_empty()))
}
