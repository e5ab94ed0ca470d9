//! Why somebody is not let in: told to the operator in full, to whoever asks only as far as it helps those who may come in.

use crate::http::Problem;
use axum::http::StatusCode;

#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No credentials, or none of a kind that is taken here.
    Missing,
    /// All the same to the caller, whatever the reason: a thief learns nothing from it.
    Invalid(Reason),
    /// It can't be told now whether they are good.
    Unavailable,
}

/// For the log, at `debug`.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("there is more than one `Authorization`")]
    GivenTwice,
    #[error("`Authorization` holds no token")]
    Malformed,
    #[error("the token is of a kind that is not asked for here")]
    UnknownKind,
    #[error("there is no such token: never given out, revoked, or mistyped")]
    UnknownToken,
    #[error("the token {id} has expired")]
    ExpiredToken { id: String },
    #[error("the JWT is refused: {0}")]
    Jwt(String),
    #[error("the issuer publishes no key that the JWT could be signed with")]
    UnknownKey,
    #[error("the JWT's `{claim}` can't be part of an owner: {why}")]
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
            Refusal::Invalid(_) => Self::new(StatusCode::UNAUTHORIZED, "the credentials are not valid here, or not any more")
                .challenging(r#"Bearer realm="heapstead", error="invalid_token""#),
            Refusal::Unavailable => Self::unavailable("the keys that credentials are checked with can't be had now"),
        }
    }
}
