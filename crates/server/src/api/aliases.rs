//! Other names of tools, for hosts that were written to them: `plasm_context`, `plasm` and `plasm_run`.

use super::Api;
use super::operation::{Arguments, Operation};
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

/// What is said to a tool under another name, in its own words.
pub fn in_own_words(name: &str, arguments: Arguments) -> Result<Arguments, ServiceError> {
    match tool_of(name) {
        own if own == name => Ok(arguments),
        "run_js" => run(arguments),
        _ => context(arguments),
    }
}

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
        let catalog = ["api", "entry_id"].into_iter().find_map(|name| seed.remove(name));
        if let Some(catalog) = catalog {
            seed.entry("catalog").or_insert(catalog);
        }
    }
    Ok(arguments)
}

/// A program runs in a session there, always.
fn run(mut arguments: Arguments) -> Result<Arguments, ServiceError> {
    for (theirs, ours) in [("logical_session_ref", "session"), ("program", "code")] {
        if let Some(value) = arguments.remove(theirs) {
            arguments.entry(ours).or_insert(value);
        }
    }
    if arguments.get("session").is_none_or(Value::is_null) {
        let text = "`logical_session_ref` is missing: expected the one that `plasm_context` answered with";
        return Err(ServiceError::BadInput(text.into()));
    }
    Ok(arguments)
}

/// The tools under their other names, as a list shows them.
pub fn listed(api: &Api) -> Vec<Operation> {
    let named = |name: &'static str, of: &str, input: Value| api.tool(of).map(|operation| operation.under(name, input));
    let seeds = json!({
        "type": "array", "minItems": 1,
        "items": {
            "type": "object",
            "properties": { "api": { "type": "string" }, "entry_id": { "type": "string" }, "entity": { "type": "string" } },
            "required": ["entity"],
        },
    });
    let context = json!({
        "type": "object",
        "properties": { "intent": { "type": "string", "minLength": 1, "maxLength": 512 }, "seeds": seeds },
        "required": ["intent", "seeds"],
    });
    let program = json!({
        "type": "object",
        "properties": { "logical_session_ref": { "type": "string" }, "program": { "type": "string", "minLength": 1 } },
        "required": ["logical_session_ref", "program"],
    });
    [named("plasm_context", "session_context", context), named("plasm", "run_js", program.clone()), named("plasm_run", "run_js", program)]
        .into_iter()
        .flatten()
        .collect()
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
        let said = in_own_words("plasm_context", arguments(seeds)).expect("good");
        assert_eq!(tool_of("plasm_context"), "session_context");
        let expected = json!([{ "catalog": "a", "entity": "x" }, { "catalog": "b", "entity": "y" }, { "catalog": "c", "entity": "z" }]);
        assert_eq!(said["seeds"], expected);
        for name in ["plasm", "plasm_run"] {
            let said = in_own_words(name, arguments(json!({ "logical_session_ref": "s0", "program": "1" }))).expect("good");
            assert_eq!((tool_of(name), Value::Object(said)), ("run_js", json!({ "session": "s0", "code": "1" })));
        }
        for (bad, says) in
            [(json!({ "intent": "i" }), "missing"), (json!({ "seeds": "x" }), "not a list"), (json!({ "seeds": [] }), "empty")]
        {
            let refused = in_own_words("plasm_context", arguments(bad)).expect_err("refused");
            assert!(refused.to_string().contains(says) && refused.to_string().contains("at least one"), "{refused}");
        }
        let refused = in_own_words("plasm", arguments(json!({ "program": "1" }))).expect_err("refused");
        assert!(refused.to_string().contains("`logical_session_ref` is missing"), "{refused}");
        assert_eq!(in_own_words("run_js", Arguments::new()).expect("its own"), Arguments::new());
    }
}
