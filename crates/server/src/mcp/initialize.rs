//! Validates the parameters of `initialize` before rmcp does: rmcp treats an invalid `initialize` as a custom request and then reports a missing
//! connection.

use super::{dialect, error};
use rmcp::ErrorData;
use rmcp::model::InitializeRequestParams;
use serde_json::{Map, Value};

/// The required parameters and their types, outer members first.
const REQUIRED: [(&[&str], Kind); 5] = [
    (&["protocolVersion"], Kind::Text),
    (&["capabilities"], Kind::Object),
    (&["clientInfo"], Kind::Object),
    (&["clientInfo", "name"], Kind::Text),
    (&["clientInfo", "version"], Kind::Text),
];

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Object,
}

/// Refuses an invalid `initialize` with a list of its errors. Accepts all other messages.
pub fn check(message: &Map<String, Value>) -> Result<(), ErrorData> {
    let is_initialize = message.get("method").is_some_and(|method| method == "initialize") && message.contains_key("id");
    // Versions without `initialize` refuse the method as unknown.
    if !is_initialize || dialect::has_own_version(message) {
        return Ok(());
    }
    let params = message.get("params").unwrap_or(&Value::Null);
    let errors: Vec<_> = REQUIRED.iter().filter_map(|(path, kind)| member_error(params, path, *kind)).collect();
    if !errors.is_empty() {
        return Err(error::invalid_params(format!("the `params` of initialize: {}", errors.join("; "))));
    }
    match serde_json::from_value::<InitializeRequestParams>(params.clone()) {
        Ok(_) => Ok(()),
        Err(error) => Err(error::invalid_params(format!("the `params` of initialize are invalid: {error}"))),
    }
}

/// The error in one member. `None` if the member that contains it is invalid.
fn member_error(params: &Value, path: &[&str], kind: Kind) -> Option<String> {
    let (name, outer) = path.split_last()?;
    let outer = outer.iter().try_fold(params, |value, name| value.get(name));
    let is_nested = path.len() > 1;
    if is_nested && !outer.is_some_and(Value::is_object) {
        return None;
    }
    let (right, expected) = match kind {
        Kind::Text => (Value::is_string as fn(&Value) -> bool, "a string"),
        Kind::Object => (Value::is_object as fn(&Value) -> bool, "an object"),
    };
    match outer.and_then(|outer| outer.get(name)) {
        None | Some(Value::Null) => Some(format!("`{}` is missing: expected {expected}", path.join("."))),
        Some(value) if right(value) => None,
        Some(_) => Some(format!("`{}` is not {expected}", path.join("."))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn checked(params: Value) -> Result<(), String> {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        check(message.as_object().expect("an object")).map_err(|error| error.message.into_owned())
    }

    #[test]
    fn every_missing_parameter_is_named() {
        let good = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "n", "version": "1" } });
        assert_eq!(checked(good.clone()), Ok(()));
        for name in ["protocolVersion", "capabilities", "clientInfo"] {
            let mut params = good.clone();
            params.as_object_mut().expect("an object").remove(name);
            let error = checked(params).expect_err(name);
            assert!(error.contains(&format!("`{name}` is missing")) && error.matches("missing").count() == 1, "{error}");
        }
        let error = checked(json!({ "clientInfo": { "name": 5 } })).expect_err("errors");
        for expected in [
            "`protocolVersion` is missing",
            "`capabilities` is missing",
            "`clientInfo.name` is not a string",
            "`clientInfo.version` is missing",
        ] {
            assert!(error.contains(expected), "{error}");
        }
        let mut params = good;
        params["capabilities"]["roots"] = json!(5);
        assert!(checked(params).expect_err("not roots").contains("are invalid"));
    }

    #[test]
    fn other_messages_are_accepted() {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        assert!(check(message.as_object().expect("an object")).is_ok());
        let later = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } });
        assert_eq!(checked(later), Ok(()), "this version has no `initialize`");
    }
}
