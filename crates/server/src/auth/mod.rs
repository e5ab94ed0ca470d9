//! Who calls: the one place where the headers of a request become a principal, or a refusal.
//!
//! ```text
//! Authorization: Bearer hst_…   ─► tokens ─► the file that `heapstead auth` writes
//! Authorization: Bearer eyJ…    ─► jwt ────► jwks, the keys that the issuer publishes
//! ```
//! Every request is asked, also those within a connection: what was allowed a moment ago may not be now.

mod bearer;
mod jwks;
mod jwt;
mod keys;
mod refusal;
mod signatures;
mod token;
mod token_file;
mod tokens;
mod watch;

pub use jwks::{is_this_machine, probe as probe_keys};
pub use jwt::{Jwt, JwtSettings};
pub use refusal::Refusal;
pub use token::Token;
pub use token_file::{Entry, TokenFile, TokenFileError};

use axum::http::HeaderMap;
use heapstead_types::Principal;
use refusal::Reason;
use std::path::PathBuf;
use tokens::Tokens;

/// What the operator decided about who may call.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The file of bearer tokens.
    pub tokens: Option<PathBuf>,
    pub jwt: Option<JwtSettings>,
}

/// What an execute session is taken up again by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Resolution {
    /// The tenant and the logical session, which is one principal's anyway
    Shared,
    /// The principal too
    Delegated,
}

#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    #[error(transparent)]
    Tokens(#[from] TokenFileError),
    #[error("the keys at `--jwks-url` can't be asked for: {0}")]
    Client(reqwest::Error),
}

/// Without either, nobody is asked who they are, and everybody is the same.
#[derive(Default)]
pub struct Authenticator {
    tokens: Option<Tokens>,
    jwt: Option<Jwt>,
}

impl Authenticator {
    /// To be called inside the runtime: keys are fetched, and kept fresh.
    pub async fn open(settings: &Settings) -> Result<Self, AuthError> {
        let tokens = settings.tokens.as_deref().map(Tokens::open).transpose()?;
        let jwt = match &settings.jwt {
            Some(settings) => Some(Jwt::open(settings.clone()).await.map_err(AuthError::Client)?),
            None => None,
        };
        Ok(Self { tokens, jwt })
    }

    /// Whether credentials are asked for.
    pub fn is_on(&self) -> bool {
        self.tokens.is_some() || self.jwt.is_some()
    }

    pub async fn principal(&self, headers: &HeaderMap) -> Result<Principal, Refusal> {
        if !self.is_on() {
            return Ok(Principal::anonymous());
        }
        let text = bearer::credentials(headers)?;
        match (Token::looks_like_one(text), &self.tokens, &self.jwt) {
            (true, Some(tokens), _) => Ok(tokens.owner(text)?),
            (false, _, Some(jwt)) => jwt.principal(text).await,
            _ => Err(Reason::UnknownKind.into()),
        }
    }
}
