//! Other names of tools, for hosts that were written to them: `plasm_context`, `plasm` and `plasm_run`.

use super::Api;
use super::operation::{Arguments, Operation};
use super::params;
use heapstead_service::ServiceError;
use serde_json::{Value, json};

/// The tool of this name, or that is meant by it.
pub fn tool_of(name: &str) -> &str {
    match name {
        "plasm_context" => "session_context",
        "plasm" | "plasm_run" => "run_js",
        own => own,
    }
}

/// The arguments of a tool under another name, as the tool itself takes them. Whatever `listed` does not show is refused.
pub fn in_own_words(api: &Api, name: &str, arguments: Arguments) -> Result<Arguments, ServiceError> {
    if let Some(alias) = listed(api).iter().find(|alias| alias.name == name) {
        params::check_names(name, &alias.input, &arguments)?;
    }
    translate(name, arguments)
}

fn translate(name: &str, arguments: Arguments) -> Result<Arguments, ServiceError> {
    match tool_of(name) {
        own if own == name => Ok(arguments),
        "run_js" => run(arguments),
        _ => context(arguments),
    }
}

/// The members that name the catalog of a seed: one of them in each.
const CATALOG_MEMBERS: [&str; 3] = ["api", "entry_id", "catalog"];
/// Arguments of `run_js` that have other names: theirs, ours, and what is expected.
const RUN_ARGUMENTS: [(&str, &str, &str); 2] =
    [("logical_session_ref", "session", "the one that `plasm_context` answered with"), ("program", "code", "a string")];

/// Seeds are named by `api` or `entry_id` there, and there have to be some.
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

/// A program runs in a session there, always.
fn run(mut arguments: Arguments) -> Result<Arguments, ServiceError> {
    for (theirs, ours, expected) in RUN_ARGUMENTS {
        match arguments.remove(theirs) {
            None | Some(Value::Null) => return Err(ServiceError::BadInput(format!("`{theirs}` is missing: expected {expected}"))),
            Some(value) => arguments.insert(ours.into(), value),
        };
    }
    Ok(arguments)
}

/// The tools under their other names, as a list shows them.
pub fn listed(api: &Api) -> Vec<Operation> {
    let named = |name: &'static str| api.tool(tool_of(name)).map(|tool| tool.under(name, input(name, tool.input.clone())));
    ["plasm_context", "plasm", "plasm_run"].into_iter().filter_map(named).collect()
}

/// The schema of a tool, with the other names of its arguments.
fn input(name: &str, mut schema: Value) -> Value {
    let Some(properties) = schema["properties"].as_object_mut() else { return schema };
    if tool_of(name) == "run_js" {
        for (theirs, ours, _) in RUN_ARGUMENTS {
            if let Some(property) = properties.remove(ours) {
                properties.insert(theirs.into(), property);
            }
        }
        schema["required"] = json!(["logical_session_ref", "program"]);
    } else {
        properties["seeds"]["minItems"] = json!(1);
        properties["seeds"]["items"] = json!({ "anyOf": CATALOG_MEMBERS.map(seed) });
        schema["required"] = json!(["intent", "seeds"]);
    }
    schema
}

fn seed(catalog: &str) -> Value {
    json!({
        "type": "object",
        "properties": {
            catalog: { "type": "string", "description": "Name of the catalog." },
            "entity": { "type": "string", "description": "Name of the entity." },
        },
        "required": [catalog, "entity"],
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(value: Value) -> Arguments {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn what_is_said_in_their_words_is_meant_in_ours() {
        let seeds = json!({ "intent": "i", "seeds": [{ "api": "a", "entity": "x" }, { "entry_id": "b", "entity": "y" }, { "catalog": "c", "entity": "z" }] });
        let said = translate("plasm_context", arguments(seeds)).expect("good");
        assert_eq!(tool_of("plasm_context"), "session_context");
        let expected = json!([{ "catalog": "a", "entity": "x" }, { "catalog": "b", "entity": "y" }, { "catalog": "c", "entity": "z" }]);
        assert_eq!(said["seeds"], expected);
        for name in ["plasm", "plasm_run"] {
            let said = translate(name, arguments(json!({ "logical_session_ref": "s0", "program": "1" }))).expect("good");
            assert_eq!((tool_of(name), Value::Object(said)), ("run_js", json!({ "session": "s0", "code": "1" })));
        }
        for (bad, says) in
            [(json!({ "intent": "i" }), "missing"), (json!({ "seeds": "x" }), "not a list"), (json!({ "seeds": [] }), "empty")]
        {
            let refused = translate("plasm_context", arguments(bad)).expect_err("refused");
            assert!(refused.to_string().contains(says) && refused.to_string().contains("at least one"), "{refused}");
        }
        for seed in [
            json!({ "entity": "x" }),
            json!({ "api": "a", "entry_id": "a", "entity": "x" }),
            json!({ "api": "a", "catalog": "b", "entity": "x" }),
        ] {
            let refused = translate("plasm_context", arguments(json!({ "intent": "i", "seeds": [seed] }))).expect_err("refused");
            assert!(refused.to_string().contains("exactly one of api, entry_id, catalog"), "{refused}");
        }
        let refused = translate("plasm", arguments(json!({ "program": "1" }))).expect_err("refused");
        assert!(refused.to_string().contains("`logical_session_ref` is missing"), "{refused}");
        assert_eq!(translate("run_js", Arguments::new()).expect("its own"), Arguments::new());
    }
}
