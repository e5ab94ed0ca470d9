//! Errors as RFC 9457 problem documents, and the table from errors to status codes.

use crate::api::{Failed, FailureShape};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use heapstead_service::ServiceError;
use heapstead_types::ErrorCode;
use serde_json::{Map, Value, json};

pub const CONTENT_TYPE: &str = "application/problem+json";
/// Prefix of the problem type, before the error code.
pub const TYPE_PREFIX: &str = "urn:heapstead:error:";
/// A full queue has room again when one of its executions ends.
const BUSY_RETRY_SECS: u16 = 1;
/// The server retries an unavailable store itself. Retrying more often than this does not help.
const UNAVAILABLE_RETRY_SECS: u16 = 5;

/// An error response. Its type names the stable error code; the detail is for people and models.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    code: ErrorCode,
    detail: String,
    members: Map<String, Value>,
    retry_secs: Option<u16>,
    challenge: Option<&'static str>,
    closes: bool,
}

impl Problem {
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let code = code_of(status);
        Self { status, code, detail: detail.into(), members: Map::new(), retry_secs: None, challenge: None, closes: false }
    }

    pub fn bad_input(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    pub fn busy(detail: impl Into<String>) -> Self {
        Self { retry_secs: Some(BUSY_RETRY_SECS), ..Self::new(StatusCode::TOO_MANY_REQUESTS, detail) }
    }

    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self { retry_secs: Some(UNAVAILABLE_RETRY_SECS), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, detail) }
    }

    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Also adds the members that the requested operation's result would have.
    pub fn in_shape(mut self, shape: FailureShape) -> Self {
        if let Value::Object(members) = shape.body(&self.detail) {
            self.members.extend(members);
        }
        self
    }

    /// Adds the challenge that says which credentials are needed.
    pub fn challenging(self, challenge: &'static str) -> Self {
        Self { challenge: Some(challenge), ..self }
    }

    /// Closes the connection, because the rest of an unread body follows on it.
    pub fn closing(self) -> Self {
        Self { closes: true, ..self }
    }
}

/// The table from errors to HTTP.
impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Self {
        let (detail, code) = (error.to_string(), error.code());
        let problem = match error {
            ServiceError::BadInput(_) | ServiceError::SessionRequired | ServiceError::NoSession => Self::bad_input(detail),
            ServiceError::TooLarge(_) => Self::new(StatusCode::PAYLOAD_TOO_LARGE, detail),
            ServiceError::NotFound { .. } | ServiceError::UnknownHandle(_) => Self::new(StatusCode::NOT_FOUND, detail),
            ServiceError::SessionEnded(_) => Self::new(StatusCode::GONE, detail),
            ServiceError::Forbidden(_) => Self::new(StatusCode::FORBIDDEN, detail),
            ServiceError::Conflict { .. } => Self::new(StatusCode::CONFLICT, detail),
            ServiceError::Busy { .. } => Self::busy(detail),
            ServiceError::Unavailable(_) => Self::unavailable(detail),
        };
        Self { code, ..problem }
    }
}

/// The code of a refusal that comes before any operation.
fn code_of(status: StatusCode) -> ErrorCode {
    match status {
        StatusCode::UNAUTHORIZED => ErrorCode::Unauthenticated,
        StatusCode::FORBIDDEN => ErrorCode::Forbidden,
        StatusCode::NOT_FOUND => ErrorCode::NotFound,
        StatusCode::PAYLOAD_TOO_LARGE => ErrorCode::TooLarge,
        StatusCode::CONFLICT => ErrorCode::Conflict,
        StatusCode::TOO_MANY_REQUESTS => ErrorCode::Busy,
        StatusCode::SERVICE_UNAVAILABLE => ErrorCode::Unavailable,
        status if status.is_server_error() => ErrorCode::Internal,
        _ => ErrorCode::InvalidRequest,
    }
}

/// The problem type: a URN that ends in the stable code.
fn problem_type(code: ErrorCode) -> String {
    format!("{TYPE_PREFIX}{code}")
}

impl From<Failed> for Problem {
    fn from(failed: Failed) -> Self {
        let members = match failed.body {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        Self { members, ..failed.error.into() }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let title = self.status.canonical_reason().unwrap_or_default();
        let mut document =
            json!({ "type": problem_type(self.code), "title": title, "status": self.status.as_u16(), "detail": self.detail });
        if let Some(document) = document.as_object_mut() {
            document.extend(self.members);
        }
        let mut response = (self.status, [(header::CONTENT_TYPE, CONTENT_TYPE)], document.to_string()).into_response();
        let headers = response.headers_mut();
        if let Some(secs) = self.retry_secs {
            headers.insert(header::RETRY_AFTER, secs.into());
        }
        if let Some(challenge) = self.challenge {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        if self.closes {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
