//! Escaped names of fields that are not valid CEL identifiers (apiserver `pkg/cel/escaping.go`).

use crate::node::Node;

const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

const ESCAPES: [(&str, &str); 4] =
    [("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__")];

/// Returns the escaped name of a field; `None` if rules cannot use the field.
pub(super) fn escape(name: &str) -> Option<String> {
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "_.-/".contains(c);
    if name.is_empty()
        || name.starts_with(|c: char| c.is_ascii_digit())
        || !name.chars().all(is_inner)
    {
        return None;
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        match ESCAPES.iter().find(|(plain, _)| rest.starts_with(plain)) {
            Some((plain, escaped)) => {
                out.push_str(escaped);
                rest = &rest[plain.len()..];
            }
            None => {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    Some(out)
}

/// Returns the property that a rule calls `name`: its name in the schema, and its schema. Reserved
/// words need no escape after a dot.
pub(super) fn property_of<'n>(node: &'n Node, name: &str) -> Option<(&'n str, &'n Node)> {
    if !name.contains("__") {
        return node.properties.get_key_value(name).map(|(real, below)| (real.as_str(), below));
    }
    let mut properties = node.properties.iter();
    let found = properties.find(|(real, _)| escape(real).is_some_and(|written| written == name));
    found.map(|(real, below)| (real.as_str(), below))
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn names_are_escaped_as_by_kubernetes() {
        for (name, written) in [
            ("plain_name", Some("plain_name")),
            ("namespace", Some("__namespace__")),
            ("a-b.c/d", Some("a__dash__b__dot__c__slash__d")),
            ("a__b", Some("a__underscores__b")),
            ("a___b", Some("a__underscores___b")),
            ("1a", None),
            ("a b", None),
            ("", None),
        ] {
            assert_eq!(escape(name).as_deref(), written);
        }
    }
}
