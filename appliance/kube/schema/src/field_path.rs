//! JSONPaths of fields and map keys, checked against a schema (apiextensions
//! `schema/cel/validation.go`: `ValidFieldPath`).

use crate::node::Node;

/// Path that exists in the schema.
#[derive(Debug, Clone)]
pub(crate) struct Resolved<'a> {
    /// Path in the form of a field error: `spec.labels[app]`.
    pub path: String,
    /// Name of the first field of the path.
    pub first: String,
    /// Schema at the path; `None` in a map that allows any value.
    pub node: Option<&'a Node>,
}

/// Resolves the path `text` from the schema `node`. `brackets` allows `['…']` for a dot.
pub(crate) fn resolve<'a>(
    text: &str,
    node: &'a Node,
    brackets: bool,
) -> Result<Resolved<'a>, String> {
    let mut tokens = Tokens { rest: text };
    let mut resolved = Resolved { path: String::new(), first: String::new(), node: Some(node) };
    while let Some(token) = tokens.next() {
        let end = || "unexpected end of JSON path".to_owned();
        match token {
            "[" if !brackets => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let quoted = tokens.next().ok_or_else(end)?;
                let inner = quoted.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
                let inner = inner
                    .filter(|_| quoted.len() >= 2)
                    .ok_or_else(|| format!("expected single quoted string but got {quoted}"))?;
                let name = unescape(inner)?;
                resolved.step(&name)?;
                match tokens.next().ok_or_else(end)? {
                    "]" => {}
                    other => return Err(format!("expected ] but got {other}")),
                }
            }
            "." => {
                let name = tokens.next().ok_or_else(end)?;
                resolved.step(name)?;
            }
            other => return Err(format!("expected [ or . but got: {other}")),
        }
    }
    Ok(resolved)
}

impl Resolved<'_> {
    fn step(&mut self, name: &str) -> Result<(), String> {
        let lost = || "does not refer to a valid field".to_owned();
        let node = self.node.ok_or_else(lost)?;
        let is_named = !node.properties.is_empty();
        if self.first.is_empty() {
            name.clone_into(&mut self.first);
        }
        if is_named {
            if !self.path.is_empty() {
                self.path.push('.');
            }
            self.path.push_str(name);
            self.node = Some(node.properties.get(name).ok_or_else(lost)?);
        } else if node.additional.is_some() {
            self.path.push_str(&format!("[{name}]"));
            self.node = node.additional_node();
        } else {
            return Err(lost());
        }
        Ok(())
    }
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        // A single backslash at the end is kept.
        let Some(directive) = chars.next() else {
            out.push(c);
            break;
        };
        out.push(match directive {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\'' | '\\' => directive,
            other => {
                return Err(format!("invalid string literal: invalid escape char \\{other}"));
            }
        });
    }
    Ok(out)
}

/// Tokens of a path: dots and brackets, quoted strings, and the text between them.
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let bytes = self.rest.as_bytes();
        let length = match *bytes.first()? {
            b'.' | b'[' | b']' => 1,
            b'\'' => {
                let is_end = |at: &usize| bytes[*at] == b'\'' && bytes[at - 1] != b'\\';
                (1..bytes.len()).find(is_end).map_or(bytes.len(), |at| at + 1)
            }
            _ => self.rest.find(['.', '[', ']']).unwrap_or(bytes.len()),
        };
        let (token, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(token)
    }
}
