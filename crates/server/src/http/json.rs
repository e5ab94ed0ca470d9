//! Strict JSON parsing: no duplicate names, limited depth and number of values. Errors name the position.

use super::Problem;
use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::Cell;
use std::fmt;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// A custom context value may be 32 deep. The arguments and the request add their own levels.
pub const DEPTH_MAX: usize = 40;
/// A value takes ten times the memory of its shortest text, so the number of values is limited too.
pub const VALUES_MAX: usize = 10_000;
/// Parsing this much takes about a millisecond.
const LONG_BYTES: usize = 1 << 20;

/// Parses the text as an object.
pub fn object(bytes: &[u8]) -> Result<Map<String, Value>, Problem> {
    match value(bytes)? {
        Value::Object(members) => Ok(members),
        _ => Err(Problem::bad_input("the body is not a JSON object")),
    }
}

/// Parses the text as a value.
pub fn value(bytes: &[u8]) -> Result<Value, Problem> {
    aside(bytes.len(), || parse(bytes))
}

/// Does work that takes as long as the text is. For a long text, the other tasks of this thread are moved to another one: a few threads serve
/// everybody.
pub fn aside<T>(text_bytes: usize, work: impl FnOnce() -> T) -> T {
    let is_shared = || Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    if text_bytes > LONG_BYTES && is_shared() { block_in_place(work) } else { work() }
}

fn parse(bytes: &[u8]) -> Result<Value, Problem> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Problem::bad_input(format!("the body is not UTF-8: byte {} is not valid", error.valid_up_to())))?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let strict = Strict { depth_left: DEPTH_MAX, values_left: &Cell::new(VALUES_MAX) };
    let parsed = strict.deserialize(&mut deserializer).and_then(|value| deserializer.end().map(|()| value));
    parsed.map_err(|error| Problem::bad_input(format!("the body is not valid JSON: {error}")))
}

#[derive(Clone, Copy)]
struct Strict<'a> {
    depth_left: usize,
    values_left: &'a Cell<usize>,
}

impl Strict<'_> {
    fn inside<E: Error>(self) -> Result<Self, E> {
        match self.depth_left.checked_sub(1) {
            Some(depth_left) => Ok(Self { depth_left, ..self }),
            None => Err(E::custom(format_args!("it is nested more than {DEPTH_MAX} deep"))),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self.values_left.get().checked_sub(1) {
            Some(left) => self.values_left.set(left),
            None => return Err(D::Error::custom(format_args!("it has more than {VALUES_MAX} values"))),
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number is too large"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut values = Vec::new();
        while let Some(value) = items.next_element_seed(inside)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut members = Map::new();
        while let Some(name) = items.next_key::<String>()? {
            if members.contains_key(&name) {
                let shown: String = name.chars().take(80).collect();
                return Err(A::Error::custom(format_args!("`{shown}` is given twice")));
            }
            let value = items.next_value_seed(inside)?;
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: &str) {
        let problem = format!("{:?}", object(bytes).expect_err("a refusal"));
        assert!(problem.contains(expected), "{problem}");
    }

    #[test]
    fn invalid_json_is_refused_with_its_position() {
        check(br#"{"a": 1, "a": 2}"#, "`a` is given twice at line 1 column 12");
        check(br#"{"t": {"b": 1, "\u0062": 2}}"#, "`b` is given twice");
        check(b"{\"a\": \"\xff\"}", "byte 7 is not valid");
        check(br#"{"a": "\ud800"}"#, "line 1 column");
        check(br#"{"a": 1} x"#, "trailing characters at line 1 column 10");
        check(br#"{"a": 1e999}"#, "number out of range");
        check(b"[1]", "not a JSON object");
        check(b"", "EOF while parsing");
        check(format!("{}{}", r#"{"a":"#.repeat(41), "}".repeat(41)).as_bytes(), "more than 40 deep");
        check("[".repeat(200_000).as_bytes(), "more than 40 deep");
        check(format!("{{\"a\": [{}0]}}", "0,".repeat(20_000)).as_bytes(), "more than 10000 values");
    }

    #[test]
    fn valid_json_is_parsed_unchanged() {
        let text = r#"{"a": [1, -2, 2.5, true, null, "é\n"], "b": {"c": {}}}"#;
        assert_eq!(Value::Object(object(text.as_bytes()).expect("good")), serde_json::from_str::<Value>(text).expect("good"));
    }
}
