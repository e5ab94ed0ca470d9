//! The session that a request names in `_meta`: its keys and error codes before and since MCP 2026-07-28.

use super::error;
use heapstead_service::{Noun, STATE_BYTES_MAX, ServiceError};
use heapstead_types::SessionId;
use rmcp::ErrorData;
use rmcp::model::JsonObject;
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;

/// Longer ids are refused without a lookup. Ids have 64 characters.
pub const SESSION_ID_CHARS_MAX: usize = 256;
const LEGACY_KEY: &str = "io.modelcontextprotocol/session";
const MODERN_KEY: &str = "dev.heapstead/session";
/// The name of the extension in the capabilities of 2026-07-28.
pub const EXTENSION: &str = "dev.heapstead/sessions";

/// The protocol versions with and without `initialize`. They differ in the keys and error codes of sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// Before 2026-07-28.
    Legacy,
    /// Since 2026-07-28: every request has its own version and client.
    Modern,
}

/// The session that a request names.
#[derive(Debug, PartialEq, Eq)]
pub struct SessionReference {
    pub id: String,
    pub state: Option<String>,
}

impl Era {
    pub fn of(context: &RequestContext<RoleServer>) -> Self {
        match context.protocol_version() {
            Some(version) if !version.has_initialize() => Self::Modern,
            _ => Self::Legacy,
        }
    }

    pub fn key(self) -> &'static str {
        match self {
            Self::Legacy => LEGACY_KEY,
            Self::Modern => MODERN_KEY,
        }
    }

    /// The session in `_meta`, or an error if it is malformed.
    pub fn read(self, meta: &JsonObject) -> Result<Option<SessionReference>, ErrorData> {
        let read = |key: &str| meta.get(key).map(|value| self.parse(value)).transpose();
        match (self, read(LEGACY_KEY)?) {
            (Self::Legacy, old) => Ok(old),
            (Self::Modern, old) => match (read(MODERN_KEY)?, old) {
                (Some(new), Some(old)) if new.id != old.id => {
                    let text = format!("`_meta` names two sessions, in `{MODERN_KEY}` and in `{LEGACY_KEY}`: remove one");
                    Err(error::invalid_params(text))
                }
                (new, old) => Ok(new.or(old)),
            },
        }
    }

    /// The outer option is whether `_meta` has a session, even a malformed one. The inner is its id, not validated.
    pub fn session_in(self, meta: &JsonObject) -> Option<Option<&str>> {
        let new = (self == Self::Modern).then(|| meta.get(MODERN_KEY)).flatten();
        new.or_else(|| meta.get(LEGACY_KEY)).map(|named| named.get("sessionId").and_then(Value::as_str))
    }

    fn parse(self, value: &Value) -> Result<SessionReference, ErrorData> {
        let bad = |why: String| error::invalid_params(format!("`_meta[\"{}\"]` {why}", self.key()));
        let id = value.get("sessionId").ok_or_else(|| bad("has no `sessionId`".into()))?;
        let id = session_id(id).map_err(|why| bad(format!("has a `sessionId` that {why}")))?;
        let state = match value.get("state") {
            None | Some(Value::Null) => None,
            Some(Value::String(state)) if state.len() <= STATE_BYTES_MAX => Some(state.clone()),
            Some(_) => return Err(bad(format!("has a `state` that is not a string of at most {STATE_BYTES_MAX} bytes"))),
        };
        Ok(SessionReference { id, state })
    }

    pub fn not_found(self, id: &str) -> ErrorData {
        let rpc_code = match self {
            Self::Legacy => -32043,
            Self::Modern => -31043,
        };
        error::session_not_found(rpc_code, id)
    }

    pub fn required(self) -> ErrorData {
        let rpc_code = match self {
            Self::Legacy => -32044,
            Self::Modern => -31044,
        };
        let hint = format!("create a session with sessions/create and send it in `_meta[\"{}\"]`", self.key());
        error::session_required(rpc_code, &hint)
    }

    /// The JSON-RPC error for a refusal that MCP defines one for. Other refusals are results of the tool.
    pub fn protocol_error(self, error: &ServiceError, entered: Option<SessionId>) -> Option<ErrorData> {
        match error {
            ServiceError::SessionRequired | ServiceError::NoSession => Some(self.required()),
            // The session ended between lookup and use.
            ServiceError::NotFound { what: Noun::Session, name } | ServiceError::SessionEnded(name)
                if entered.is_some_and(|id| id.to_string() == *name) =>
            {
                Some(self.not_found(name))
            }
            _ => None,
        }
    }
}

/// Validates the form of a session id.
pub fn session_id(value: &Value) -> Result<String, String> {
    match value.as_str() {
        None => Err("is not a string".into()),
        Some("") => Err("is empty".into()),
        Some(id) if id.len() > SESSION_ID_CHARS_MAX => Err(format!("has more than {SESSION_ID_CHARS_MAX} characters")),
        Some(id) if !id.bytes().all(|byte| matches!(byte, 0x21..=0x7e)) => Err("has characters other than visible ASCII".into()),
        Some(id) => Ok(id.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(era: Era, meta: Value) -> Result<Option<SessionReference>, i32> {
        era.read(meta.as_object().expect("an object")).map_err(|error| error.code.0)
    }

    #[test]
    fn session_ids_are_limited_to_visible_ascii_of_256_characters() {
        let longest = "x".repeat(SESSION_ID_CHARS_MAX);
        for good in ["a", "!~", &longest] {
            let named = SessionReference { id: good.into(), state: None };
            assert_eq!(read(Era::Legacy, json!({ LEGACY_KEY: { "sessionId": good, "expiresAt": 5 } })), Ok(Some(named)), "{good}");
        }
        for bad in [json!(""), json!("a b"), json!("a\n"), json!("é"), json!("\u{7f}"), json!(format!("{longest}x")), json!(5), json!(null)]
        {
            assert_eq!(read(Era::Legacy, json!({ LEGACY_KEY: { "sessionId": bad } })), Err(-32602), "{bad}");
        }
        for bad in [json!({}), json!(null), json!("a"), json!([])] {
            assert_eq!(read(Era::Legacy, json!({ LEGACY_KEY: bad })), Err(-32602), "{bad}");
        }
        assert_eq!(read(Era::Legacy, json!({})), Ok(None));
    }

    #[test]
    fn a_state_is_a_string_of_limited_length() {
        let with = |state: Value| read(Era::Legacy, json!({ LEGACY_KEY: { "sessionId": "a", "state": state } }));
        assert_eq!(with(json!("x".repeat(STATE_BYTES_MAX))).map(|named| named.is_some_and(|named| named.state.is_some())), Ok(true));
        assert_eq!(with(json!("x".repeat(STATE_BYTES_MAX + 1))), Err(-32602));
        assert_eq!(with(json!({})), Err(-32602));
    }

    #[test]
    fn modern_requests_accept_both_keys_and_legacy_requests_only_their_own() {
        let named = |id: &str| Ok(Some(SessionReference { id: id.into(), state: None }));
        let (old, new) = (json!({ "sessionId": "old" }), json!({ "sessionId": "new" }));
        assert_eq!(read(Era::Modern, json!({ LEGACY_KEY: old })), named("old"));
        assert_eq!(read(Era::Modern, json!({ MODERN_KEY: new })), named("new"));
        assert_eq!(read(Era::Modern, json!({ LEGACY_KEY: new, MODERN_KEY: new })), named("new"));
        assert_eq!(read(Era::Modern, json!({ LEGACY_KEY: old, MODERN_KEY: new })), Err(-32602), "ambiguous");
        assert_eq!(read(Era::Legacy, json!({ MODERN_KEY: new })), Ok(None));
    }
}
