//! Durations as tests write them: literals, sums, products, and constants by name.

use std::collections::BTreeMap;

use crate::source::{Source, expressions, find_word};
use crate::tree::Tree;

/// A duration and the place where it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// Length of the duration in seconds.
    pub seconds: f64,
    /// Path, line and name of the constant that holds the duration, if any.
    pub constant: Option<Place>,
}

/// Path and line of a constant, and its name or its value.
type Place = (String, usize, String);

/// The constants of the tests that are durations.
#[derive(Debug, Default)]
pub struct Durations {
    /// By member and name: path, line, expression; `None` when a member has two constants of one
    /// name.
    constants: BTreeMap<(String, String), Option<Place>>,
}

impl Durations {
    /// Reads the tree's constants.
    pub fn read(tree: &Tree) -> Self {
        let mut found = Self::default();
        for file in tree.rust() {
            let source = Source::new(file);
            let written = constants(&source);
            for (line, name, value) in written.into_iter().filter(|it| source.is_test(it.0)) {
                let place = (file.path.clone(), line, value.to_owned());
                found
                    .constants
                    .entry((member(&file.path), name.to_owned()))
                    .and_modify(|other| *other = None)
                    .or_insert(Some(place));
            }
        }
        found
    }

    /// The length of an expression at an offset of a file; `None` when it cannot be evaluated.
    pub fn length(&self, source: &Source<'_>, at: usize, text: &str) -> Option<Written> {
        let text = present(text.trim().trim_start_matches(['&', '*']));
        if let Some(seconds) = literal(text) {
            return Some(Written { seconds, constant: None });
        }
        let name = text.rsplit("::").next().unwrap_or(text);
        if name.is_empty() || !name.chars().all(|char| char.is_alphanumeric() || char == '_') {
            return None;
        }
        if text.contains("stdx::testing::") {
            return None;
        }
        if !name.chars().any(char::is_lowercase) {
            return self.constant(source, name);
        }
        // A variable of the same file, bound above.
        let above = &source.code[..at];
        let bound = above.rfind(&format!("let {name} = "))?;
        let value = above[bound..].split_once(" = ")?.1.split(';').next()?;
        let seconds = literal(present(value.trim()))?;
        Some(Written { seconds, constant: None })
    }

    fn constant(&self, source: &Source<'_>, name: &str) -> Option<Written> {
        let path = &source.file.path;
        if is_imported(source, name) {
            return None;
        }
        let own = constants(source).into_iter().find(|(_, other, _)| *other == name);
        let (path, line, value) = match own {
            Some((line, _, value)) => (path.clone(), line, value.to_owned()),
            None => self.constants.get(&(member(path), name.to_owned()))?.clone()?,
        };
        let seconds = literal(&value)?;
        Some(Written { seconds, constant: Some((path, line, name.to_owned())) })
    }
}

/// The durations among a file's constants: line, name, expression.
pub(super) fn constants<'a>(source: &'a Source<'_>) -> Vec<(usize, &'a str, &'a str)> {
    let one = |(at, mark): (usize, &str)| {
        let (before, after) = (&source.code[..at], &source.code[at + mark.len()..]);
        let name = before.rsplit(' ').next()?;
        let value = after.split(';').next()?.trim();
        before.ends_with(&format!("const {name}")).then(|| (source.line(at), name, value))
    };
    source.code.match_indices(": Duration = ").filter_map(one).collect()
}

/// Checks whether a file imports a name from `stdx::testing`, the module of shared limits.
fn is_imported(source: &Source<'_>, name: &str) -> bool {
    let imports = source.code.match_indices("use stdx::testing::");
    let mut lists = imports.filter_map(|(at, _)| source.code[at..].split(';').next());
    lists.any(|list| find_word(list, name).is_some())
}

/// The folder of a file's member.
fn member(path: &str) -> String {
    let parts = if path.starts_with("image/") { 1 } else { 2 };
    path.split('/').take(parts).collect::<Vec<_>>().join("/")
}

/// Content of a `Some(...)`, or the text itself.
fn present(text: &str) -> &str {
    text.strip_prefix("Some(").and_then(|text| text.strip_suffix(')')).unwrap_or(text)
}

/// The seconds of a duration written out.
fn literal(text: &str) -> Option<f64> {
    let text = text.trim();
    for operator in [" + ", " * ", " / "] {
        // Operators outside the brackets of calls.
        let outside =
            |at: &usize| text[..*at].matches('(').count() == text[..*at].matches(')').count();
        let Some(at) = text.match_indices(operator).map(|(at, _)| at).filter(outside).last() else {
            continue;
        };
        let (left, right) = (&text[..at], &text[at + operator.len()..]);
        let number = |text: &str| literal(text).or_else(|| count(text));
        return Some(match operator {
            " + " => literal(left)? + literal(right)?,
            " * " => number(left)? * number(right)?,
            _ => literal(left)? / count(right)?,
        });
    }
    let call = text.rfind("Duration::from_").map(|at| &text[at + "Duration::from_".len()..])?;
    let open = call.find('(')?;
    let arguments = expressions::arguments(call, open);
    let [argument] = arguments.as_slice() else { return None };
    if !call[argument.end..].trim().trim_start_matches(',').trim().eq(")") {
        return None;
    }
    let unit = match &call[..open] {
        "secs" | "secs_f64" | "secs_f32" => 1.0,
        "mins" => 60.0,
        "hours" => 3600.0,
        "millis" => 1e-3,
        "micros" => 1e-6,
        "nanos" => 1e-9,
        _ => return None,
    };
    Some(count(&call[argument.clone()])? * unit)
}

/// A number, or a product of numbers.
pub(super) fn count(text: &str) -> Option<f64> {
    let factor = |text: &str| {
        let digits = text.trim().replace('_', "");
        let starts = digits.starts_with(|char: char| char.is_ascii_digit());
        starts.then(|| digits.trim_end_matches(|char: char| char.is_alphabetic()).parse().ok())?
    };
    text.split(" * ")
        .map(factor)
        .try_fold(1.0, |product, factor: Option<f64>| Some(product * factor?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read() {
        let text = "const A: Duration = Duration::from_secs(2 * 30);\n\
                    fn f() { let b = Duration::from_millis(1_500); c() }\n";
        let files = [
            ("tests/x/src/a.rs", text),
            ("tests/x/src/b.rs", "pub const FAR: Duration = std::time::Duration::from_secs(3);"),
            ("tests/y/src/b.rs", "const OTHER: Duration = Duration::from_secs(4);"),
        ];
        let tree = Tree::of(files.map(|(path, text)| (path.to_owned(), text.to_owned())).to_vec());
        let durations = Durations::read(&tree);
        let file = tree.file("tests/x/src/a.rs").unwrap();
        let source = Source::new(file);
        let read = |text: &str| {
            durations.length(&source, source.code.len(), text).map(|written| written.seconds)
        };
        for (text, seconds) in [
            ("Duration::from_secs(5)", 5.0),
            ("Some(std::time::Duration::from_millis(200))", 0.2),
            ("Duration::from_secs(2) * 3 + Duration::from_secs(1)", 7.0),
            ("Duration::from_secs(6) / 3", 2.0),
            ("A", 60.0),
            ("b", 1.5),
            ("crate::b::FAR", 3.0),
        ] {
            assert_eq!(read(text), Some(seconds), "{text}");
        }
        for text in ["OTHER", "limit", "f(Duration::from_secs(1))", "Duration::from_secs(n)", ""] {
            assert_eq!(read(text), None, "{text}");
        }
        let far = durations.length(&source, 0, "FAR").and_then(|written| written.constant);
        assert_eq!(far, Some(("tests/x/src/b.rs".to_owned(), 1, "FAR".to_owned())));
    }
}
