//! Authentication: turns the headers of a request into an identity or a refusal. No other place does.
//!
//! ```text
//! Authorization: Bearer hst_…   ─► valid_tokens ─► the file that `heapstead auth` writes
//! Authorization: Bearer eyJ…    ─► jwt ──────────► jwks, the keys that the issuer publishes
//! ```
//! Every request is authenticated, also on an open connection, because a token may have been revoked since.

mod bearer;
mod issuer;
mod jwks;
mod jwt;
mod keys;
mod refusal;
mod signatures;
mod token;
pub mod token_file;
mod valid_tokens;
mod watch;

pub use bearer::credentials;
pub use issuer::Issuer;
pub use jwks::{is_this_machine, probe as probe_keys};
pub use jwt::{Jwt, JwtSettings};
pub use refusal::Refusal;
pub use token::Token;
pub use token_file::{Entry, TokenFile, TokenFileError};

use axum::http::HeaderMap;
use heapstead_types::{Permissions, Principal};
use refusal::Reason;
use std::path::PathBuf;
use valid_tokens::ValidTokens;

/// Who sent a request, and what the operator allows them beyond the ordinary.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Identity {
    pub principal: Principal,
    pub permissions: Permissions,
}

/// The operator's authentication settings.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Path of the bearer token file.
    pub tokens: Option<PathBuf>,
    pub jwt: Option<JwtSettings>,
}

/// Which identity must match to resume an execute session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Resolution {
    /// The tenant and the logical session, which belongs to one principal
    Shared,
    /// The principal as well
    Delegated,
}

#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    #[error(transparent)]
    Tokens(#[from] TokenFileError),
    #[error("the keys at `--jwks-url` can't be fetched: {0}")]
    Client(reqwest::Error),
}

/// Without tokens and JWTs, requests are not authenticated and all have the same principal.
#[derive(Default)]
pub struct Authenticator {
    tokens: Option<ValidTokens>,
    jwt: Option<Jwt>,
}

impl Authenticator {
    /// Must be called inside the runtime: it fetches keys and keeps them fresh.
    pub async fn open(settings: &Settings) -> Result<Self, AuthError> {
        let tokens = settings.tokens.as_deref().map(ValidTokens::open).transpose()?;
        let jwt = match &settings.jwt {
            Some(settings) => Some(Jwt::open(settings.clone()).await.map_err(AuthError::Client)?),
            None => None,
        };
        Ok(Self { tokens, jwt })
    }

    /// Whether credentials are required.
    pub fn is_on(&self) -> bool {
        self.tokens.is_some() || self.jwt.is_some()
    }

    pub async fn identity(&self, headers: &HeaderMap) -> Result<Identity, Refusal> {
        if !self.is_on() {
            return Ok(Identity::default());
        }
        let text = bearer::credentials(headers)?;
        match (Token::looks_like_one(text), &self.tokens, &self.jwt) {
            (true, Some(tokens), _) => Ok(tokens.identity(text)?),
            (false, _, Some(jwt)) => jwt.identity(text).await,
            _ => Err(Reason::UnknownKind.into()),
        }
    }
}
