//! Aliases of tools for hosts that were written for `plasm_context`, `plasm` and `plasm_run`: another name, other names of parameters.

use super::operation::Arguments;
use heapstead_service::ServiceError;
use serde_json::{Map, Value, json};

#[derive(Clone, Copy)]
pub struct Alias {
    pub name: &'static str,
    /// The tool's input schema, with the alias's parameters.
    pub input: fn(Value) -> Value,
    /// The tool's arguments, from the alias's.
    pub translate: fn(Arguments) -> Result<Arguments, ServiceError>,
}

pub const SESSION_CONTEXT: [Alias; 1] = [Alias { name: "plasm_context", input: context_input, translate: context }];
pub const RUN_JS: [Alias; 2] =
    [Alias { name: "plasm", input: run_input, translate: run }, Alias { name: "plasm_run", input: run_input, translate: run }];

/// The members that name the catalog of a seed: exactly one of them in each.
const CATALOG_MEMBERS: [&str; 3] = ["api", "entry_id", "catalog"];
/// Parameters of `run_js` with other names: the alias's, ours, and what is expected.
const RUN_PARAMETERS: [(&str, &str, &str); 2] =
    [("logical_session_ref", "session", "the one that `plasm_context` answered with"), ("program", "code", "a string")];

/// Seeds are required, and named by `api` or `entry_id`.
fn context(mut arguments: Arguments) -> Result<Arguments, ServiceError> {
    let refused =
        |what: &str| Err(ServiceError::BadInput(format!("`seeds` is {what}: expected a list of {{ \"api\", \"entity\" }}, at least one")));
    let seeds = match arguments.get_mut("seeds") {
        None => return refused("missing"),
        Some(Value::Array(seeds)) if seeds.is_empty() => return refused("an empty list"),
        Some(Value::Array(seeds)) => seeds,
        Some(_) => return refused("not a list"),
    };
    for seed in seeds.iter_mut().filter_map(Value::as_object_mut) {
        let given: Vec<_> = CATALOG_MEMBERS.into_iter().filter(|name| seed.contains_key(*name)).collect();
        let [name] = given[..] else {
            let given = if given.is_empty() { "none".to_owned() } else { given.join(", ") };
            let allowed = format!("expected exactly one of {}", CATALOG_MEMBERS.join(", "));
            return Err(ServiceError::bad_value("seeds", format!("a list with a seed whose catalog is named by {given}"), allowed));
        };
        if let Some(catalog) = seed.remove(name) {
            seed.insert("catalog".into(), catalog);
        }
    }
    Ok(arguments)
}

/// A program always runs in a session.
fn run(mut arguments: Arguments) -> Result<Arguments, ServiceError> {
    for (theirs, ours, expected) in RUN_PARAMETERS {
        match arguments.remove(theirs) {
            None | Some(Value::Null) => return Err(ServiceError::BadInput(format!("`{theirs}` is missing: expected {expected}"))),
            Some(value) => arguments.insert(ours.into(), value),
        };
    }
    Ok(arguments)
}

fn run_input(mut schema: Value) -> Value {
    if let Some(properties) = schema["properties"].as_object_mut() {
        for (theirs, ours, _) in RUN_PARAMETERS {
            if let Some(property) = properties.remove(ours) {
                properties.insert(theirs.into(), property);
            }
        }
    }
    schema["required"] = json!(["logical_session_ref", "program"]);
    schema
}

fn context_input(mut schema: Value) -> Value {
    schema["properties"]["seeds"]["minItems"] = json!(1);
    if let Some(seed) = schema["properties"]["seeds"]["items"].as_object_mut() {
        name_catalog_by_alias(seed);
    }
    schema["required"] = json!(["intent", "seeds"]);
    schema
}

/// Each seed has exactly one of the members that name its catalog.
fn name_catalog_by_alias(seed: &mut Map<String, Value>) {
    if let Some(properties) = seed.get_mut("properties").and_then(Value::as_object_mut)
        && let Some(catalog) = properties.get("catalog").cloned()
    {
        properties.extend(CATALOG_MEMBERS.map(|name| (name.to_owned(), catalog.clone())));
    }
    seed.insert("required".into(), json!(["entity"]));
    seed.insert("oneOf".into(), CATALOG_MEMBERS.map(|name| json!({ "required": [name] })).into_iter().collect());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(value: Value) -> Arguments {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn arguments_of_an_alias_are_translated() {
        let seeds = json!({ "intent": "i", "seeds": [{ "api": "a", "entity": "x" }, { "entry_id": "b", "entity": "y" }, { "catalog": "c", "entity": "z" }] });
        let translated = context(arguments(seeds)).expect("good");
        let expected = json!([{ "catalog": "a", "entity": "x" }, { "catalog": "b", "entity": "y" }, { "catalog": "c", "entity": "z" }]);
        assert_eq!(translated["seeds"], expected);
        let translated = run(arguments(json!({ "logical_session_ref": "s0", "program": "1" }))).expect("good");
        assert_eq!(Value::Object(translated), json!({ "session": "s0", "code": "1" }));
        for (bad, says) in
            [(json!({ "intent": "i" }), "missing"), (json!({ "seeds": "x" }), "not a list"), (json!({ "seeds": [] }), "empty")]
        {
            let refused = context(arguments(bad)).expect_err("refused");
            assert!(refused.to_string().contains(says) && refused.to_string().contains("at least one"), "{refused}");
        }
        for seed in [
            json!({ "entity": "x" }),
            json!({ "api": "a", "entry_id": "a", "entity": "x" }),
            json!({ "api": "a", "catalog": "b", "entity": "x" }),
        ] {
            let refused = context(arguments(json!({ "intent": "i", "seeds": [seed] }))).expect_err("refused");
            assert!(refused.to_string().contains("exactly one of api, entry_id, catalog"), "{refused}");
        }
        let refused = run(arguments(json!({ "program": "1" }))).expect_err("refused");
        assert!(refused.to_string().contains("`logical_session_ref` is missing"), "{refused}");
    }
}
