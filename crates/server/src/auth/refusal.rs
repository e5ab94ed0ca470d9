//! Why a request is refused: the log has the full reason, and the client learns only what helps a legitimate user.

use crate::http::Problem;
use axum::http::StatusCode;

#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No credentials, or of an unsupported kind.
    Missing,
    /// The client gets the same response for every reason, so that an attacker learns nothing from it.
    Invalid(Reason),
    /// The credentials cannot be checked at the moment.
    Unavailable,
}

/// Logged at `debug`.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("there is more than one `Authorization` header")]
    GivenTwice,
    #[error("the `Authorization` header has no token")]
    Malformed,
    #[error("this kind of token is not accepted here")]
    UnknownKind,
    #[error("unknown token: never issued, revoked, or mistyped")]
    UnknownToken,
    #[error("the token {id} has expired")]
    ExpiredToken { id: String },
    #[error("the JWT is refused: {0}")]
    Jwt(String),
    #[error("the issuer publishes no key for this JWT")]
    UnknownKey,
    #[error("the JWT's claim `{claim}` is not valid in an owner: {why}")]
    NoOwner { claim: String, why: String },
}

impl From<Reason> for Refusal {
    fn from(reason: Reason) -> Self {
        Self::Invalid(reason)
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Missing => {
                Self::new(StatusCode::UNAUTHORIZED, "credentials are missing: send the header `Authorization: Bearer TOKEN`")
                    .challenging(r#"Bearer realm="heapstead""#)
            }
            Refusal::Invalid(_) => {
                Self::new(StatusCode::UNAUTHORIZED, "the credentials are not valid for this server, or have expired or been revoked")
                    .challenging(r#"Bearer realm="heapstead", error="invalid_token""#)
            }
            Refusal::Unavailable => Self::unavailable("the keys that verify credentials are not available at the moment"),
        }
    }
}
