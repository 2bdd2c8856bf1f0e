//! Label selectors, with the grammar and messages of `k8s.io/apimachinery` `pkg/labels`.

use schema::names;
use serde_json::Value;

use super::MAX_REQUIREMENTS;
use crate::status_error::StatusError;

/// Label selector, all of whose requirements must match. The default selects all objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<(String, Condition)>);

/// Condition of a requirement on one label.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Condition {
    Exists,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
    Above(i64),
    Below(i64),
}

impl Condition {
    fn holds(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::Exists => value.is_some(),
            Self::Absent => value.is_none(),
            Self::In(values) => value.is_some_and(|value| values.iter().any(|one| one == value)),
            // An object without the label is not in the set, so it matches.
            Self::NotIn(values) => value.is_none_or(|value| values.iter().all(|one| one != value)),
            Self::Above(limit) => number().is_some_and(|number| number > *limit),
            Self::Below(limit) => number().is_some_and(|number| number < *limit),
        }
    }
}

impl LabelSelector {
    /// Parses `a=b, c!=d, e in (f, g), h notin (i), j, !k, l>1`.
    ///
    /// # Errors
    /// 400 for an invalid selector, with the found and the expected token.
    pub fn parse(text: &str) -> Result<Self, StatusError> {
        let mut parser = Parser { tokens: tokens(text), at: 0 };
        parser.selector().map(Self).map_err(StatusError::bad_request)
    }

    /// Returns true if the object's labels match all requirements.
    pub fn matches(&self, object: &Value) -> bool {
        self.holds(|key| object["metadata"]["labels"].get(key).and_then(Value::as_str))
    }

    /// Returns true if the labels that the function `label` returns match all requirements.
    pub(crate) fn holds<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|(key, condition)| condition.holds(label(key)))
    }

    /// Returns true if the selector has no requirements.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Splits a text into words and the marks `( ) , ! = == != > <`.
fn tokens(text: &str) -> Vec<&str> {
    let is_mark = |one: char| "=!(),><".contains(one);
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if is_mark(first) {
            let double = ["==", "!="].iter().any(|two| rest.starts_with(two));
            if double { 2 } else { 1 }
        } else {
            rest.find(|one: char| is_mark(one) || one.is_whitespace()).unwrap_or(rest.len())
        };
        let (token, tail) = rest.split_at(length);
        tokens.push(token);
        rest = tail.trim_start();
    }
    tokens
}

struct Parser<'a> {
    tokens: Vec<&'a str>,
    at: usize,
}

impl<'a> Parser<'a> {
    /// Returns the next token and does not consume it; an empty text at the end.
    fn peek(&self) -> &'a str {
        self.tokens.get(self.at).copied().unwrap_or_default()
    }

    fn take(&mut self) -> &'a str {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn is_word(token: &str) -> bool {
        token.chars().next().is_some_and(|first| !"=!(),><".contains(first))
    }

    fn selector(&mut self) -> Result<Vec<(String, Condition)>, String> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                "" => return Ok(requirements),
                token if token == "!" || Self::is_word(token) => {}
                other => {
                    return Err(format!(
                        "found '{other}', expected: !, identifier, or 'end of string'"
                    ));
                }
            }
            let requirement = self.requirement();
            requirements
                .push(requirement.map_err(|why| format!("unable to parse requirement: {why}"))?);
            if requirements.len() > MAX_REQUIREMENTS {
                return Err("unable to parse requirement: there are too many of them".to_owned());
            }
            match self.take() {
                "" => return Ok(requirements),
                "," => {}
                other => return Err(format!("found '{other}', expected: ',' or 'end of string'")),
            }
            let next = self.peek();
            if !(next == "!" || Self::is_word(next)) {
                return Err(format!("found '{next}', expected: identifier after ','"));
            }
        }
    }

    fn requirement(&mut self) -> Result<(String, Condition), String> {
        let absent = self.peek() == "!";
        if absent {
            self.take();
        }
        let key = self.take();
        if !Self::is_word(key) {
            return Err(format!("found '{key}', expected: identifier"));
        }
        if let Some(mistake) = names::qualified_mistakes(key).first() {
            return Err(format!("<nil>: Invalid value: {key:?}: {mistake}"));
        }
        if absent {
            return Ok((key.to_owned(), Condition::Absent));
        }
        if matches!(self.peek(), "" | ",") {
            return Ok((key.to_owned(), Condition::Exists));
        }
        let operator = self.take();
        let values = match operator {
            "in" | "notin" => self.values()?,
            "=" | "==" | "!=" | ">" | "<" => vec![self.value()?],
            other => {
                return Err(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt"));
            }
        };
        if let (">" | "<", Some(value)) = (operator, values.first()) {
            let limit = value.parse().map_err(|_| {
                format!(
                    "values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must \
                     be an integer"
                )
            })?;
            let above = operator == ">";
            let condition = if above { Condition::Above(limit) } else { Condition::Below(limit) };
            return Ok((key.to_owned(), condition));
        }
        for (at, value) in values.iter().enumerate() {
            if let Some(mistake) = names::label_value_mistakes(value).first() {
                return Err(format!("values[{at}][{key}]: Invalid value: {value:?}: {mistake}"));
            }
        }
        let negative = matches!(operator, "notin" | "!=");
        let condition = if negative { Condition::NotIn(values) } else { Condition::In(values) };
        Ok((key.to_owned(), condition))
    }

    /// Parses one value, which may be empty.
    fn value(&mut self) -> Result<String, String> {
        match self.peek() {
            "" | "," => Ok(String::new()),
            word if Self::is_word(word) => Ok(self.take().to_owned()),
            other => Err(format!("found '{other}', expected: identifier")),
        }
    }

    /// Parses values in parentheses, separated by commas. A value may be empty: `(a,,b)`.
    fn values(&mut self) -> Result<Vec<String>, String> {
        let open = self.take();
        if open != "(" {
            return Err(format!("found '{open}' expected: '('"));
        }
        let mut values = Vec::new();
        loop {
            let value = if Self::is_word(self.peek()) { self.take() } else { "" };
            values.push(value.to_owned());
            match self.take() {
                "," => {}
                ")" => return Ok(values),
                other => return Err(format!("found '{other}', expected: ',' or ')'")),
            }
        }
    }
}

#[cfg(test)]
mod tests;
