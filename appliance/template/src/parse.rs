//! Parser of templates (Go `text/template/parse`, parse.go).

mod lex;
mod pipeline;
mod tree;

use std::collections::BTreeMap;

pub use tree::{Command, Node, Operand, Pipe, Templates};

use crate::RenderError;
use crate::limits::{NESTING_MAX, TEMPLATE_BYTES_MAX};
use lex::{Kind, Token, lex};

/// Parses `text` and every template that it defines.
///
/// # Errors
/// [`RenderError`] with the line: invalid syntax, unknown function or variable, or a limit.
pub fn parse(text: &str) -> Result<Templates, RenderError> {
    if text.len() > TEMPLATE_BYTES_MAX {
        let message = format!("a template of more than {TEMPLATE_BYTES_MAX} bytes");
        return Err(RenderError::new(1, message));
    }
    let mut parser = Parser {
        tokens: lex(text)?,
        at: 0,
        nesting: 0,
        scope: Scope::default(),
        named: BTreeMap::new(),
    };
    let root = parser.top()?;
    Ok(Templates { root, named: parser.named })
}

/// Variables of one template; nested templates cannot use them.
struct Scope {
    variables: Vec<String>,
    ranges: usize,
}

impl Default for Scope {
    fn default() -> Self {
        Scope { variables: vec!["$".to_owned()], ranges: 0 }
    }
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    nesting: usize,
    scope: Scope,
    named: BTreeMap<String, Vec<Node>>,
}

/// Token that ended a list of nodes.
enum End {
    End,
    Else,
}

/// Kind of an action.
enum Item {
    Node(Node),
    End(End),
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        let end = Token { kind: Kind::Eof, text: "", line: 1 };
        self.tokens.get(self.at).or(self.tokens.last()).copied().unwrap_or(end)
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn skip_space(&mut self) {
        while self.peek().kind == Kind::Space {
            self.at += 1;
        }
    }

    fn next_word(&mut self) -> Token<'a> {
        self.skip_space();
        self.next()
    }

    fn expect(&mut self, kind: Kind, context: &str) -> Result<Token<'a>, RenderError> {
        let token = self.next_word();
        if token.kind == kind { Ok(token) } else { unexpected(token, context) }
    }

    /// Runs `body` one nesting level deeper; an error beyond [`NESTING_MAX`].
    fn nested<T>(
        &mut self,
        body: impl FnOnce(&mut Self) -> Result<T, RenderError>,
    ) -> Result<T, RenderError> {
        self.nesting += 1;
        if self.nesting > NESTING_MAX {
            let message = format!("nested more than {NESTING_MAX} deep");
            return Err(RenderError::new(self.peek().line, message));
        }
        let result = body(self);
        self.nesting -= 1;
        result
    }

    fn top(&mut self) -> Result<Vec<Node>, RenderError> {
        let mut nodes = Vec::new();
        while self.peek().kind != Kind::Eof {
            let token = self.peek();
            let start = self.at;
            if token.kind == Kind::LeftDelim {
                self.at += 1;
                let word = self.next_word();
                if word.kind == Kind::Keyword && word.text == "define" {
                    self.define()?;
                    continue;
                }
                self.at = start;
            }
            match self.item()? {
                Item::Node(node) => nodes.push(node),
                Item::End(_) => {
                    return Err(RenderError::new(token.line, "unexpected {{end}} or {{else}}"));
                }
            }
        }
        Ok(nodes)
    }

    /// Parses `{{define "name"}} … {{end}}` after the keyword.
    fn define(&mut self) -> Result<(), RenderError> {
        let name = self.name("define clause")?;
        self.expect(Kind::RightDelim, "define clause")?;
        self.body(name, "define clause")
    }

    /// Parses the nodes of a nested template, up to its end.
    fn body(&mut self, name: String, context: &str) -> Result<(), RenderError> {
        let outer = std::mem::take(&mut self.scope);
        let line = self.peek().line;
        let (nodes, end) = self.list()?;
        self.scope = outer;
        if matches!(end, End::Else) {
            return Err(RenderError::new(line, format!("unexpected {{{{else}}}} in {context}")));
        }
        let is_new = self.named.get(&name).is_none_or(|nodes| tree::is_empty(nodes));
        if !is_new && !tree::is_empty(&nodes) {
            return Err(RenderError::new(line, format!("two templates are named {name:?}")));
        }
        if is_new {
            self.named.insert(name, nodes);
        }
        Ok(())
    }

    fn name(&mut self, context: &str) -> Result<String, RenderError> {
        let token = self.expect(Kind::String, context)?;
        crate::unquote::string(token.text).map_err(|error| RenderError::new(token.line, error))
    }

    /// Parses nodes up to an `end` or `else`.
    fn list(&mut self) -> Result<(Vec<Node>, End), RenderError> {
        let mut nodes = Vec::new();
        loop {
            self.skip_space();
            let token = self.peek();
            if token.kind == Kind::Eof {
                return Err(RenderError::new(token.line, "unexpected EOF: an {{end}} is missing"));
            }
            match self.item()? {
                Item::Node(node) => nodes.push(node),
                Item::End(end) => return Ok((nodes, end)),
            }
        }
    }

    fn item(&mut self) -> Result<Item, RenderError> {
        let token = self.next_word();
        match token.kind {
            Kind::Text => Ok(Item::Node(Node::Text(token.text.to_owned()))),
            Kind::LeftDelim => self.action(),
            _ => unexpected(token, "input"),
        }
    }

    fn action(&mut self) -> Result<Item, RenderError> {
        self.skip_space();
        let token = self.peek();
        if token.kind != Kind::Keyword || token.text == "nil" {
            let pipe = self.pipeline("command", Kind::RightDelim)?;
            return Ok(Item::Node(Node::Action(pipe)));
        }
        self.at += 1;
        match token.text {
            "end" => {
                self.expect(Kind::RightDelim, "end")?;
                Ok(Item::End(End::End))
            }
            "else" => {
                self.skip_space();
                let next = self.peek();
                // The caller handles the word after `else if` and `else with`.
                if next.kind != Kind::Keyword || !matches!(next.text, "if" | "with") {
                    self.expect(Kind::RightDelim, "else")?;
                }
                Ok(Item::End(End::Else))
            }
            "if" => self.nested(|parser| parser.branches("if")).map(Item::Node),
            "with" => self.nested(|parser| parser.branches("with")).map(Item::Node),
            "range" => self.nested(Self::range).map(Item::Node),
            "template" => self.template(token.line).map(Item::Node),
            "block" => self.nested(|parser| parser.block(token.line)).map(Item::Node),
            word @ ("break" | "continue") => {
                self.expect(Kind::RightDelim, word)?;
                if self.scope.ranges == 0 {
                    let message = format!("{{{{{word}}}}} outside {{{{range}}}}");
                    return Err(RenderError::new(token.line, message));
                }
                Ok(Item::Node(if word == "break" { Node::Break } else { Node::Continue }))
            }
            _ => unexpected(token, "command"),
        }
    }

    /// Parses `if` or `with`, up to its `end`.
    fn branches(&mut self, word: &str) -> Result<Node, RenderError> {
        let mark = self.scope.variables.len();
        let mut arms = Vec::new();
        let mut otherwise = Vec::new();
        loop {
            let pipe = self.pipeline(word, Kind::RightDelim)?;
            let (nodes, end) = self.list()?;
            arms.push((pipe, nodes));
            if matches!(end, End::End) {
                break;
            }
            let next = self.peek();
            if next.kind == Kind::Keyword && next.text == word {
                self.at += 1;
                continue;
            }
            otherwise = self.otherwise()?;
            break;
        }
        self.scope.variables.truncate(mark);
        Ok(match word {
            "if" => Node::If(arms, otherwise),
            _ => Node::With(arms, otherwise),
        })
    }

    /// Parses the nodes after an `else`, up to the required `end`.
    fn otherwise(&mut self) -> Result<Vec<Node>, RenderError> {
        let line = self.peek().line;
        match self.list()? {
            (nodes, End::End) => Ok(nodes),
            _ => Err(RenderError::new(line, "expected end; found {{else}}")),
        }
    }

    fn range(&mut self) -> Result<Node, RenderError> {
        let mark = self.scope.variables.len();
        let pipe = self.pipeline("range", Kind::RightDelim)?;
        self.scope.ranges += 1;
        let (nodes, end) = self.list()?;
        self.scope.ranges -= 1;
        let otherwise = match end {
            End::End => Vec::new(),
            End::Else => self.otherwise()?,
        };
        self.scope.variables.truncate(mark);
        Ok(Node::Range(pipe, nodes, otherwise))
    }

    fn template(&mut self, line: usize) -> Result<Node, RenderError> {
        let name = self.name("template clause")?;
        self.skip_space();
        if self.peek().kind == Kind::RightDelim {
            self.at += 1;
            return Ok(Node::Template(line, name, None));
        }
        let pipe = self.pipeline("template clause", Kind::RightDelim)?;
        Ok(Node::Template(line, name, Some(pipe)))
    }

    fn block(&mut self, line: usize) -> Result<Node, RenderError> {
        let name = self.name("block clause")?;
        let pipe = self.pipeline("block clause", Kind::RightDelim)?;
        self.body(name.clone(), "block clause")?;
        Ok(Node::Template(line, name, Some(pipe)))
    }
}

fn unexpected<T>(token: Token<'_>, context: &str) -> Result<T, RenderError> {
    let what = match token.kind {
        Kind::Eof => "end of the template".to_owned(),
        _ => format!("{:?}", token.text.chars().take(20).collect::<String>()),
    };
    Err(RenderError::new(token.line, format!("unexpected {what} in {context}")))
}
