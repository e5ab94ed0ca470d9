//! Validates `initialize` before rmcp does: rmcp treats an invalid one as a custom request and then reports a missing connection. Also bounds
//! what of it is kept with the connection.

use super::{dialect, error};
use rmcp::ErrorData;
use rmcp::model::{ClientCapabilities, ClientJsonRpcMessage, ClientRequest, Implementation, InitializeRequestParams, JsonRpcMessage};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::fmt;

/// Longest `initialize`. Clients send about 1 KiB; a few list experimental capabilities or icons.
const BYTES_MAX: usize = 64 << 10;
/// Characters that are kept of the name and of the version of a client.
const CLIENT_CHARS_MAX: usize = 128;

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

/// Refuses an `initialize` that is too long, without parsing it into values.
pub fn check_length(bytes: &[u8]) -> Result<(), ErrorData> {
    let is_too_long =
        bytes.len() > BYTES_MAX && serde_json::from_slice(bytes).is_ok_and(|Message { method }| method.is_some_and(|it| it.0));
    if !is_too_long {
        return Ok(());
    }
    Err(error::request_too_large(format!("`initialize` has {} bytes: at most {BYTES_MAX} are allowed", bytes.len())))
}

/// The one member that tells whether a message is `initialize`.
#[derive(Deserialize)]
struct Message {
    method: Option<IsInitialize>,
}

struct IsInitialize(bool);

impl<'de> Deserialize<'de> for IsInitialize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = IsInitialize;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a method")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<IsInitialize, E> {
                Ok(IsInitialize(name == "initialize"))
            }
        }
        deserializer.deserialize_str(Name)
    }
}

/// rmcp keeps the parameters of `initialize` as long as the connection is open. Only the version is used, so little of the rest is left.
pub fn without_unused(mut message: ClientJsonRpcMessage) -> ClientJsonRpcMessage {
    if let JsonRpcMessage::Request(request) = &mut message
        && let ClientRequest::InitializeRequest(initialize) = &mut request.request
    {
        let shown = |text: &str| text.chars().take(CLIENT_CHARS_MAX).collect::<String>();
        let params = &mut initialize.params;
        // The handlers read `_meta` from the extensions of the request.
        params.meta = None;
        params.capabilities = ClientCapabilities::default();
        params.client_info = Implementation::new(shown(&params.client_info.name), shown(&params.client_info.version));
    }
    message
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
    fn only_a_long_initialize_is_too_long() {
        let message = |method: &str, bytes: usize| format!(r#"{{"jsonrpc":"2.0","params":"{}","method":{method}}}"#, "x".repeat(bytes));
        for (method, bytes, fits) in [
            (r#""initialize""#, 10, true),
            (r#""initialize""#, BYTES_MAX, false),
            (r#""\u0069nitialize""#, BYTES_MAX, false),
            (r#""tools/call""#, BYTES_MAX, true),
            ("5", BYTES_MAX, true),
            ("null", BYTES_MAX, true),
        ] {
            assert_eq!(check_length(message(method, bytes).as_bytes()).is_ok(), fits, "{method} {bytes}");
        }
        let not_a_message = format!("[{}]", "0,".repeat(BYTES_MAX));
        assert!(check_length(not_a_message.as_bytes()).is_ok(), "refused later");
    }

    #[test]
    fn little_of_initialize_is_kept() {
        let long = "é".repeat(60_000);
        let params = json!({
            "protocolVersion": "2025-11-25",
            "_meta": { "x": long },
            "capabilities": { "experimental": { "x": { "y": long } } },
            "clientInfo": { "name": long, "version": long, "title": long, "websiteUrl": long },
        });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        let JsonRpcMessage::Request(request) = without_unused(serde_json::from_value(message).expect("a message")) else {
            panic!("a request")
        };
        let ClientRequest::InitializeRequest(initialize) = request.request else { panic!("initialize") };
        assert_eq!(initialize.params.protocol_version.as_str(), "2025-11-25");
        let kept = serde_json::to_string(&initialize.params).expect("JSON");
        assert!(kept.len() < 1000, "{}", kept.len());
    }

    #[test]
    fn other_messages_are_accepted() {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        assert!(check(message.as_object().expect("an object")).is_ok());
        let later = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } });
        assert_eq!(checked(later), Ok(()), "this version has no `initialize`");
    }
}
