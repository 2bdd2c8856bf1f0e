//! Parser of pipelines: declarations, commands and operands.

use super::lex::{Kind, Token};
use super::{Command, Operand, Parser, Pipe, unexpected};
use crate::number::{Number, from_text as number_from_text};
use crate::{RenderError, functions, unquote};

impl Parser<'_> {
    /// Parses a pipeline including the token `end`.
    pub(super) fn pipeline(&mut self, context: &str, end: Kind) -> Result<Pipe, RenderError> {
        self.skip_space();
        let line = self.peek().line;
        let mut pipe = Pipe { line, assigns: false, variables: Vec::new(), commands: Vec::new() };
        self.declarations(context, &mut pipe)?;
        loop {
            let token = self.next_word();
            if token.kind == end {
                break;
            }
            if !starts_operand(token) {
                return unexpected(token, context);
            }
            self.at -= 1;
            let command = self.command()?;
            pipe.commands.push(command);
        }
        check(&pipe, context)?;
        Ok(pipe)
    }

    fn declarations(&mut self, context: &str, pipe: &mut Pipe) -> Result<(), RenderError> {
        loop {
            self.skip_space();
            let start = self.at;
            let variable = self.next();
            if variable.kind != Kind::Variable {
                self.at = start;
                return Ok(());
            }
            let next = self.next_word();
            match next.kind {
                Kind::Assign | Kind::Declare => {
                    pipe.assigns = next.kind == Kind::Assign;
                    self.declare(variable, pipe);
                    return Ok(());
                }
                Kind::Comma => {
                    self.declare(variable, pipe);
                    if context != "range" || pipe.variables.len() >= 2 {
                        let message = format!("too many declarations in {context}");
                        return Err(RenderError::new(next.line, message));
                    }
                    self.skip_space();
                    let third = self.peek();
                    if !matches!(third.kind, Kind::Variable | Kind::RightDelim | Kind::RightParen) {
                        let message = "range can only initialize variables";
                        return Err(RenderError::new(third.line, message));
                    }
                }
                _ => {
                    self.at = start;
                    return Ok(());
                }
            }
        }
    }

    fn declare(&mut self, variable: Token<'_>, pipe: &mut Pipe) {
        pipe.variables.push(variable.text.to_owned());
        self.scope.variables.push(variable.text.to_owned());
    }

    fn command(&mut self) -> Result<Command, RenderError> {
        self.skip_space();
        let line = self.peek().line;
        let mut words = Vec::new();
        loop {
            self.skip_space();
            words.extend(self.operand()?);
            let token = self.next();
            match token.kind {
                Kind::Space => {}
                Kind::RightDelim | Kind::RightParen => {
                    self.at -= 1;
                    break;
                }
                Kind::Pipe => break,
                _ => return unexpected(token, "operand"),
            }
        }
        if words.is_empty() {
            return Err(RenderError::new(line, "empty command"));
        }
        Ok(Command { line, words })
    }

    fn operand(&mut self) -> Result<Option<Operand>, RenderError> {
        let Some(term) = self.term()? else { return Ok(None) };
        let mut fields = Vec::new();
        let line = self.peek().line;
        while self.peek().kind == Kind::Field {
            fields.push(self.next().text[1..].to_owned());
        }
        if fields.is_empty() {
            return Ok(Some(term));
        }
        Ok(Some(match term {
            Operand::Field(first) => Operand::Field([first, fields].concat()),
            Operand::Variable(name, first) => Operand::Variable(name, [first, fields].concat()),
            Operand::Function(_) | Operand::Pipe(_) | Operand::Chain(..) => {
                Operand::Chain(Box::new(term), fields)
            }
            _ => return Err(RenderError::new(line, "unexpected . after a constant or dot")),
        }))
    }

    fn term(&mut self) -> Result<Option<Operand>, RenderError> {
        self.skip_space();
        let token = self.peek();
        let wrong = |error: String| RenderError::new(token.line, error);
        self.at += 1;
        Ok(Some(match token.kind {
            Kind::Identifier => Operand::Function(functions::find(token.text).map_err(wrong)?),
            Kind::Dot => Operand::Dot,
            Kind::Keyword if token.text == "nil" => Operand::Nil,
            Kind::Variable => {
                if !self.scope.variables.iter().any(|known| known == token.text) {
                    return Err(wrong(format!("undefined variable {:?}", token.text)));
                }
                Operand::Variable(token.text.to_owned(), Vec::new())
            }
            Kind::Field => Operand::Field(vec![token.text[1..].to_owned()]),
            Kind::Bool => Operand::Bool(token.text == "true"),
            Kind::Char => {
                Operand::Number(Number::of_char(unquote::char(token.text).map_err(wrong)?))
            }
            Kind::Number => Operand::Number(number_from_text(token.text).map_err(wrong)?),
            Kind::Complex => return Err(wrong("complex numbers are not supported".to_owned())),
            Kind::LeftParen => {
                let pipe = self
                    .nested(|parser| parser.pipeline("parenthesized pipeline", Kind::RightParen))?;
                Operand::Pipe(Box::new(pipe))
            }
            Kind::String => Operand::Text(unquote::string(token.text).map_err(wrong)?),
            _ => {
                self.at -= 1;
                return Ok(None);
            }
        }))
    }
}

fn starts_operand(token: Token<'_>) -> bool {
    match token.kind {
        Kind::Keyword => token.text == "nil",
        Kind::Bool
        | Kind::Char
        | Kind::Complex
        | Kind::Dot
        | Kind::Field
        | Kind::Identifier
        | Kind::Number
        | Kind::String
        | Kind::Variable
        | Kind::LeftParen => true,
        _ => false,
    }
}

/// Checks that a pipeline has a command, and no plain value except as the first command.
fn check(pipe: &Pipe, context: &str) -> Result<(), RenderError> {
    if pipe.commands.is_empty() {
        return Err(RenderError::new(pipe.line, format!("missing value for {context}")));
    }
    for (at, command) in pipe.commands.iter().enumerate().skip(1) {
        if matches!(
            command.words.first(),
            Some(
                Operand::Bool(_)
                    | Operand::Dot
                    | Operand::Nil
                    | Operand::Number(_)
                    | Operand::Text(_)
            )
        ) {
            let message = format!("non executable command in pipeline stage {}", at + 1);
            return Err(RenderError::new(command.line, message));
        }
    }
    Ok(())
}
