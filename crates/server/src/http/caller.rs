//! The caller of a request, from its headers and its connection.

use super::Problem;
use crate::edge::Edge;
use axum::extract::ConnectInfo;
use axum::http::request::Parts;
use axum::http::{Extensions, StatusCode};
use heapstead_service::Caller;
use heapstead_types::{BudgetHolder, Permissions, Principal};
use std::net::{IpAddr, SocketAddr};

/// Names the session that a call belongs to.
const SESSION_HEADER: &str = "x-mcp-session-id";
/// Headers with this prefix are readable in a run.
const PASSED_ON: &str = "x-mcp-";

pub fn caller(edge: &Edge, parts: &Parts) -> Result<Caller, Problem> {
    let principal = principal(&parts.extensions)?.clone();
    let permissions = parts.extensions.get::<Permissions>().cloned().unwrap_or_default();
    let mut headers = Vec::new();
    for (name, value) in parts.headers.iter().filter(|(name, _)| name.as_str().starts_with(PASSED_ON)) {
        headers.push((name.as_str().to_owned(), text(value.as_bytes())));
    }
    let mut named = headers.iter().filter(|(name, _)| name == SESSION_HEADER).map(|(_, value)| value);
    let session = match (named.next(), named.next()) {
        (Some(_), Some(_)) => return Err(Problem::bad_input(format!("header `{SESSION_HEADER}` is given twice"))),
        (Some(name), None) => Some(
            name.parse().map_err(|error| Problem::bad_input(format!("header `{SESSION_HEADER}` is `{}`: {error}", name.escape_debug())))?,
        ),
        (None, _) => edge.session.clone(),
    };
    Ok(Caller { principal, permissions, address: address(&parts.extensions), session, headers, ..Caller::default() })
}

/// The principal that authentication attached. A request without one is refused, not treated as `anonymous`.
pub fn principal(extensions: &Extensions) -> Result<&Principal, Problem> {
    extensions.get().ok_or_else(|| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the request was not authenticated"))
}

/// Headers that are not UTF-8 are read as Latin-1.
fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().copied().map(char::from).collect(),
    }
}

/// The remote address of the request's connection.
pub fn address(extensions: &Extensions) -> Option<IpAddr> {
    extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(address)| address.ip())
}

/// Under whom the resources that an authenticated request takes are counted.
pub fn budget_holder(extensions: &Extensions) -> Result<BudgetHolder, Problem> {
    Ok(BudgetHolder::new(principal(extensions)?, address(extensions)))
}
