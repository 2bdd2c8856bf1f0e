//! Bodies as values, with what a plain parser loses: a field that is given twice.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::yaml::{self, Unreadable};
use crate::engine::fields::MAX_WARNINGS;

/// Bytes of a path or a key that are told.
const MAX_SHOWN: usize = 1024;

/// A body as it was read.
#[derive(Debug, Default, PartialEq)]
pub struct Decoded {
    /// The value; of a field that is given twice it is the last.
    pub value: Value,
    /// The fields that are given more than once: `duplicate field "spec.x"` of JSON,
    /// `line 3: key "x" already set in map` of YAML.
    pub duplicates: Vec<String>,
}

impl Decoded {
    /// Reads JSON with at most 128 levels, the parser's own bound.
    ///
    /// # Errors
    /// When it is none. The text names a line and a column, never what stands there.
    pub fn json(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let mut decoded = Self::default();
        let mut parser = serde_json::Deserializer::from_slice(bytes);
        let mut path = String::new();
        let seed = Reader { path: &mut path, duplicates: &mut decoded.duplicates };
        decoded.value = seed.deserialize(&mut parser)?;
        parser.end()?;
        Ok(decoded)
    }

    /// Reads the first document of YAML.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn yaml(text: &str) -> Result<Self, Unreadable> {
        yaml::read(text)
    }
}

/// The beginning of a path or a key, which may be as long as the body.
pub(super) fn shown(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_SHOWN)).unwrap_or_default()
}

struct Reader<'a> {
    path: &'a mut String,
    duplicates: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        let length = self.path.len();
        loop {
            self.path.push_str(&format!("[{}]", all.len()));
            let seed = Reader { path: self.path, duplicates: self.duplicates };
            let item = items.next_element_seed(seed)?;
            self.path.truncate(length);
            match item {
                Some(item) => all.push(item),
                None => return Ok(Value::Array(all)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        let length = self.path.len();
        while let Some(name) = fields.next_key::<String>()? {
            if !self.path.is_empty() {
                self.path.push('.');
            }
            self.path.push_str(&name);
            if all.contains_key(&name) && self.duplicates.len() < MAX_WARNINGS {
                let text = format!("duplicate field {:?}", shown(self.path));
                if !self.duplicates.contains(&text) {
                    self.duplicates.push(text);
                }
            }
            let seed = Reader { path: self.path, duplicates: self.duplicates };
            let value = fields.next_value_seed(seed)?;
            self.path.truncate(length);
            all.insert(name, value);
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use super::Decoded;
    use serde_json::json as value;

    #[test]
    fn the_last_of_two_counts_and_both_are_told() {
        let decoded =
            Decoded::json(br#"{"a":1,"b":{"c":[{"d":1,"d":2}],"e":1},"a":[true,null,-1,1.5]}"#);
        let decoded = decoded.unwrap();
        let expected = value!({ "a": [true, null, -1, 1.5], "b": { "c": [{ "d": 2 }], "e": 1 } });
        assert_eq!(decoded.value, expected);
        let told = ["duplicate field \"b.c[0].d\"", "duplicate field \"a\""];
        assert_eq!(decoded.duplicates, told);
    }

    #[test]
    fn what_is_no_json_is_refused() {
        let deep = "[".repeat(200);
        for bad in ["", "{", "{}x", "{\"a\" 1}", deep.as_str()] {
            assert!(Decoded::json(bad.as_bytes()).is_err(), "{bad}");
        }
        let many = format!("{{{}\"a\":1}}", "\"a\":1,".repeat(10_000));
        assert_eq!(Decoded::json(many.as_bytes()).unwrap().duplicates.len(), 1);
        let long =
            format!("{{\"{}\":{{{}\"a\":1}}}}", "é".repeat(500_000), "\"a\":1,".repeat(50_000));
        let told = Decoded::json(long.as_bytes()).unwrap().duplicates;
        assert!(told.iter().all(|text| text.len() < 2_000), "{} bytes", told[0].len());
    }
}
