//! Arguments checked against their schema, so that a refusal names the parameter, the value and what is allowed.

use heapstead_service::ServiceError;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub fn parse<P: DeserializeOwned>(operation: &str, schema: &Value, arguments: Map<String, Value>) -> Result<P, ServiceError> {
    check_names(operation, schema, &arguments)?;
    let property_of = |name: &str| schema.get("properties").and_then(|known| known.get(name));
    let mut checked = Map::new();
    for (name, value) in arguments {
        if let Some(property) = property_of(&name)
            && !value.is_null()
        {
            let value = check(&name, property, value)?;
            checked.insert(name, value);
        }
    }
    for name in required(schema) {
        if !checked.contains_key(name) {
            let expected = property_of(name).map(allowed).unwrap_or_default();
            return Err(ServiceError::BadInput(format!("`{name}` is missing: {expected}")));
        }
    }
    // The schema and the type are one; what the schema can't say is said here.
    serde_json::from_value(Value::Object(checked)).map_err(|error| ServiceError::BadInput(error.to_string()))
}

/// Refuses arguments that the schema does not know.
pub fn check_names(operation: &str, schema: &Value, arguments: &Map<String, Value>) -> Result<(), ServiceError> {
    let empty = Map::new();
    let known = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    match arguments.keys().find(|name| !known.contains_key(*name)) {
        Some(name) => Err(unknown(operation, name, known)),
        None => Ok(()),
    }
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn unknown(operation: &str, name: &str, known: &Map<String, Value>) -> ServiceError {
    let names: Vec<_> = known.keys().map(|name| format!("`{name}`")).collect();
    let allowed = if names.is_empty() { "it takes none".to_owned() } else { format!("allowed are {}", names.join(", ")) };
    let shown: String = name.chars().take(NAME_CHARS_MAX).collect();
    ServiceError::BadInput(format!("`{shown}` is not a parameter of {operation}: {allowed}"))
}

/// How much of an unknown parameter's name is repeated.
const NAME_CHARS_MAX: usize = 80;

/// The value in the form that its type is read from.
fn check(name: &str, property: &Value, value: Value) -> Result<Value, ServiceError> {
    let value = match value.as_f64() {
        // JSON knows one kind of number: 5.0 is an integer.
        Some(number) if kind(property) == "integer" && value.is_f64() && number.fract() == 0.0 && number.abs() < 9e15 => {
            Value::from(number as i64)
        }
        _ => value,
    };
    if fits(property, &value) { Ok(value) } else { Err(ServiceError::bad_value(name, &value, allowed(property))) }
}

fn kind(property: &Value) -> &str {
    property.get("type").and_then(Value::as_str).unwrap_or("string")
}

fn fits(property: &Value, value: &Value) -> bool {
    let in_range = |number: f64| {
        let bound = |name: &str| property.get(name).and_then(Value::as_f64);
        bound("minimum").is_none_or(|minimum| number >= minimum) && bound("maximum").is_none_or(|maximum| number <= maximum)
    };
    let chosen = property.get("enum").and_then(Value::as_array).is_none_or(|choices| choices.contains(value));
    let of_kind = match (kind(property), value) {
        ("string", Value::String(_)) | ("boolean", Value::Bool(_)) => true,
        ("integer", Value::Number(number)) => (number.is_i64() || number.is_u64()) && number.as_f64().is_some_and(in_range),
        ("number", Value::Number(number)) => number.as_f64().is_some_and(in_range),
        ("object", Value::Object(members)) => {
            property["additionalProperties"]["type"] != "string" || members.values().all(Value::is_string)
        }
        // What is in it is told by its own type.
        ("array", Value::Array(_)) => true,
        _ => false,
    };
    of_kind && chosen
}

/// What the schema allows, in words.
fn allowed(property: &Value) -> String {
    if let Some(choices) = property.get("enum").and_then(Value::as_array) {
        let choices: Vec<_> = choices.iter().filter_map(Value::as_str).map(|choice| format!("`{choice}`")).collect();
        return format!("allowed are {}", choices.join(" and "));
    }
    let bound = |name: &str| property.get(name).filter(|bound| bound.is_number()).map(ToString::to_string);
    let range = match (bound("minimum"), bound("maximum")) {
        (Some(minimum), Some(maximum)) => format!(" from {minimum} to {maximum}"),
        (Some(minimum), None) => format!(" of at least {minimum}"),
        (None, Some(maximum)) => format!(" of at most {maximum}"),
        (None, None) => String::new(),
    };
    match kind(property) {
        "integer" => format!("expected an integer{range}"),
        "number" => format!("expected a number{range}"),
        "object" => object(property),
        "array" => "expected a list".to_owned(),
        "boolean" => "expected true or false".to_owned(),
        _ => "expected a string".to_owned(),
    }
}

fn object(property: &Value) -> String {
    let members: Vec<_> = property["properties"].as_object().into_iter().flatten().map(|(name, _)| format!("`{name}`")).collect();
    match (members.is_empty(), property["additionalProperties"]["type"] == "string") {
        (false, _) => format!("expected an object of {}", members.join(", ")),
        (true, true) => "expected an object whose values are strings".to_owned(),
        (true, false) => "expected an object".to_owned(),
    }
}
