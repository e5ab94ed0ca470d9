//! Entry points for the fuzz targets (`fuzz/` in the repository): the parsers of bytes from outside, as the server calls them.

use crate::api::{Parameters, to_json};
use crate::auth::{Issuer, credentials, token_file};
use crate::edge::Access;
use crate::mcp::{Batches, Era, EventId, Received, read_message, resources};
use crate::{cli, http, rest};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, Uri};
use serde_json::{Map, Value};

pub use crate::http::{JSON_DEPTH_MAX, JSON_VALUES_MAX};
pub use crate::mcp::{BATCH_MAX, SESSION_ID_CHARS_MAX};

/// A JSON body or message.
pub fn json(bytes: &[u8]) -> Result<Value, String> {
    http::json_value(bytes).map_err(|problem| problem.detail().to_owned())
}

/// Each item of a JSON-RPC message or batch, as JSON or as the error that it is answered with.
pub fn json_rpc(bytes: &[u8], are_batches_accepted: bool) -> Result<Vec<Result<Value, Value>>, Value> {
    let batches = if are_batches_accepted { Batches::Accepted } else { Batches::Refused };
    let received = read_message(bytes.to_vec().into(), batches).map_err(|error| to_json(&error))?;
    Ok(match received.messages() {
        Received::Single(message) => vec![Ok(to_json(&message))],
        Received::Batch(items) => {
            items.into_iter().map(|item| item.map(|message| to_json(&message)).map_err(|error| to_json(&error))).collect()
        }
    })
}

/// The id and the state of the session that `_meta` names.
pub fn session_metadata(meta: &Map<String, Value>, is_modern: bool) -> Result<Option<(String, Option<String>)>, String> {
    let era = if is_modern { Era::Modern } else { Era::Legacy };
    let read = era.read(meta).map_err(|error| error.message.into_owned())?;
    // Must accept what `read` refuses.
    let _ = era.session_in(meta);
    Ok(read.map(|session| (session.id, session.state)))
}

/// The URI of the topic that a client subscribes to with this URI.
pub fn subscription(uri: &str) -> Option<String> {
    resources::topic(uri).map(|topic| resources::uri(&topic))
}

/// The `Last-Event-ID` of a listener, as the server writes it.
pub fn event_id(text: &str) -> Option<String> {
    text.parse::<EventId>().ok().map(|id| id.to_string())
}

/// An issuer of JWTs: `jwks` is the body of its key set.
pub fn issuer(jwks: &[u8], issuer: &str, audience: &str) -> Option<Issuer> {
    Issuer::new(jwks, issuer, audience)
}

/// The owner that a JWT authenticates.
pub fn jwt(issuer: &Issuer, text: &str) -> Option<String> {
    issuer.identity(text).map(|identity| identity.principal.to_string())
}

/// The owner and the number of permissions that the claims of a verified JWT name.
pub fn claims(issuer: &Issuer, claims: &Map<String, Value>) -> Option<(String, usize)> {
    issuer.identity_in(claims).map(|identity| (identity.principal.to_string(), identity.permissions.len()))
}

/// The text of a token file with the entries of this one.
pub fn token_file(text: &str) -> Result<String, String> {
    token_file::parse(text).and_then(token_file::render)
}

/// The flags that a configuration file sets.
pub fn configuration(text: &str) -> Result<Vec<(String, String)>, String> {
    cli::parse_config(text)
}

/// The credentials in the headers, and whether `Host` and `Origin` are allowed on a server for `localhost`.
pub fn headers(uri: &str, lines: &[(&str, &[u8])]) -> Option<(Option<String>, bool)> {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(HeaderName::try_from(*name).ok()?, HeaderValue::from_bytes(value).ok()?);
    }
    let access = Access { hosts: vec!["localhost".into()], origins: vec!["https://allowed.example".into()] };
    let is_allowed = http::check_access(&access, &uri.parse::<Uri>().ok()?, &headers).is_ok();
    let _ = http::require_accept(&headers, "application/json");
    let given = credentials(&headers).ok().map(str::to_owned);
    Some((given, is_allowed))
}

/// The arguments in the query of a request, for an operation with this schema. None if the URI has no meaning at all.
pub fn query(uri: &str, schema: &Value) -> Option<Result<Map<String, Value>, String>> {
    let (parts, ()) = Request::builder().uri(uri).body(()).ok()?.into_parts();
    Some(rest::from_query(schema, &parts).map_err(|problem| problem.detail().to_owned()))
}

/// The arguments of an operation with this schema, as it gets them; or the refusal.
pub fn arguments(operation: &'static str, schema: &Value, arguments: Map<String, Value>) -> Result<Map<String, Value>, String> {
    Parameters::new(operation, schema).parse(arguments).map_err(|error| error.to_string())
}
