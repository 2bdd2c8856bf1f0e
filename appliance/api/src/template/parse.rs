//! Tokens into a tree (Go `text/template/parse`, parse.go).

use std::collections::VecDeque;

use super::RenderError;
use super::lex::{Joined, Kind, Token};

/// How deep blocks and parentheses may nest.
const DEPTH_MAX: usize = 64;

/// One node of a template.
#[derive(Debug, PartialEq)]
pub enum Node {
    /// Text.
    Text(String),
    /// `{{pipeline}}`.
    Action(Pipe),
    /// `{{if}} … {{else if}} … {{else}} … {{end}}`.
    If(Vec<(Pipe, Vec<Node>)>, Vec<Node>),
    /// `{{with}} … {{else}} … {{end}}`.
    With(Pipe, Vec<Node>, Vec<Node>),
    /// `{{range}} … {{else}} … {{end}}`.
    Range(Pipe, Vec<Node>, Vec<Node>),
}

/// A pipeline, perhaps with variables it sets.
#[derive(Debug, PartialEq)]
pub struct Pipe {
    /// Line, for errors.
    pub line: usize,
    /// Variables on the left.
    pub variables: Vec<String>,
    /// `=` rather than `:=`.
    pub assigns: bool,
    /// Commands, each getting the result of the one before as its last argument.
    pub commands: Vec<Vec<Operand>>,
}

/// A value in a command.
#[derive(Debug, PartialEq)]
pub enum Operand {
    /// `.`.
    Dot,
    /// `nil`.
    Nil,
    /// A constant.
    Constant(serde_json::Value),
    /// A function.
    Function(String),
    /// `.a.b`.
    Fields(Vec<String>),
    /// `$x.a.b`.
    Variable(String, Vec<String>),
    /// `(pipeline).a.b`.
    Group(Box<Pipe>, Vec<String>),
}

/// The tree of a template.
pub fn parse(tokens: Vec<Token>) -> Result<Vec<Node>, RenderError> {
    let mut parser = Parser { line: 1, depth: 0, tokens: tokens.into() };
    let (nodes, end) = parser.block()?;
    match end {
        End::Text => Ok(nodes),
        _ => parser.fail("unexpected {{end}} or {{else}}"),
    }
}

/// What ended a block.
enum End {
    Text,
    Closed,
    Else,
    /// `{{else if …` or `{{else with …`; the pipeline is still to come.
    ElseThen(&'static str),
}

struct Parser {
    line: usize,
    depth: usize,
    tokens: VecDeque<Token>,
}

impl Parser {
    fn fail<T>(&self, message: impl Into<String>) -> Result<T, RenderError> {
        Err(RenderError { line: self.line, message: message.into() })
    }

    fn next(&mut self) -> Option<Kind> {
        let token = self.tokens.pop_front()?;
        self.line = token.line;
        Some(token.kind)
    }

    fn peek(&self) -> Option<&Kind> {
        self.tokens.front().map(|token| &token.kind)
    }

    fn deeper(&mut self) -> Result<(), RenderError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return self.fail(format!("nested deeper than {DEPTH_MAX}"));
        }
        Ok(())
    }

    fn block(&mut self) -> Result<(Vec<Node>, End), RenderError> {
        self.deeper()?;
        let mut nodes = Vec::new();
        let end = loop {
            match self.next() {
                None => break End::Text,
                Some(Kind::Text(text)) => nodes.push(Node::Text(text)),
                Some(Kind::Open) => match self.action()? {
                    Ok(node) => nodes.push(node),
                    Err(end) => break end,
                },
                Some(other) => return self.fail(format!("unexpected {other:?}")),
            }
        };
        self.depth -= 1;
        Ok((nodes, end))
    }

    fn action(&mut self) -> Result<Result<Node, End>, RenderError> {
        let word = match self.peek() {
            Some(Kind::Ident(name)) => name.clone(),
            _ => String::new(),
        };
        match word.as_str() {
            "if" => self.conditional().map(Ok),
            "with" | "range" => self.scoped(&word).map(Ok),
            "end" => {
                self.next();
                self.close()?;
                Ok(Err(End::Closed))
            }
            "else" => {
                self.next();
                let then = match self.peek() {
                    Some(Kind::Ident(name)) if name == "if" => Some("if"),
                    Some(Kind::Ident(name)) if name == "with" => Some("with"),
                    _ => None,
                };
                if let Some(word) = then {
                    return Ok(Err(End::ElseThen(word)));
                }
                self.close()?;
                Ok(Err(End::Else))
            }
            "define" | "template" | "block" | "break" | "continue" => {
                self.fail(format!("{{{{{word}}}}} is not supported here"))
            }
            _ => {
                let pipe = self.pipe("}}")?;
                Ok(Ok(Node::Action(pipe)))
            }
        }
    }

    fn close(&mut self) -> Result<(), RenderError> {
        match self.next() {
            Some(Kind::Close) => Ok(()),
            other => self.fail(format!("unexpected {other:?}, wanted }}}}")),
        }
    }

    fn conditional(&mut self) -> Result<Node, RenderError> {
        let mut arms = Vec::new();
        loop {
            self.next();
            let pipe = self.pipe("}}")?;
            let (nodes, end) = self.block()?;
            arms.push((pipe, nodes));
            match end {
                End::Closed => return Ok(Node::If(arms, Vec::new())),
                End::ElseThen("if") => {}
                End::Else => return Ok(Node::If(arms, self.last_arm()?)),
                _ => return self.fail("{{if}} without {{end}}"),
            }
        }
    }

    fn scoped(&mut self, word: &str) -> Result<Node, RenderError> {
        // `else with` nests without a block of its own.
        self.deeper()?;
        self.next();
        let pipe = self.pipe("}}")?;
        let (nodes, end) = self.block()?;
        let otherwise = match end {
            End::Closed => Vec::new(),
            End::Else => self.last_arm()?,
            End::ElseThen("with") if word == "with" => vec![self.scoped("with")?],
            _ => return self.fail(format!("{{{{{word}}}}} without {{{{end}}}}")),
        };
        self.depth -= 1;
        Ok(match word {
            "with" => Node::With(pipe, nodes, otherwise),
            _ => Node::Range(pipe, nodes, otherwise),
        })
    }

    fn last_arm(&mut self) -> Result<Vec<Node>, RenderError> {
        match self.block()? {
            (nodes, End::Closed) => Ok(nodes),
            _ => self.fail("{{else}} without {{end}}"),
        }
    }

    /// Up to and with `end`, which is `}}` or `)`.
    fn pipe(&mut self, end: &str) -> Result<Pipe, RenderError> {
        self.deeper()?;
        let (variables, assigns) = self.declaration()?;
        let mut commands = vec![Vec::new()];
        loop {
            let operand = match self.next() {
                None => return self.fail("unclosed action"),
                Some(Kind::Close) if end == "}}" => break,
                Some(Kind::Mark(")")) if end == ")" => break,
                Some(Kind::Mark("|")) => {
                    commands.push(Vec::new());
                    continue;
                }
                Some(kind) => self.operand(kind)?,
            };
            if let Some(command) = commands.last_mut() {
                command.push(operand);
            }
        }
        if commands.iter().any(Vec::is_empty) {
            return self.fail("missing value for command");
        }
        self.depth -= 1;
        Ok(Pipe { line: self.line, variables, assigns, commands })
    }

    /// `$x :=`, `$x =` or `$i, $x :=` at the head of a pipeline.
    fn declaration(&mut self) -> Result<(Vec<String>, bool), RenderError> {
        let mark = |at: usize| match self.tokens.get(at).map(|token| &token.kind) {
            Some(Kind::Mark(mark)) => *mark,
            _ => "",
        };
        let name = |at: usize| match self.tokens.get(at).map(|token| &token.kind) {
            Some(Kind::Variable(name)) => Some(name.clone()),
            _ => None,
        };
        let (names, taken) = match (name(0), mark(1), name(2), mark(3)) {
            (Some(x), ":=" | "=", _, _) => (vec![x], 2),
            (Some(i), ",", Some(x), ":=" | "=") => (vec![i, x], 4),
            _ => return Ok((Vec::new(), false)),
        };
        let assigns = mark(taken - 1) == "=";
        for _ in 0..taken {
            self.next();
        }
        Ok((names, assigns))
    }

    fn operand(&mut self, kind: Kind) -> Result<Operand, RenderError> {
        Ok(match kind {
            Kind::Dot => Operand::Dot,
            Kind::Field(name, _) => Operand::Fields(self.chain(vec![name])),
            Kind::Variable(name) => Operand::Variable(name, self.chain(Vec::new())),
            Kind::Str(text) => Operand::Constant(text.into()),
            Kind::Int(number) => Operand::Constant(number.into()),
            Kind::Float(number) => Operand::Constant(number.into()),
            Kind::Mark("(") => {
                let pipe = self.pipe(")")?;
                Operand::Group(Box::new(pipe), self.chain(Vec::new()))
            }
            Kind::Ident(name) => match name.as_str() {
                "true" | "false" => Operand::Constant((name == "true").into()),
                "nil" => Operand::Nil,
                _ => Operand::Function(name),
            },
            other => return self.fail(format!("unexpected {other:?} in a command")),
        })
    }

    fn chain(&mut self, mut fields: Vec<String>) -> Vec<String> {
        while let Some(Kind::Field(name, Joined::Yes)) = self.peek() {
            fields.push(name.clone());
            self.next();
        }
        fields
    }
}
