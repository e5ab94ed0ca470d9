//! Errors as RFC 9457 problem documents, and the one table from what went wrong to its status.

use crate::api::{Failed, FailureShape};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use heapstead_service::ServiceError;
use serde_json::{Map, Value, json};

pub const CONTENT_TYPE: &str = "application/problem+json";
/// A queue that is full has room again when one of its executions ends.
const BUSY_RETRY_SECS: u16 = 1;
/// A store that is down is tried again by itself; asking more often than this helps nobody.
const UNAVAILABLE_RETRY_SECS: u16 = 5;

/// A refusal. Its type is `about:blank`: the status says everything that a program needs, the detail what a person or a model does.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    detail: String,
    members: Map<String, Value>,
    retry_secs: Option<u16>,
    challenge: Option<&'static str>,
    closes: bool,
}

impl Problem {
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), members: Map::new(), retry_secs: None, challenge: None, closes: false }
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

    /// Also says it as the answer of the operation that was asked for would.
    pub fn in_shape(mut self, shape: FailureShape) -> Self {
        if let Value::Object(members) = shape.body(&self.detail) {
            self.members.extend(members);
        }
        self
    }

    /// Says which credentials would help.
    pub fn challenging(self, challenge: &'static str) -> Self {
        Self { challenge: Some(challenge), ..self }
    }

    /// Ends the connection, because what follows on it is the rest of a body that nobody reads.
    pub fn closing(self) -> Self {
        Self { closes: true, ..self }
    }
}

/// The table.
impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Self {
        let detail = error.to_string();
        match error {
            ServiceError::BadInput(_) | ServiceError::SessionRequired(_) => Self::bad_input(detail),
            ServiceError::TooLarge(_) => Self::new(StatusCode::PAYLOAD_TOO_LARGE, detail),
            ServiceError::NotFound { .. } | ServiceError::NoSession(_) => Self::new(StatusCode::NOT_FOUND, detail),
            ServiceError::SessionEnded(_) => Self::new(StatusCode::GONE, detail),
            ServiceError::Forbidden(_) => Self::new(StatusCode::FORBIDDEN, detail),
            ServiceError::WrongState(_) => Self::new(StatusCode::CONFLICT, detail),
            ServiceError::Busy(_) => Self::busy(detail),
            ServiceError::Unavailable(_) => Self::unavailable(detail),
        }
    }
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
        let mut document = json!({ "type": "about:blank", "title": title, "status": self.status.as_u16(), "detail": self.detail });
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
