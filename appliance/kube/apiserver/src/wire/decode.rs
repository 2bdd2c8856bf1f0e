//! Decoder of JSON and YAML bodies that reports duplicate fields, unlike serde_json.

use std::fmt;

use kube_yaml::Unreadable;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use resources::engine::MAX_WARNINGS;

/// Maximum bytes of a path or a key in a message.
const MAX_SHOWN: usize = 1024;
/// Maximum values in one JSON body. Two bytes of JSON can become a value of hundreds of bytes in
/// memory.
const MAX_VALUES: usize = 1 << 18;

/// Decoded body with its duplicate fields.
#[derive(Debug, Default, PartialEq)]
pub struct Decoded {
    /// Decoded value; for a duplicate field, the last value.
    pub value: Value,
    /// Messages about duplicate fields: `duplicate field "spec.x"` for JSON, `line 3: key "x"
    /// already set in map` for YAML.
    pub duplicates: Vec<String>,
}

impl Decoded {
    /// Decodes JSON with at most 128 levels (serde_json's limit) and [`MAX_VALUES`] values.
    ///
    /// # Errors
    /// Returns an error for invalid JSON, with line and column but without content of the body.
    pub fn json(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let mut parser = serde_json::Deserializer::from_slice(bytes);
        let mut reading = Reading { path: String::new(), duplicates: Vec::new(), left: MAX_VALUES };
        let value = Reader(&mut reading).deserialize(&mut parser)?;
        parser.end()?;
        Ok(Self { value, duplicates: reading.duplicates })
    }

    /// Decodes the first document of YAML.
    ///
    /// # Errors
    /// Returns an error for invalid YAML, with the line but without content of the body.
    pub fn yaml(text: &str) -> Result<Self, Unreadable> {
        let document = kube_yaml::read(text)?;
        Ok(Self { value: document.value, duplicates: document.duplicates })
    }
}

/// Returns at most [`MAX_SHOWN`] bytes of a path or a key, which may be as long as the body.
fn shown(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_SHOWN)).unwrap_or_default()
}

/// State of decoding a body.
struct Reading {
    /// Path of the value that is being decoded.
    path: String,
    duplicates: Vec<String>,
    /// Number of values that may still be decoded, of [`MAX_VALUES`].
    left: usize,
}

struct Reader<'a>(&'a mut Reading);

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let left = self.0.left.checked_sub(1);
        let too_many = || D::Error::custom(format!("it has more than {MAX_VALUES} values"));
        self.0.left = left.ok_or_else(too_many)?;
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
        let length = self.0.path.len();
        loop {
            self.0.path.push_str(&format!("[{}]", all.len()));
            let item = items.next_element_seed(Reader(self.0))?;
            self.0.path.truncate(length);
            match item {
                Some(item) => all.push(item),
                None => return Ok(Value::Array(all)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        let length = self.0.path.len();
        while let Some(name) = fields.next_key::<String>()? {
            if !self.0.path.is_empty() {
                self.0.path.push('.');
            }
            self.0.path.push_str(&name);
            if all.contains_key(&name) && self.0.duplicates.len() < MAX_WARNINGS {
                let text = format!("duplicate field {:?}", shown(&self.0.path));
                if !self.0.duplicates.contains(&text) {
                    self.0.duplicates.push(text);
                }
            }
            let value = fields.next_value_seed(Reader(self.0))?;
            self.0.path.truncate(length);
            all.insert(name, value);
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use super::{Decoded, MAX_VALUES};
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

    #[test]
    fn what_would_fill_memory_is_refused() {
        let many = |count: usize| format!("[{}0]", "0,".repeat(count - 2));
        assert!(Decoded::json(many(MAX_VALUES).as_bytes()).is_ok());
        let error = Decoded::json(many(MAX_VALUES + 1).as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("it has more than {MAX_VALUES} values")), "{error}");
    }
}
