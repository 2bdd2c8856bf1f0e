//! Parser and matcher of patterns.

use crate::event::{Event, SEPARATOR};
use crate::glob::Glob;
use crate::json::Json;
use crate::value::{Leaf, Test};
use crate::{Error, FIELDS_MAX, PATTERN_BYTES, STEPS_MAX, VALUES_MAX, regexp};

/// Parsed pattern, ready to match documents.
#[derive(Debug, Clone)]
pub struct Pattern {
    /// Conditions, sorted by path.
    fields: Vec<(String, Condition)>,
}

/// Condition for the leaves at one path.
#[derive(Debug, Clone)]
enum Condition {
    /// At least one leaf exists at the path.
    Some,
    /// No leaf exists at the path.
    None,
    /// At least one leaf passes at least one of the tests.
    One(Vec<Test>),
}

impl Pattern {
    /// Parses a pattern and checks its limits.
    ///
    /// # Errors
    /// The pattern is invalid, not supported, or exceeds a limit.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.len() > PATTERN_BYTES {
            return Err(Error::Long);
        }
        let json = serde_json::from_str(text).map_err(|error| Error::Json(error.to_string()))?;
        let Json::Object(members) = json else {
            return Err(Error::Json(format!("it is {}", json.word())));
        };
        let mut fields = Vec::new();
        object(members, &mut Vec::new(), &mut fields)?;
        fields.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(Self { fields })
    }

    /// Returns true if every field matches. A pattern without fields matches no document.
    ///
    /// # Errors
    /// [`Error::Costly`] after [`STEPS_MAX`] comparisons.
    pub fn fits(&self, event: &Event) -> Result<bool, Error> {
        // Each is the last leaf taken on one way to fit the fields so far: the next one must come
        // after it and lie in the same elements of arrays.
        let mut ways: Vec<Option<usize>> = vec![None];
        let mut steps = 0;
        for (path, condition) in &self.fields {
            let tests = match condition {
                Condition::None if event.at(path).next().is_some() => return Ok(false),
                Condition::None => continue,
                Condition::Some => None,
                Condition::One(tests) => Some(tests),
            };
            let mut next = Vec::new();
            for (place, field) in event.at(path) {
                steps += ways.len() + tests.map_or(0, Vec::len);
                if steps > STEPS_MAX {
                    return Err(Error::Costly);
                }
                let follows = |last: &Option<usize>| match last.and_then(|it| event.field(it)) {
                    Some(before) => *last < Some(place) && before.shares_elements(field),
                    None => true,
                };
                if tests.is_none_or(|tests| tests.iter().any(|test| test.fits(&field.leaf)))
                    && ways.iter().any(follows)
                {
                    next.push(Some(place));
                }
            }
            if next.is_empty() {
                return Ok(false);
            }
            ways = next;
        }
        Ok(!self.fields.is_empty())
    }
}

fn object(
    members: Vec<(String, Json)>,
    path: &mut Vec<String>,
    fields: &mut Vec<(String, Condition)>,
) -> Result<(), Error> {
    for (name, value) in members {
        path.push(name);
        match value {
            Json::Object(members) => object(members, path, fields)?,
            Json::List(items) => {
                let path = path.join(&String::from(SEPARATOR));
                // Nothing is asked of a field with an empty array.
                if let Some(condition) = list(items, &path)? {
                    fields.push((path, condition));
                }
            }
            other => return Err(Error::Leaf(path.join("."), other.word())),
        }
        path.pop();
    }
    if fields.len() > FIELDS_MAX {
        return Err(Error::Many(FIELDS_MAX, "fields"));
    }
    Ok(())
}

fn list(items: Vec<Json>, path: &str) -> Result<Option<Condition>, Error> {
    let name = || path.replace(SEPARATOR, ".");
    if items.len() > VALUES_MAX {
        return Err(Error::Many(VALUES_MAX, "values of one field"));
    }
    let is_alone = items.len() == 1;
    let mut tests = Vec::new();
    for item in items {
        let test = match item {
            Json::Null => Test::Exactly(Leaf::Null),
            Json::Bool(value) => Test::Exactly(Leaf::Bool(value)),
            Json::Number(number) => Test::Exactly(Leaf::number(number)),
            Json::Text(text) => Test::Exactly(Leaf::Text(text)),
            Json::List(_) => return Err(Error::Nested(name())),
            Json::Object(members) => {
                let count = members.len();
                let mut members = members.into_iter();
                let (Some((kind, value)), None) = (members.next(), members.next()) else {
                    return Err(Error::Members(name(), count));
                };
                match extended(&kind, value, &name())? {
                    Extended::Test(test) => test,
                    Extended::Alone(kind, _) if !is_alone => {
                        return Err(Error::Alone(name(), kind));
                    }
                    Extended::Alone(_, condition) => return Ok(Some(condition)),
                }
            }
        };
        tests.push(test);
    }
    Ok((!tests.is_empty()).then_some(Condition::One(tests)))
}

/// Extended pattern: an object in the array of a field.
enum Extended {
    /// Test that can stand beside others in the array; the leaf must pass one of them.
    Test(Test),
    /// Condition that must be the only element of the array, with the name of its kind.
    Alone(&'static str, Condition),
}

fn extended(kind: &str, value: Json, path: &str) -> Result<Extended, Error> {
    let fail = |kind, want| Err(Error::Value { path: path.to_owned(), kind, want });
    let alone = |kind, test| Extended::Alone(kind, Condition::One(vec![test]));
    Ok(match (kind, value) {
        ("exists", Json::Bool(true)) => Extended::Alone("exists", Condition::Some),
        ("exists", Json::Bool(false)) => Extended::Alone("exists", Condition::None),
        ("exists", _) => return fail("exists", "true or false"),
        ("prefix", Json::Text(text)) => Extended::Test(Test::Prefix(text)),
        ("prefix", _) => return fail("prefix", "a string"),
        ("equals-ignore-case", Json::Text(text)) => Extended::Test(Test::IgnoreCase(text)),
        ("equals-ignore-case", _) => return fail("equals-ignore-case", "a string"),
        ("anything-but", Json::List(items)) => match strings(items) {
            Some(texts) => alone("anything-but", Test::AnythingBut(texts)),
            None => return fail("anything-but", "an array of strings that is not empty"),
        },
        ("anything-but", _) => return fail("anything-but", "an array of strings"),
        ("wildcard", value) => match glob(value, true) {
            Some(test) => Extended::Test(test),
            None => {
                let want = "a string without **, with \\ only before * or \\";
                return fail("wildcard", want);
            }
        },
        ("shellstyle", value) => match glob(value, false) {
            Some(test) => Extended::Test(test),
            None => return fail("shellstyle", "a string without **"),
        },
        ("regexp", Json::Text(text)) => match regexp::compile(&text) {
            Ok(regexp) => alone("regexp", Test::Regexp(regexp)),
            Err(why) => return Err(Error::Regexp(path.to_owned(), why)),
        },
        ("regexp", _) => return fail("regexp", "a string"),
        (other, _) => return Err(Error::Kind(path.to_owned(), other.to_owned())),
    })
}

fn strings(items: Vec<Json>) -> Option<Vec<String>> {
    if items.is_empty() || items.len() > VALUES_MAX {
        return None;
    }
    let text = |item| match item {
        Json::Text(text) => Some(text),
        _ => None,
    };
    items.into_iter().map(text).collect()
}

fn glob(value: Json, has_escapes: bool) -> Option<Test> {
    match value {
        Json::Text(text) => Glob::parse(&text, has_escapes).map(Test::Glob),
        _ => None,
    }
}
