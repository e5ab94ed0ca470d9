//! Parameters of an operation, checked against the schema that clients see. A refusal names the parameter, the value and what is allowed.

use heapstead_service::ServiceError;
use heapstead_service::schema::{NOT_EMPTY, pattern_in_words};
use jsonschema::Validator;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// How much of an unknown parameter's name is repeated.
const NAME_CHARS_MAX: usize = 80;

/// The compiled schema of an operation's parameters.
pub struct Parameters {
    operation: &'static str,
    known: Vec<Parameter>,
    required: Vec<String>,
}

struct Parameter {
    name: String,
    schema: Value,
    /// Or why the schema can't be compiled, which would be a mistake in the operation. Nothing unchecked is accepted then.
    validator: Result<Validator, String>,
}

impl Parameters {
    pub fn new(operation: &'static str, schema: &Value) -> Self {
        let properties = schema["properties"].as_object().into_iter().flatten();
        let known = properties.map(|(name, schema)| Parameter {
            name: name.clone(),
            schema: schema.clone(),
            validator: jsonschema::draft202012::new(schema).map_err(|error| error.to_string()),
        });
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        Self { operation, known: known.collect(), required: required.map(str::to_owned).collect() }
    }

    /// A parameter that is null counts as omitted.
    pub fn parse<P: DeserializeOwned>(&self, arguments: Map<String, Value>) -> Result<P, ServiceError> {
        self.check_names(&arguments)?;
        let mut checked = Map::new();
        for (name, value) in arguments {
            if let Some(parameter) = self.parameter(&name)
                && !value.is_null()
            {
                let value = parameter.check(value)?;
                checked.insert(name, value);
            }
        }
        for name in &self.required {
            if !checked.contains_key(name) {
                let expected = self.parameter(name).map(|parameter| allowed(&parameter.schema)).unwrap_or_default();
                return Err(ServiceError::BadInput(format!("`{name}` is missing: {expected}")));
            }
        }
        // The schema is generated from the type, so this fails only for what a schema can't express.
        serde_json::from_value(Value::Object(checked)).map_err(|error| ServiceError::BadInput(error.to_string()))
    }

    /// Refuses parameters that the operation does not have.
    pub fn check_names(&self, arguments: &Map<String, Value>) -> Result<(), ServiceError> {
        let Some(name) = arguments.keys().find(|name| self.parameter(name).is_none()) else { return Ok(()) };
        let names: Vec<_> = self.known.iter().map(|parameter| format!("`{}`", parameter.name)).collect();
        let allowed = if names.is_empty() { "it takes none".to_owned() } else { format!("allowed are {}", names.join(", ")) };
        let shown: String = name.chars().take(NAME_CHARS_MAX).collect();
        Err(ServiceError::BadInput(format!("`{shown}` is not a parameter of {}: {allowed}", self.operation)))
    }

    fn parameter(&self, name: &str) -> Option<&Parameter> {
        self.known.iter().find(|parameter| parameter.name == name)
    }
}

impl Parameter {
    /// The value in the form that its type is read from.
    fn check(&self, value: Value) -> Result<Value, ServiceError> {
        let value = match value.as_f64() {
            // JSON has one kind of number: 5.0 is an integer.
            Some(number) if kind(&self.schema) == "integer" && value.is_f64() && number.fract() == 0.0 && number.abs() < 9e15 => {
                Value::from(number as i64)
            }
            _ => value,
        };
        let validator = self
            .validator
            .as_ref()
            .map_err(|error| ServiceError::Unavailable(format!("`{}` can't be checked: its schema is invalid: {error}", self.name)))?;
        let Err(error) = validator.validate(&value) else { return Ok(value) };
        let path = error.instance_path().to_string();
        if path.is_empty() {
            return Err(ServiceError::bad_value(&self.name, shown(&self.schema, &value), allowed_instead_of(&self.schema, &value)));
        }
        let member: String = path.trim_start_matches('/').replace('/', ".").chars().take(NAME_CHARS_MAX).collect();
        let (Some(schema), Some(value)) = (member_schema(&self.schema, &path), value.pointer(&path)) else {
            return Err(ServiceError::BadInput(format!("`{}`: `{member}`: {}", self.name, error.masked())));
        };
        let refused = |name: &str| ServiceError::bad_value(name, shown(schema, value), allowed_instead_of(schema, value));
        // Members that the schema names are part of the parameter's name; those of a map or a list are the caller's own.
        match self.schema.get("properties") {
            Some(_) => Err(refused(&format!("{}.{member}", self.name))),
            None => Err(ServiceError::BadInput(format!("`{}`: {}", self.name, refused(&member)))),
        }
    }
}

/// The schema of the member at a JSON pointer, if it is a plain one.
fn member_schema<'a>(schema: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('/').skip(1).try_fold(schema, |schema, name| {
        let named = schema.get("properties").and_then(|properties| properties.get(name));
        named.or_else(|| schema.get("items")).or_else(|| schema.get("additionalProperties").filter(|schema| schema.is_object()))
    })
}

/// The value as an error repeats it: long texts are described by their length, others that should have a form are quoted.
fn shown(schema: &Value, value: &Value) -> String {
    const TEXT_CHARS_MAX: usize = 200;
    match value {
        Value::String(text) if text.chars().count() > TEXT_CHARS_MAX => format!("{} characters long", text.chars().count()),
        Value::String(text) if text.trim().is_empty() && schema["pattern"] == NOT_EMPTY => "empty".to_owned(),
        Value::String(text) if schema.get("pattern").is_some() => format!("`{}`", text.escape_debug()),
        other => other.to_string(),
    }
}

/// The type, without `null`.
fn kind(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("string"),
        kind => kind.and_then(Value::as_str).unwrap_or("string"),
    }
}

/// What the schema allows instead of this value. If the value is not even a string, its form does not matter.
fn allowed_instead_of(schema: &Value, value: &Value) -> String {
    if kind(schema) == "string" && schema.get("enum").is_none() && !value.is_string() {
        "expected a string".to_owned()
    } else {
        allowed(schema)
    }
}

/// What the schema allows, in words.
fn allowed(schema: &Value) -> String {
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        let choices: Vec<_> = choices.iter().filter_map(Value::as_str).map(|choice| format!("`{choice}`")).collect();
        return match choices.as_slice() {
            [one, other] => format!("allowed are {one} and {other}"),
            choices => format!("allowed are {}", choices.join(", ")),
        };
    }
    let bound = |name: &str| schema.get(name).filter(|bound| bound.is_number()).map(ToString::to_string);
    let range = |minimum: &str, maximum: &str| match (bound(minimum), bound(maximum)) {
        (Some(minimum), Some(maximum)) => format!(" from {minimum} to {maximum}"),
        (Some(minimum), None) => format!(" of at least {minimum}"),
        (None, Some(maximum)) => format!(" of at most {maximum}"),
        (None, None) => String::new(),
    };
    match kind(schema) {
        "integer" => format!("expected an integer{}", range("minimum", "maximum")),
        "number" => format!("expected a number{}", range("minimum", "maximum")),
        "object" => allowed_object(schema),
        "array" => match range("minItems", "maxItems") {
            range if range.is_empty() => "expected a list".to_owned(),
            range => format!("expected a list{} items", range.replace(" from ", " of ")),
        },
        "boolean" => "expected true or false".to_owned(),
        _ => allowed_string(schema, &range("minLength", "maxLength")),
    }
}

fn allowed_string(schema: &Value, length: &str) -> String {
    let pattern = schema.get("pattern").and_then(Value::as_str).and_then(pattern_in_words);
    match (pattern, length) {
        (Some(words), _) => format!("expected {words}"),
        (None, "") => "expected a string".to_owned(),
        (None, length) => format!("expected a string{} characters", length.replace(" from ", " of ")),
    }
}

fn allowed_object(schema: &Value) -> String {
    let members: Vec<_> = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| format!("`{name}`")).collect();
    match (members.is_empty(), schema["additionalProperties"]["type"] == "string") {
        (false, _) => format!("expected an object of {}", members.join(", ")),
        (true, true) => format!("expected an object whose values are strings{}", allowed_names(schema)),
        (true, false) => "expected an object".to_owned(),
    }
}

/// The bounds on the number and the names of members.
fn allowed_names(schema: &Value) -> String {
    let mut words = String::new();
    if let Some(max) = schema.get("maxProperties") {
        words.push_str(&format!(", at most {max}"));
    }
    if let Some(max) = schema["propertyNames"].get("maxLength") {
        words.push_str(&format!(
            ", with names of 1 to {max} characters, none of them a comma or a control character, and no white space around them"
        ));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refusal(schema: Value, value: Value) -> String {
        let schema = json!({ "type": "object", "properties": { "p": schema } });
        let parameters = Parameters::new("op", &schema);
        let arguments = json!({ "p": value }).as_object().cloned().expect("an object");
        parameters.parse::<Value>(arguments).expect_err("refused").to_string()
    }

    #[test]
    fn a_refusal_names_the_parameter_the_value_and_what_is_allowed() {
        for (schema, value, text) in [
            (json!({ "type": "integer", "minimum": 1, "maximum": 5 }), json!(6), "`p` is 6: expected an integer from 1 to 5"),
            (json!({ "type": "integer" }), json!(1.5), "`p` is 1.5: expected an integer"),
            (json!({ "type": "string", "enum": ["a", "b"] }), json!("c"), "`p` is \"c\": allowed are `a` and `b`"),
            (
                json!({ "type": "string", "minLength": 1, "maxLength": 3 }),
                json!("abcd"),
                "`p` is \"abcd\": expected a string of 1 to 3 characters",
            ),
            (
                json!({ "type": "string", "maxLength": 3 }),
                json!("é".repeat(300)),
                "`p` is 300 characters long: expected a string of at most 3 characters",
            ),
            (json!({ "type": "boolean" }), json!(1), "`p` is 1: expected true or false"),
        ] {
            assert_eq!(refusal(schema, value), text);
        }
        let nested = json!({ "type": "object", "properties": { "size": { "type": "integer", "maximum": 3 } } });
        assert_eq!(refusal(nested, json!({ "size": 4 })), "`p.size` is 4: expected an integer of at most 3");
        let items = json!({ "type": "array", "items": { "type": "string", "maxLength": 2 } });
        assert_eq!(refusal(items, json!(["a", "abc"])), "`p`: `1` is \"abc\": expected a string of at most 2 characters");
    }

    #[test]
    fn nothing_is_accepted_unchecked() {
        let text = refusal(json!({ "type": "no type" }), json!(1));
        assert!(text.starts_with("`p` can't be checked: its schema is invalid: "), "{text}");
    }

    #[test]
    fn whole_numbers_are_integers_and_null_is_omitted() {
        let schema = json!({ "type": "object", "properties": { "p": { "type": "integer" } } });
        let parse =
            |value: Value| Parameters::new("op", &schema).parse::<Value>(json!({ "p": value }).as_object().cloned().expect("an object"));
        assert_eq!(parse(json!(5.0)).expect("good"), json!({ "p": 5 }));
        assert_eq!(parse(json!(null)).expect("good"), json!({}));
    }
}
