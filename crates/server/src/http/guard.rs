//! Checks `Host` and `Origin`, against DNS rebinding and requests from foreign web pages to a local server.
//!
//! Not `tower_http::cors`: that layer refuses nothing, so the request of a foreign page would be served and only its response hidden by the
//! browser; and it answers every `OPTIONS` request, also without authentication. Here a foreign page is refused before anything is done, and
//! only preflights of allowed origins are answered.

use super::Problem;
use crate::edge::{Access, Edge};
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// How long a browser caches a preflight response.
const PREFLIGHT_SECS: &str = "600";
const METHODS: &str = "GET, HEAD, POST, PUT, DELETE";
/// Response headers that pages may read.
const EXPOSED: &str = "Retry-After, WWW-Authenticate, Mcp-Session-Id, X-Heapstead-Engine";

pub async fn guard(State(edge): State<Arc<Edge>>, request: Request, next: Next) -> Response {
    let origin = match check(&edge.access, request.uri(), request.headers()) {
        Ok(origin) => origin,
        Err(problem) => return problem.closing().into_response(),
    };
    if let Some(kind) = sent_by_any_page(&request) {
        let detail = format!("`Content-Type` is `{kind}`, which any web page could send without a preflight: expected application/json");
        return Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail).closing().into_response();
    }
    let mut response = match &origin {
        Some(_) if is_preflight(&request) => preflight(request.headers()),
        _ => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(origin) = origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
        headers.append(header::VARY, HeaderValue::from_static("origin"));
    }
    response
}

/// The origin to allow in the response. `None` if the request has no foreign origin.
pub fn check(access: &Access, uri: &Uri, headers: &HeaderMap) -> Result<Option<HeaderValue>, Problem> {
    let unreadable = || Problem::bad_input("the request has no readable `Host` header");
    let host = only(headers, header::HOST)?.map(HeaderValue::to_str).transpose().map_err(|_| unreadable())?;
    let named = host.or_else(|| uri.authority().map(Authority::as_str)).ok_or_else(unreadable)?;
    // An absolute request target such as http://other/ names a host too.
    for name in [Some(named), uri.authority().map(Authority::as_str)].into_iter().flatten() {
        if !allowed(&access.hosts, without_port(name)) {
            let detail = format!("requests to the host `{}` are refused: it is not in `--allowed-hosts`", name.escape_debug());
            return Err(Problem::new(StatusCode::FORBIDDEN, detail));
        }
    }
    let Some(origin) = only(headers, header::ORIGIN)? else { return Ok(None) };
    let text = origin.to_str().unwrap_or_default();
    if allowed(&access.origins, text) {
        return Ok(Some(origin.clone()));
    }
    // Our own pages. If any host name is allowed, a foreign page could look like one of them.
    let is_own = !access.hosts.iter().any(|host| host == "*") && text.split_once("://").is_some_and(|(_, authority)| authority == named);
    if is_own {
        return Ok(None);
    }
    let detail = format!("pages of the origin `{}` may not call this server: see `--allowed-origins`", text.escape_debug());
    Err(Problem::new(StatusCode::FORBIDDEN, detail))
}

/// The content type of a body that browsers send to other sites without a preflight.
fn sent_by_any_page(request: &Request) -> Option<&'static str> {
    let kind = request.headers().get(header::CONTENT_TYPE).filter(|_| request.method() == Method::POST)?.to_str().ok()?;
    let kind = kind.split(';').next().unwrap_or_default().trim();
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"].into_iter().find(|any| any.eq_ignore_ascii_case(kind))
}

fn only(headers: &HeaderMap, name: header::HeaderName) -> Result<Option<&HeaderValue>, Problem> {
    let mut values = headers.get_all(&name).iter();
    match (values.next(), values.next()) {
        (_, Some(_)) => Err(Problem::bad_input(format!("header `{name}` is given twice"))),
        (value, None) => Ok(value),
    }
}

fn allowed(list: &[String], value: &str) -> bool {
    list.iter().any(|allowed| allowed == "*" || allowed.eq_ignore_ascii_case(value))
}

/// `[::1]:80` without `:80`.
fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && host.starts_with('[') == host.ends_with(']') => host,
        _ => authority,
    }
}

fn is_preflight(request: &Request) -> bool {
    request.method() == Method::OPTIONS && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

fn preflight(asked: &HeaderMap) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(PREFLIGHT_SECS));
    if let Some(names) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_of_a_host_is_ignored() {
        for (authority, host) in
            [("localhost:8420", "localhost"), ("localhost", "localhost"), ("[::1]:80", "[::1]"), ("[::1]", "[::1]"), ("a:b", "a:b")]
        {
            assert_eq!(without_port(authority), host);
        }
    }

    /// Such a header was ignored if the request target named a host.
    #[test]
    fn an_unreadable_host_is_refused() {
        let access = Access { hosts: vec!["localhost".into()], origins: Vec::new() };
        let uri = Uri::from_static("http://localhost/");
        let with = |host: &[u8]| HeaderMap::from_iter([(header::HOST, HeaderValue::from_bytes(host).expect("a value"))]);
        assert!(check(&access, &uri, &HeaderMap::new()).is_ok() && check(&access, &uri, &with(b"localhost:1")).is_ok());
        for host in [b"\xff".as_slice(), b"localhost\xff", b"other", b""] {
            assert!(check(&access, &uri, &with(host)).is_err(), "{host:?}");
        }
    }
}
